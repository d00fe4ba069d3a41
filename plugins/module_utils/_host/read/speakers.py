# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Other speakers of BGP on this host: FRR in a container, frr-k8s, MetalLB's, Calico's, BIRD. Pure.

None can be adopted: what started it would start it again, and a router has one session with this host.
"""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Sequence

from ..._shared.engines import FRR_UNIT
from . import cgroups
from .processes import Process

PORT = 179
BGPD = "bgpd"  # of FRR, also that of frr-k8s
# By process, whose speaker it is. Those that only may speak BGP count where they listen.
PROGRAMS = {BGPD: "FRR", "bird": "BIRD", "bird6": "BIRD", "gobgpd": "GoBGP", "speaker": "MetalLB"}
OURS = cgroups.RunsIn(cgroups.UNIT, FRR_UNIT)


def problems(processes: Sequence[Process], listeners: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return a sentence for each speaker that is in the way.

    :param processes: those of PROGRAMS
    :param listeners: as `host_info` returns them
    """
    others = [each for each in processes if each.program in PROGRAMS and each.on_this_network and _is_foreign(each)]
    known = {each.program for each in others}
    found = [
        f"{PROGRAMS[each.program]}'s {each}, outside {FRR_UNIT}, and two speakers of BGP on one host fight for its "
        f"sessions: {each.mend}."
        for each in others
    ]
    seen = {(each["program"], each["runs_in"]): each for each in listeners if each["port"] == PORT}
    return found + [
        f"{_where(each)} listens at TCP port {PORT}, where FRR's {BGPD} listens: stop it for good."
        for each in seen.values()
        if each["program"] not in known and each["runs_in"] != FRR_UNIT
    ]


def _is_foreign(process: Process) -> bool:
    """Whether a process is not FRR's own. Of one about which nothing is known it is not assumed."""
    return process.runs_in != OURS and (process.program != BGPD or process.runs_in.kind != "")


def _where(listener: Mapping[str, Any]) -> str:
    where = f" in {listener['runs_in']}" if listener["runs_in"] else ""
    return f"{listener['program']}{where} (pid {listener['pid']})"
