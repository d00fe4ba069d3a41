# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the daemon `anycast` of a member watches to put each VIP on lo: what its VRRP router would watch. Pure.

A VRRP router loses its priority to a weight, and keeps the VIP where nobody has more. There is no priority here: what
the layout itself checks takes the VIP off this member, and what the user gave a weight does not, because it may fail on
all members at once.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ..._shared import paths
from ..._shared.engines import ANYCAST, Daemon
from ..model import agent, answers
from ..model.instances import read_scripts
from ..model.plan import Router
from ..model.wanted import not_in_force


class Gate(NamedTuple):
    """What stands before the VIPs of a member.

    :ivar tracked: by VIP, the names of the checks that have to succeed
    :ivar checks: those, as the daemon has them
    :ivar names: by VIP, of its instance
    """

    tracked: Dict[str, List[str]]
    checks: List[Dict[str, Any]]
    names: Dict[str, str]

    @property
    def file(self) -> Dict[str, Any]:
        """The daemon's configuration."""
        vips = [{"address": vip, "name": self.names[vip], "track": track} for vip, track in self.tracked.items()]
        return {"vips": vips, "checks": self.checks, "status_socket": Daemon(ANYCAST).status_socket}


def file(config: Mapping[str, Any]) -> Dict[str, str]:
    """Return the daemon's file, as `config_files` takes it."""
    return {"path": paths.GATE_CONFIG, "content": json.dumps(config, indent=2) + "\n", "mode": "0600"}


def compared(planned: Mapping[str, Any], host: Mapping[str, Any]) -> Dict[str, List[str]]:
    """Return the ``paths`` to write, as the checks of other files do.

    Other checks may withdraw the VIPs of all members. So they get them one after the other, and return without a proof.

    :param planned: of a member, as data
    :param host: as `host_info` returns it
    """
    config = planned.get("bgp", {}).get("anycast")
    return {"paths": not_in_force([file(config)], host) if config else []}


def gate(engine: str, router: Router, asked: Sequence[Mapping[str, Any]]) -> Gate:
    """Return the gate of a member.

    :param engine: of its balancer
    :param router: as it would be with VRRP
    :param asked: the checks that are run all the time, which this daemon runs itself
    """
    own = [check["name"] for check in asked]
    scripts = read_scripts(_others(router.scripts, own), "", [])
    every = agent.checks_of(scripts, _others(router.track_files, own), router.instances)
    every += [answers.as_check(engine, dict(check)) for check in asked]
    tracked = {
        address: [item["name"] for item in agent.tracked(instance) if not item.get("weight") or item["name"] in own]
        for instance in router.instances
        for address in _addresses(instance)
    }
    needed = {name for names in tracked.values() for name in names}
    names = {address: instance["name"] for instance in router.instances for address in _addresses(instance)}
    return Gate(tracked, [check for check in every if check["name"] in needed], names)


def _others(items: Sequence[Dict[str, Any]], names: Sequence[str]) -> List[Dict[str, Any]]:
    return [item for item in items if item["name"] not in names]


def _addresses(instance: Mapping[str, Any]) -> List[str]:
    return [address.partition("/")[0] for address in instance["addresses"]]


def noticed_ms(check: Mapping[str, Any], hangs: bool) -> int:
    """Return how long a failure lasts at most until a check has failed, in milliseconds.

    :param hangs: whether each run waits until its time is over
    """
    if check["type"] in ("file", "interface"):
        return 0
    seconds = check["interval"] * check["fall"] + (check["timeout"] if hangs else 0)
    return round(1000 * seconds)
