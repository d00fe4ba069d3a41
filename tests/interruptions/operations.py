# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is interrupted, for each layout: two runs that undo each other, so that each prepares the other. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Tuple

SITE, REMOVE = "onprem.lb.site", "onprem.lb.remove"


@dataclass(frozen=True)
class Operation:
    """One run.

    :ivar members: the members in the inventory
    :ivar serves: whether they serve the VIPs afterwards
    """

    name: str
    members: Tuple[str, ...]
    variables: Mapping[str, Any]
    playbook: str = SITE

    @property
    def serves(self) -> bool:
        return self.playbook == SITE


@dataclass(frozen=True)
class Cycle:
    """Two operations that undo each other.

    :ivar before: runs after which each of them does the same however often they alternate
    :ivar is_undone: whether members take back by themselves what a killed run has changed
    """

    name: str
    there: Operation
    back: Operation
    before: Tuple[Operation, ...] = ()
    is_undone: bool = False

    @property
    def serves(self) -> bool:
        """Whether the VIPs are served throughout, also while a run is interrupted."""
        return self.there.serves and self.back.serves


@dataclass(frozen=True)
class Layout:
    """A layout on the lab's hosts.

    :ivar scenario: the lab's
    :ivar groups: the group of each host that may be a member
    :ivar usual: the members, but for the one that retires
    :ivar vips: the VIPs of each group, by the names of the lab's variables
    :ivar urls: what a client requests, with such names in braces
    :ivar client: the host that requests it; it is never a member
    :ivar inventory: the file with the layout's variables
    :ivar changed: other values for some of them
    :ivar agent_changed: those that the agent knows
    :ivar prepare: a playbook that readies the hosts, or nothing
    """

    name: str
    scenario: str
    groups: Mapping[str, str]
    usual: Tuple[str, ...]
    vips: Mapping[str, Tuple[str, ...]]
    urls: Tuple[str, ...]
    client: str
    inventory: str
    changed: Mapping[str, Any]
    agent_changed: Mapping[str, Any]
    prepare: str = ""

    def cycles(self) -> Dict[str, Cycle]:
        """Return what is interrupted, by name."""
        everyone = tuple(self.groups)
        usual = {f"{self.name}_auth_pass": "usual1", f"{self.name}_listen": 0}
        native, agent = ({**usual, f"{self.name}_engine": engine} for engine in ("native", "agent"))
        present = Operation("set up", self.usual, native)
        absent = Operation("remove", self.usual, {**native, "confirm": True}, REMOVE)
        changed = Operation("change", self.usual, {**native, **self.changed})
        changed_back = Operation("change back", self.usual, native)
        agent_changed = Operation("change the agent", self.usual, {**agent, **self.agent_changed})
        agent_changed_back = Operation("change the agent back", self.usual, agent)
        to_agent = Operation("move to the agent", self.usual, agent)
        to_native = Operation("move to native", self.usual, native)
        added = Operation("add a member", everyone, native)
        retired = Operation("retire a member", self.usual, native)  # its packages stay
        cycles = (
            Cycle("deployment", present, absent),
            Cycle("change", changed, changed_back, before=(present,), is_undone=True),
            Cycle("agent", agent_changed, agent_changed_back, before=(present, to_agent), is_undone=True),
            Cycle("engine", to_agent, to_native, before=(present,)),
            Cycle("retirement", added, retired, before=(present, added, retired)),
        )
        return {cycle.name: cycle for cycle in cycles}

    def vips_of(self, members: Iterable[str]) -> List[str]:
        """Return the VIPs that these members may hold, by the names of the lab's variables."""
        return list(dict.fromkeys(vip for member in members for vip in self.vips[self.groups[member]]))


PAIR = Layout(
    name="pair",
    scenario="interruptions",
    groups={"lb1": "pair", "lb2": "pair", "client": "pair"},
    usual=("lb1", "lb2"),
    vips={"pair": ("lab_vip", "lab_vip6")},
    urls=("http://{lab_vip}:80/", "http://[{lab_vip6}]:8443/"),
    client="node1",
    inventory="molecule/default/inventory/pair.yml",
    changed={"pair_auth_pass": "changed1", "pair_preempt": False, "haproxy_maxconn": 9000},
    agent_changed={"pair_auth_pass": "changed1", "pair_preempt": False},
)
IPI = Layout(
    name="ipi",
    scenario="interruptions-ipi",
    groups={"master1": "ipi_masters", "master2": "ipi_masters", "master3": "ipi_masters", "worker1": "ipi_workers"},
    usual=("master1", "master2", "master3"),
    vips={"ipi_masters": ("lab_vip", "lab_vip6", "lab_vip2"), "ipi_workers": ("lab_vip2",)},
    urls=("https://{lab_vip}:6443/", "https://[{lab_vip6}]:6443/", "http://{lab_vip2}:80/"),
    client="client",
    inventory="molecule/ipi/inventory/cluster.yml",
    changed={"ipi_auth_pass": "changed1"},
    agent_changed={"ipi_auth_pass": "changed1"},
    prepare="molecule/ipi/prepare.yml",
)
LAYOUTS = {layout.name: layout for layout in (PAIR, IPI)}
