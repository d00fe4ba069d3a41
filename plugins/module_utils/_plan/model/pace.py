# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How fast a balancer finds that a server is lost, if the user does not say: the defaults of checks and connections.

A lost packet must not look like a lost server. TCP repeats a lost SYN after a second, which is longer than a check
may take here: so a server is down only after six checks without an answer, which are two seconds.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

# Until another server is tried: a SYN that was lost is sent again after a second, and may still arrive.
CONNECT_S = 1.05
ANSWER_S = 0.28  # for the answer to a check
CONNECT, ANSWER = (f"{1000 * seconds:.0f}ms" for seconds in (CONNECT_S, ANSWER_S))  # as haproxy.cfg has them

INTERVAL, FALL = 0.2, 6
CHECKS_PER_SECOND = 500  # of one service, at most: with more servers the interval is longer
LONGEST_PAUSE = 3600  # which the agent accepts
# Whoever sets one of these keeps what the others were before they became faster.
FORMER: Mapping[str, float] = {"interval": 2, "fall": 3, "fast_interval": 0}


def completed(check: Mapping[str, Any], servers: int) -> Dict[str, Any]:
    """Return a check with the pace that the user does not set.

    :param check: None is the value of what is not set
    :param servers: of its service
    """
    interval = max(INTERVAL, servers / CHECKS_PER_SECOND)
    is_own = any(check[key] is not None for key in FORMER)
    usual = FORMER if is_own else {"interval": interval, "fall": FALL, "fast_interval": 0}
    return {**check, **{key: value for key, value in usual.items() if check[key] is None}}


def of_agent(check: Mapping[str, Any], connect: float, limit: float) -> Dict[str, Any]:
    """Return a check as the agent has it: while a server does not answer, it is asked as often as HAProxy asks it.

    :param connect: how long a connection may take
    :param limit: for the whole of a run
    """
    return {**check, "timeout": limit, "fast_interval": agents_pause(check, connect, limit)}


def agents_pause(check: Mapping[str, Any], connect: float, limit: float) -> float:
    """Return how long the agent pauses after a run without an answer, which takes longer than HAProxy's."""
    haproxys_run = min(connect, check["interval"])
    pause = round((check["fast_interval"] or check["interval"]) + haproxys_run - limit, 3)
    return min(LONGEST_PAUSE, max(0, pause))
