# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How members that announce their VIPs by BGP return to an earlier state: one after the other, each proved. Pure.

Each serves by itself, so that what fails on one leaves the others. Those that serve nobody return first, all at once.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Sequence

from ..bgp import order
from ..bgp.settings import BGP, VRRP

States = Mapping[str, Mapping[str, Any]]  # by member, as `member_state` compares them with what it runs now
NAMES = {BGP: "BGP", VRRP: "VRRP"}


def are_announced(found: States) -> bool:
    return any(state["reach"]["then"] == BGP for state in found.values())


def refusals(chosen: str, found: States) -> List[str]:
    """Return why members cannot return to a state, because of what they announce, or would not any more."""
    other = [
        f"{name} had its VIPs by {NAMES[state['reach']['then']]} in the state {chosen}, and has them by "
        f"{NAMES[state['reach']['now']]}: no run leads from one to the other yet."
        for name, state in found.items()
        if {*state["reach"].values()} == {BGP, VRRP}
    ]
    would = {vip for state in found.values() for vip in state["announced"]["vips"]}
    now = dict.fromkeys(vip for state in found.values() for vip in state["announced"]["now"])
    lost = [vip for vip in now if vip not in would] if are_announced(found) else []
    lost_ones = [
        f"In the state {chosen} no member could announce {', '.join(lost)}, so nobody would: choose another one, or "
        "change the inventory and run onprem.lb.site."
    ]
    return [*other, *(lost_ones if lost else [])]


def taken(steps: Any, returning: States) -> Any:
    """Return the steps of a rollback with the turns of the members.

    The ``first`` of their undo, which returns after the others, is the one whose turn is last.

    :param returning: the states of those of them that are not as now
    """
    serving = [name for name, state in returning.items() if state["announced"]["now"]]
    others = [name for name in returning if name not in serving]
    waves = [*([others] if others else []), *([name] for name in serving)]
    lines = [
        f"{' and '.join(each)} {'returns' if len(each) == 1 else 'return'}, and must serve then." for each in waves
    ]
    return steps._replace(
        lines=[*steps.lines[:-1], *lines, steps.lines[-1]],
        first=[*others, *serving][-1],
        settle=order.settle(order.USUAL_S),
        turns=of(waves),
        proofs={name: proof(state) for name, state in returning.items()},
    )


def of(waves: Sequence[List[str]]) -> List[Dict[str, List[str]]]:
    """Return the members of each turn, and those of the turn before, which are proved first. The last one only proves.

    >>> of([["lb1"], ["lb2"]])[1:]
    [{'members': ['lb2'], 'proves': ['lb1']}, {'members': [], 'proves': ['lb2']}]
    """
    return [{"members": wave, "proves": before} for before, wave in zip([[], *waves], [*waves, []])]


def proof(state: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what must be so on a member that has returned to a state, as `layout_info` takes it."""
    announced = state["announced"]
    return {
        "vips": [{"address": vip} for vip in announced["vips"]],
        "sessions": announced["sessions"],
        "units": announced["units"],
        "services": [],
        "targets": [],
    }


def unproved(turn: Mapping[str, Sequence[str]], hosts: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return a sentence for each member that has returned and does not serve: the next ones stay as they are.

    :param turn: the next one
    :param hosts: the variables of each; of one that cannot be reached any more nothing is proved
    """
    left = f", so {' and '.join(turn['members'])} stays as it is" if turn["members"] else ""
    known = {each["inventory_hostname"]: each.get("__rollback_proof", {}) for each in hosts}
    found = [(name, known.get(name, {})) for name in turn["proves"]]
    return [
        f"{name} has returned and does not serve{left}: "
        f"{' '.join(proof.get('faults') or [proof.get('msg', 'no answer')])}"
        for name, proof in found
        if not proof.get("skipped") and proof.get("faults") != []
    ]
