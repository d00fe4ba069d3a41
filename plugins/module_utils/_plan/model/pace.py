# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How fast a balancer finds that a server is lost, if the user does not say: the defaults of checks and connections.

A lost packet must not look like a lost server. TCP repeats a lost SYN after a second, which is longer than a check
may take here: so a server is down only after six checks without an answer, which are two seconds.

Neither must a slow server. Whoever answers later than such a check allows may be lost or only late, and nobody knows
within these two seconds. So there is a second check of each server, the fallback's, which waits for longer. While no
server passes the first one, those that pass the second one get the connections.

Neither must a slow server lose the connections that it has. With `shutdown_sessions` they end when it is down, and the
agent does that when the second check has failed. HAProxy ends those of a backend with that backend's own check: so
there the second check is the only one.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

# Until another server is tried: a SYN that was lost is sent again after a second, and may still arrive.
CONNECT_S = 1.05
FORMER_CONNECT_S = 5  # which limits the agent's check of a user's own pace as in 1.0.0
ANSWER_S = 0.28  # for the answer to a check
CONNECT, ANSWER = (f"{1000 * seconds:.0f}ms" for seconds in (CONNECT_S, ANSWER_S))  # as haproxy.cfg has them

LATE_S = 10  # for the answer to a check of the fallback, and to one of a user's own pace, as in 1.0.0
LATE = f"{LATE_S}s"

INTERVAL, FALL = 0.2, 6
CHECKS_PER_SECOND = 500  # of one service, at most: with more servers the interval is longer
LONGEST_PAUSE = 3600  # which the agent accepts
# Whoever sets one of these keeps what the others were before they became faster.
FORMER: Mapping[str, float] = {"interval": 2, "fall": 3, "fast_interval": 0}
# How many of the usual intervals the fallback's check pauses: longer than CONNECT_S, as HAProxy limits a connection by
# it. A server that refuses is down for both at about the same time.
FALLBACK_PAUSE, FALLBACK_FALL = 5.5, 2


def completed(check: Mapping[str, Any], servers: int) -> Dict[str, Any]:
    """Return a check with the pace that the user does not set.

    :param check: None is the value of what is not set
    :param servers: of its service
    """
    interval = max(INTERVAL, servers / CHECKS_PER_SECOND)
    is_own = any(check[key] is not None for key in FORMER)
    usual = FORMER if is_own else {"interval": interval, "fall": FALL, "fast_interval": 0}
    return {**check, **{key: value for key, value in usual.items() if check[key] is None}}


def of_agent(backend: Mapping[str, Any], connect: float, answer: float) -> Dict[str, Any]:
    """Return a check as the agent has it: while a server does not answer, it is asked as often as HAProxy asks it.

    :param backend: a service, or a route of it, as `read_services` returns them; so in all of these functions
    :param connect: how long a connection may take
    :param answer: the same for the answer to a check
    """
    check, limit = backend["check"], agents_limit(backend, connect, answer)
    late = LATE_S if has_fallback(backend, answer) else 0
    return {**check, "timeout": limit, "late_timeout": late, "fast_interval": agents_pause(check, connect, limit)}


def haproxys_limit(backend: Mapping[str, Any], answer: float) -> float:
    """Return how long the answer to a check may take with HAProxy."""
    return LATE_S if answer == ANSWER_S and not is_usual(backend) else answer


def agents_limit(backend: Mapping[str, Any], connect: float, answer: float) -> float:
    """Return the limit of a run: HAProxy limits the connection and the rest separately, the agent both together."""
    is_former = connect == CONNECT_S and not is_usual(backend)
    longest = FORMER_CONNECT_S if is_former else connect
    return min(longest, haproxys_limit(backend, answer)) or longest


def agents_pause(check: Mapping[str, Any], connect: float, limit: float) -> float:
    """Return how long the agent pauses after a run without an answer, which takes longer than HAProxy's."""
    haproxys_run = min(connect, check["interval"])
    pause = round((check["fast_interval"] or check["interval"]) + haproxys_run - limit, 3)
    return min(LONGEST_PAUSE, max(0, pause))


def is_usual(backend: Mapping[str, Any]) -> bool:
    """Return whether servers are checked at the pace of these defaults, with which a late one does not keep up."""
    check, of_many = backend["check"], len(backend["servers"]) / CHECKS_PER_SECOND
    is_paced = INTERVAL <= check["interval"] < FORMER["interval"] or check["interval"] == of_many
    return bool(is_paced and check["fall"] == FALL and not check["fast_interval"])


def has_fallback(backend: Mapping[str, Any], answer: float) -> bool:
    """Return whether servers that are late get connections while none is up: not where the user sets the limits.

    :param answer: how long the answer to a check may take
    """
    return bool(backend["check"]["type"] != "none" and is_usual(backend) and answer == ANSWER_S)


def may_have_second_backend(backend: Mapping[str, Any]) -> bool:
    """Return whether HAProxy may have a fallback for a backend, if neither raw lines nor timeouts set the limits."""
    return is_usual(backend) and not backend["check"]["shutdown_sessions"]


def of_fallback(check: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the fallback's check of the same servers. A failed one is made again after the usual interval."""
    interval = round(FALLBACK_PAUSE * check["interval"], 3)
    return {**check, "interval": interval, "fast_interval": check["interval"], "fall": FALLBACK_FALL}
