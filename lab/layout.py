"""The hosts of a lab, and its names.

Pure. A host's number is the last part of its addresses. A scenario that is not in `LAYOUTS` is a pair.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Tuple

PREFIX = "onprem-lb-lab"
LAB_LABEL = "onprem.lb.lab"
CHECKOUT_LABEL = "onprem.lb.checkout"


@dataclass(frozen=True)
class Host:
    """A host of the lab, by its name in Ansible. On `ports` it answers HTTP with that name.

    :ivar names: who writes its /etc/resolv.conf: podman, which mounts it, or as in `files/names.sh`
    """

    name: str
    group: str
    number: int
    ports: Tuple[int, ...] = ()
    names: str = ""

    @property
    def mac(self) -> str:
        """A locally administered address, which no other host of its network has."""
        return f"02:00:00:00:00:{self.number:02x}"


PAIR = (
    Host("lb1", "pair", 11),
    Host("lb2", "pair", 12),
    Host("node1", "backends", 21, ports=(80, 443, 8443)),
    Host("node2", "backends", 22, ports=(80, 443, 8443)),
    Host("client", "probe", 31),
)
# The scenario starts their API servers and routers.
IPI = (
    Host("master1", "ipi_masters", 11),
    Host("master2", "ipi_masters", 12),
    Host("master3", "ipi_masters", 13),
    Host("worker1", "ipi_workers", 21),
    Host("client", "probe", 31),
)
# As few as fail over, because each of them starts containers of its own.
PODS = tuple(host for host in IPI if host.name in ("master1", "master2", "client"))
# A server more, which joins in the course of the tests.
DIRECT = (*PAIR[:-1], Host("node3", "backends", 23, ports=(80,)), PAIR[-1])
# Their numbers are those of the addresses in `examples/`. The scenario starts more programs on the nodes.
EXAMPLES = (
    Host("lb1", "pair", 11),
    Host("lb2", "pair", 12),
    Host("node1", "backends", 21, ports=(80,)),
    Host("node2", "backends", 31, ports=(80, 443, 8080)),
    Host("client", "probe", 51),
)
# One for each way in which a host has its names, and the client, which gives out addresses.
NAMES = (
    Host("plain", "named", 11, names="file"),
    Host("resolved", "named", 12, names="systemd-resolved"),
    Host("managed", "named", 13, names="NetworkManager"),
    Host("leased", "named", 14, names="dhclient"),
    Host("client", "probe", 31),
)
LAYOUTS = {
    "direct": DIRECT,
    "examples": EXAMPLES,
    "ipi": IPI,
    "ipi-agent": IPI,
    "cluster": IPI,
    "interruptions-ipi": IPI,
    "pods": PODS,
    "names": NAMES,
}


@dataclass(frozen=True)
class Lab:
    """The lab of one scenario in one checkout, and all names derived from these."""

    checkout: Path
    scenario: str

    @property
    def hosts(self) -> Tuple[Host, ...]:
        return LAYOUTS.get(self.scenario, PAIR)

    @property
    def checkout_id(self) -> str:
        return hashlib.sha256(str(self.checkout).encode()).hexdigest()[:6]

    @property
    def id(self) -> str:
        return f"{self.checkout_id}-{self.scenario}"

    @property
    def name(self) -> str:
        """The prefix of the names of the network and of every container."""
        return f"{PREFIX}-{self.id}"

    def container(self, host: str) -> str:
        return f"{self.name}-{host}"

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of all that belongs to this lab."""
        return (
            f"--label={LAB_LABEL}={self.id}",
            f"--label={CHECKOUT_LABEL}={self.checkout_id}",
        )

    @property
    def cache(self) -> Path:
        return self.checkout / ".cache" / "lab"

    @property
    def folder(self) -> Path:
        return self.cache / self.scenario

    @property
    def inventory(self) -> Path:
        """The inventory's path. `up` writes it last and `down` removes it first: if it exists, the lab is complete."""
        return self.folder / "inventory.yml"
