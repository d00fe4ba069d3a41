# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The forecast of lost servers: what becomes of a service's connections when one of its servers is lost. Pure.

All of it follows from how the balancer checks and connects, of which `rules_of` has both engines' rules:

- A check ends when its time is over. HAProxy limits the connection by the interval and by `timeout connect`, and the
  answer by `timeout check`; the agent limits both together by the check's own time.
- While a server is on its way down the next check begins a fast interval after the end of the one before. So a server
  is down after one interval, which had just begun, as many checks as `fall` says, and the pauses between them.
- A client whose server does not accept goes on to another one after `timeout connect`, and at once if it refuses.
- Backups serve while no other server is up: the first of them alone. Until the last of the others is down, clients try
  that one again: after `timeout connect`, or after a pause if it refuses. So they are late, or fail if it is down only
  after their last retry.
- With `shutdown_sessions` HAProxy also ends the connections that it is making to a server when that goes down.
"""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ..._shared import engines, events
from ..model import agent_checks, direct_plane, drill_records, fallback, haproxy, pace, values
from ..model.plan import Plan
from ..model.services import backends

CUT, ENDS, HANGS, BACK, LATE = "server cut", "process ends", "process hangs", "server back", "all answer late"
EVENTS = (CUT, ENDS, HANGS, BACK, LATE)
LOST = (CUT, ENDS, HANGS)
DRILLED_AS = {
    CUT: events.SERVER_CUT,
    ENDS: events.SERVER_ENDED,
    HANGS: events.SERVER_HUNG,
    BACK: events.SERVER_BACK,
}
OWN_RETRIES = re.compile(r"\s*retries\s+(\d+)\s*")
ALL_BACKUPS = re.compile(r"\s*option\s+allbackups\s*")
OWN_TIMEOUT = re.compile(r"\s*timeout\s+(connect|check)\s+(\S+)\s*")
FOR_GOOD = -1  # milliseconds: nothing ends it
# HAProxy lets a client that was refused wait for so long, or for `timeout connect`, while only one server is up: also
# where that is another one than the one that refused.
TURNAROUND_S = 1


class Timeouts(NamedTuple):
    """How long a server may take, in seconds, and how often a failed connection is tried again."""

    connect: float = pace.CONNECT_S
    check: float = pace.ANSWER_S
    retries: int = 3


def timeouts_of(engine: str, given: Mapping[str, Any]) -> Timeouts:
    """Return the timeouts and the retries of an engine.

    :param given: the variables of the component roles that the user has set; a wrong one is refused elsewhere
    """
    prefix = "agent" if engine == engines.AGENT else "haproxy"
    read = {key: values.seconds(given.get(f"{prefix}_timeout_{key}"))[0] for key in ("connect", "check")}
    read["retries"] = haproxy.TUNING["retries"].check(given.get(f"{prefix}_retries"))[0]
    return Timeouts(**{key: value for key, value in read.items() if value is not None})


class Rules(NamedTuple):
    """How a balancer finds that a server is lost, in seconds."""

    interval: float
    pause: float  # between two checks of a server that is on its way up or down
    connect: float  # of a client's connection
    check_connect: float
    check_answer: float
    fall: int
    rise: int
    checks: bool  # whether servers are checked at all
    asks: bool  # whether a check asks for an answer, which a process that hangs does not give
    slow_start: float
    late: float  # how long a check may take while no server is in time; 0: as long as otherwise
    silence: float  # after which lasting connections end whose server acknowledges nothing; 0: they hang
    ends_cut: float = 0  # how long a server is lost before its lasting connections are ended; 0: they are not
    ends_hung: float = 0
    ends_connecting: bool = False  # whether a server that goes down ends the connections that are being made to it, too
    turnaround: float = 0  # how long a client waits that was refused, while only one server is up
    retries: int = 3  # how often a client's connection is tried again
    retry_pause: float = TURNAROUND_S  # until a server that has refused is tried again

    def down_after(self, each: float) -> float:
        """Return how long a server is lost before it is down.

        :param each: how long one check takes
        """
        return self.interval + self.fall * each + (self.fall - 1) * self.pause

    @property
    def up_after(self) -> float:
        return self.pause * self.rise

    @property
    def back_after(self) -> float:
        """How long after its network a server is up again at most: a check that still fails may have just begun."""
        return self.check_connect + self.rise * max(self.interval, self.pause) if self.checks else 0


class Loss(NamedTuple):
    """What becomes of new connections, and of those that last. Times are in milliseconds, shares in percent."""

    event: str
    late: int = 0  # the share of new connections that another server answers later
    failed: int = 0  # the share of those that fail
    window: int = 0  # for how long; FOR_GOOD: until somebody mends it
    worst: int = 0  # the longest delay
    lasting: str = ""
    note: str = ""


Drilled = Callable[[str, Loss], str]


def rules_of(backend: Mapping[str, Any], engine: str, timeouts: Timeouts) -> Rules:
    """Return the rules of an engine for a service, or a route of it, as `read_services` returns them."""
    check = backend["check"]
    is_native = engine != engines.AGENT
    lines = backend["backend_lines"] if is_native else []
    own = {found[1]: values.seconds(found[2])[0] for found in map(OWN_TIMEOUT.fullmatch, lines) if found}
    limits = timeouts._replace(**{key: value for key, value in own.items() if value})
    tries = [int(found[1]) for found in map(OWN_RETRIES.fullmatch, lines) if found]
    steps = max(1, len(check["steps"]))
    has_second = pace.has_fallback(backend, limits.check) and not fallback.sets_pace(backend, lines)
    if is_native and has_second:
        check = fallback.haproxys(check)
        has_second = check == backend["check"]
        backend = {**backend, "check": check}
    if not is_native:
        run = pace.agents_limit(backend, limits.connect, limits.check)
        attempt, answer = run, steps * run
        # Without a pause of its own it counts the interval from the beginning of the run before.
        pause = pace.agents_pause(check, limits.connect, run) or max(0, check["interval"] - run)
    else:
        pause = check["fast_interval"] or check["interval"]
        attempt = min(limits.connect, check["interval"])
        answer = steps * pace.haproxys_limit(backend, limits.check)
    rules = Rules(
        interval=check["interval"],
        pause=pause,
        connect=limits.connect,
        check_connect=attempt,
        check_answer=answer,
        fall=check["fall"],
        rise=check["rise"],
        checks=check["type"] != "none",
        asks=agent_checks.asks(check),
        slow_start=check["slow_start"],
        late=pace.LATE_S if has_second else 0,
        silence=check["tcp_user_timeout"],
        turnaround=min(TURNAROUND_S, limits.connect) if is_native else 0,
        ends_connecting=is_native and check["shutdown_sessions"],
        retries=tries[-1] if tries else limits.retries,
        retry_pause=min(TURNAROUND_S, limits.connect),
    )
    return _with_ends(rules) if check["shutdown_sessions"] and rules.checks else rules


def _with_ends(rules: Rules) -> Rules:
    """Return the rules where sessions end with their server: with the agent, once its second check has failed."""
    last, connect, answer = rules, rules.check_connect, rules.check_answer
    if rules.late:
        last = rules._replace(interval=3 * rules.interval, pause=rules.interval, fall=min(2, rules.fall))
        connect, answer = rules.connect, rules.late
    return rules._replace(ends_cut=last.down_after(connect), ends_hung=last.down_after(answer) if rules.asks else 0)


def losses(rules: Rules, weights: Sequence[int], has_standby: bool = False) -> List[Loss]:
    """Return what follows from the loss of one server, at worst.

    :param weights: of the servers that get connections; one that has a greater share is the one that is lost
    :param has_standby: whether backups serve once all of these are down
    """
    share = round(100 * max(weights, default=0) / (sum(weights) or 1))
    ends = _ends(rules, len(weights) - 1)
    found = [_cut(rules, share), ends, _hangs(rules, share), _back(rules, share), _late(rules)]
    if len(weights) > 1:
        return found
    return [_of_last(loss, rules, has_standby) if loss.event in LOST else loss for loss in found]


def _of_last(loss: Loss, rules: Rules, has_standby: bool) -> Loss:
    """Return what follows from the loss of the only server that gets connections."""
    is_seen = rules.checks and (rules.asks or loss.event != HANGS)
    if not has_standby:
        return loss._replace(late=0, failed=100, window=FOR_GOOD, note="it is the only one")
    if not is_seen:
        why = loss.note or "nothing checks it"
        return loss._replace(late=0, failed=100, window=FOR_GOOD, note=f"{why}, so no backup gets connections")
    window, step = {
        CUT: (rules.down_after(rules.check_connect), rules.connect),
        ENDS: (rules.down_after(0), rules.retry_pause),
        HANGS: (rules.down_after(rules.check_answer), 0),
    }[loss.event]
    is_ended = loss.event == CUT and rules.ends_connecting
    tries = min(rules.retries, math.ceil(window / step)) if step and not is_ended else 0
    failed = math.ceil(100 * max(0, window - tries * step) / window)
    note = "then a backup serves"
    return loss._replace(late=100 - failed, failed=failed, window=_ms(window), worst=_ms(tries * step), note=note)


def _cut(rules: Rules, share: int) -> Loss:
    lasting, worst = _lasting(rules, rules.ends_cut), _ms(rules.connect)
    if not rules.checks:
        note = "nothing checks it: set check.type to tcp, http or https"
        return Loss(CUT, share, 0, FOR_GOOD, worst, lasting, note)
    window = rules.down_after(rules.check_connect)
    failed = math.ceil(share * min(1, rules.connect / window)) if rules.ends_connecting else 0
    note = "shutdown_sessions ends what is being connected" if failed else ""
    return Loss(CUT, share - failed, failed, _ms(window), worst, lasting, note)


def _lasting(rules: Rules, ends: float) -> str:
    """Return what becomes of lasting connections.

    :param ends: after how many seconds the balancer ends them; 0: it does not
    """
    if rules.silence and not 0 < ends < rules.silence:
        return f"end after some {rules.silence:g} s"
    return f"end after {_ms(ends)} ms" if ends else "hang until they time out"


def _ends(rules: Rules, left: int) -> Loss:
    """Whoever is refused goes on to another one at once.

    :param left: how many others get connections
    """
    if left == 1 and rules.turnaround and rules.checks:
        wait = _ms(rules.turnaround)
        return Loss(ENDS, worst=wait, lasting="end at once", note=f"but {wait} ms if refused as the server goes down")
    return Loss(ENDS, lasting="end at once")


def _hangs(rules: Rules, share: int) -> Loss:
    """The kernel accepts connections for it, so that nobody tries another server."""
    if not rules.asks:
        note = "a tcp check does not see it: http or https would" if rules.checks else "nothing checks it"
        return Loss(HANGS, 0, share, FOR_GOOD, 0, "hang until they time out", note)
    lasting = _lasting(rules._replace(silence=0), rules.ends_hung)
    return Loss(HANGS, 0, share, _ms(rules.down_after(rules.check_answer)), 0, lasting)


def _back(rules: Rules, share: int) -> Loss:
    gets = f"gets connections after {_ms(rules.up_after)} ms" if rules.checks else "gets connections at once"
    slowly = f", its full share {rules.slow_start:g} s later" if rules.slow_start else ""
    return Loss(BACK, lasting="go on", note=gets + slowly)


def _late(rules: Rules) -> Loss:
    """All servers answer their checks, and none in time."""
    lasting = f"end after {_ms(rules.ends_hung)} ms" if rules.ends_hung and not rules.late else "go on"
    if rules.late:
        note = f"those that answer within {rules.late:g} s get connections while none is in time"
        return Loss(LATE, lasting=lasting, note=note)
    if not rules.checks:
        return Loss(LATE, lasting=lasting)
    note = f"where a check takes longer than {rules.check_answer:g} s"
    return Loss(LATE, 0, 100, FOR_GOOD, 0, lasting, note)


def _ms(seconds: float) -> int:
    return round(1000 * seconds)


def weights_of(servers: Sequence[Mapping[str, Any]], of_all_backups: bool = False) -> List[int]:
    """Return the weights of the servers that get connections while all are up: of backups only the first, alone.

    :param of_all_backups: whether the backend has HAProxy's `option allbackups`: then all of them do
    """
    weighted = [server for server in servers if server["weight"]]
    first = [server["weight"] for server in weighted if not server["backup"]]
    return first or [server["weight"] for server in weighted][: None if of_all_backups else 1]


def losses_of(backend: Mapping[str, Any], engine: str, timeouts: Timeouts) -> List[Loss]:
    """Return what follows from the loss of one server of a service, or of a route."""
    of_all = engine != engines.AGENT and any(map(ALL_BACKUPS.fullmatch, backend["backend_lines"]))
    weights = weights_of(backend["servers"], of_all)
    has_standby = len(weights) < sum(server["weight"] > 0 for server in backend["servers"])
    return losses(rules_of(backend, engine, timeouts), weights, has_standby)


def of_plan(
    drafted: Plan, given: Sequence[Mapping[str, Any]], kept: drill_records.Kept = drill_records.NONE
) -> List[str]:
    """Return the forecast of lost servers, in lines. Those of direct return have no balancer that tries another one.

    :param given: the members, as `planner` takes them
    :param kept: the records of drills
    """
    holders = {vip.address: {name: drafted.members[name].engine for name in vip.order} for vip in drafted.vips}

    def drilled(service: str, loss: Loss) -> str:
        subjects = [
            drill_records.Subject(vip, DRILLED_AS[loss.event], members, loss.window, service=service)
            for vip, members in holders.items()
            if loss.event in DRILLED_AS
        ]
        found = [each for each in (drill_records.measured(kept, subject) for subject in subjects) if each]
        return f"; {found[0].words}" if found else ""

    serving = {name: member for name, member in drafted.members.items() if member.balancer.services}
    variables = {member["name"]: member.get("timeouts", {}) for member in given}
    of_engine = {each.engine: timeouts_of(each.engine, variables[name]) for name, each in serving.items()}
    for member in serving.values():
        direct_ones = [service["name"] for service in direct_plane.services(member.direct)]
        balanced = [each for each in member.balancer.services if each["name"] not in direct_ones]
        return table(balanced, of_engine, drilled)
    return []


def table(
    services: Sequence[Dict[str, Any]],
    of_engine: Mapping[str, Timeouts],
    drilled: Drilled = lambda _service, _loss: "",
) -> List[str]:
    """Return the forecast of lost servers in lines: those of which the same is to be said have one block.

    :param of_engine: the timeouts of each engine that a member runs
    :param drilled: what drills have measured of a service, in words
    """
    blocks: Dict[Tuple[str, ...], List[str]] = {}
    sharing: Dict[str, List[str]] = {}
    for service in services:
        sharing.setdefault(service["backend"], []).append(service["name"])
    for service in services:
        for _place, backend in backends(service, ""):
            if weights_of(backend["servers"]):
                names = blocks.setdefault(tuple(_block(backend, of_engine, drilled)), [])
                names += [backend["name"], *(sharing.get(backend["name"], []) if backend is service else [])]
    return [line for block, names in blocks.items() for line in (f"{', '.join(names)}: {block[0]}", *block[1:])]


def _block(backend: Dict[str, Any], of_engine: Mapping[str, Timeouts], drilled: Drilled) -> Iterator[str]:
    count = len(backend["servers"])
    yield f"{count} server{'s' if count > 1 else ''}, assumed up, check {backend['check']['type']}"
    found: Dict[str, List[str]] = {}
    for engine, timeouts in of_engine.items():
        for loss in losses_of(backend, engine, timeouts):
            found.setdefault(f"{_text(loss)}{drilled(backend['name'], loss)}", []).append(engine)
    for text, having in found.items():
        yield text if len(having) == len(of_engine) else f"{text}; with the engine {', '.join(having)}"


def _text(loss: Loss) -> str:
    length = "for good" if loss.window == FOR_GOOD else f"for {loss.window} ms"
    parts = []
    if loss.late:
        parts.append(f"{loss.late} % of new connections up to {loss.worst} ms late {length}")
    if loss.failed:
        parts.append(f"{loss.failed} % of new connections fail {length}")
    if loss.event != BACK and not parts and not (loss.event == LATE and loss.note):
        parts.append("no new connection late")
    parts += [each for each in (loss.note,) if each]
    return f"  {loss.event:<20} {'; '.join(parts)}; lasting ones {loss.lasting}"
