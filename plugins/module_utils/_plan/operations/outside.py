# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a host that is no member hears through the VIPs: who accepts connections, and who answers. Pure.

It asks as the probe of a drill does. The kernel accepts a connection for a balancer that hangs, so that an answer alone
proves one, and only silence is a fault: a balancer that ends a connection runs, and may have no server.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..drill import questions
from .members import problem

SYMPTOMS = "docs/symptoms.md"
SILENT = f"see 'The VIP is held but nothing answers' in {SYMPTOMS}."
NO_SERVER, LATE = "unavailable", "slow"  # of the failures of `vip_probe`, those that are answers, too
GATEWAY = ": 502, 503 or 504, as without a server"  # or as a router of a cluster answers a name that it does not know
TIMEOUT, PATIENCE_S = "timeout", 3  # for which the playbook has an answer waited for

MINUTE, HOUR, DAY = 60, 3600, 86400

Plans = Sequence[Mapping[str, Any]]
Target = Sequence[Any]  # ``[VIP, port]``
Said = Tuple[List[str], List[str]]  # lines, and faults


class Answer(NamedTuple):
    """What came of all questions to a VIP."""

    port: int
    words: str  # what was asked
    answers: bool = False
    remark: str = ""
    is_silent: bool = False  # nothing ever came back


def asked(plans: Plans, targets: Sequence[Target], heard: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """Return what to ask through each VIP that accepts connections, as `vip_probe` takes it, where that is known.

    :param plans: as `layout_drafts` returns them
    :param heard: what `layout_info` has returned on the host that asks
    """
    reached = [target for target in targets if _reaches(heard, target)]
    return [each for each in questions.at(plans, reached) if questions.Question(**each).asks]


def heard_through(
    targets: Sequence[Target], probe: str, heard: Mapping[str, Any], results: Sequence[Mapping[str, Any]]
) -> Said:
    """Say which VIPs answer a host that is no member, and name the silent ones.

    A VIP accepts no connection if none of its ports does: some may be closed to clients on purpose, such as a monitor.

    :param results: of a loop over `asked`, in which `vip_probe` tried each
    """
    if not probe or heard.get("skipped") or not heard:
        return [], []
    unasked = problem(dict(heard), "reached")
    if unasked:
        return [f"{probe} {unasked} Nothing was asked through the VIPs."], []
    lines: List[str] = []
    faults: List[str] = []
    for vip in dict.fromkeys(vip for vip, _port in targets):
        line, is_fault = _of_vip(vip, [target for target in targets if target[0] == vip], probe, heard, results)
        lines.append(line)
        faults += [line] if is_fault else []
    return lines, faults


def _of_vip(
    vip: str, targets: Sequence[Target], probe: str, heard: Mapping[str, Any], results: Sequence[Mapping[str, Any]]
) -> Tuple[str, bool]:
    """Return what is said of a VIP, and whether that is a fault."""
    closed = [port for _vip, port in targets if not _reaches(heard, [vip, port])]
    if len(closed) == len(targets):
        return f"{vip} accepts no connection from {probe}: {SILENT}", True
    but = f", but accepts no connection at {ports(closed)}" if closed else ""
    own = [result for result in results if result["item"]["vip"] == vip]
    failed = [each for each in (problem(dict(result), "tried") for result in own) if each]
    if failed or not own:
        why = f" {probe} {failed[0]}" if failed else ""
        return f"{vip} accepts connections from {probe} ({questions.CONNECTS}){but}.{why}", False
    answer = _answer(own)
    if answer.answers:
        return f"{vip} answers {probe} ({answer.words}{answer.remark}){but}.", False
    if answer.is_silent:
        accepts = f"{vip} accepts connections from {probe} at port {answer.port}, and does not answer"
        return f"{accepts} {answer.words} within {PATIENCE_S} s: {SILENT}", True
    return f"{vip} accepts connections from {probe}, and ends them without an answer to {answer.words}{but}.", False


def _answer(results: Sequence[Mapping[str, Any]]) -> Answer:
    """Return what came of the questions to a VIP, of which the first that was answered counts."""
    every = [(result["item"], result["failures"], result["tried"] - result["failed_attempts"]) for result in results]
    for item, failures, good in every:
        if good or failures.get(LATE) or failures.get(NO_SERVER):
            remark = "" if good or failures.get(LATE) else GATEWAY
            return Answer(item["port"], item["words"], True, remark)
    words = " or ".join(item["words"].partition(" at ")[0] for item, _failures, _good in every)
    port = every[0][0]["port"]
    return Answer(port, f"{words}", is_silent=all({*failures} == {TIMEOUT} for _item, failures, _good in every))


def _reaches(heard: Mapping[str, Any], target: Target) -> bool:
    return f"{target[0]} {target[1]}" in heard.get("reached", [])


def ports(numbers: Sequence[int]) -> str:
    return f"port{'s' if len(numbers) > 1 else ''} {listed([str(number) for number in numbers])}"


def listed(things: Sequence[str]) -> str:
    """Return things as a sentence lists them."""
    return " and ".join(filter(None, [", ".join(things[:-1]), *things[-1:]]))


def duration(seconds: int) -> str:
    """Return a time in its two largest units."""
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min {seconds % MINUTE} s"
    if seconds < DAY:
        return f"{seconds // HOUR} h {seconds % HOUR // MINUTE} min"
    return f"{seconds // DAY} d {seconds % DAY // HOUR} h"
