# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The status socket of the proxy: an empty request returns the report, others change a server's state or reload.

A request is one JSON mapping: ``{"server": "SERVICE/SERVER", "order": "ready|drain|maint"}``, or
``{"order": "reload"}``. The answer is ``{"done": SENTENCE}`` or ``{"refused": SENTENCE}``. The client shuts down its
sending side after a request.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional

from ...config.schema import nearest
from ...runtime import status_socket
from ...runtime.request_server import Answer, Answered
from ..settings import ADMIN_STATES
from .server_states import Health

MAX_REQUEST = 4096  # bytes of a request
RELOAD = {"order": "reload"}

Reply = Dict[str, Any]
WhenExecuted = Callable[[Callable[[int], None]], None]
# Applies the configuration file, then calls with why it is refused, None if it is in force.
Reload = Callable[[Callable[[Optional[str]], None]], None]


def no_reload(done: Callable[[Optional[str]], None]) -> None:
    """Refuse, as a proxy that has no configuration file."""
    done("this proxy has no configuration file.")


def answers(
    report: Callable[[], Answered],
    obey: Callable[[Any], Reply],
    when_executed: WhenExecuted,
    reload: Reload = no_reload,
    late_in_words: Optional[Callable[[int], str]] = None,
) -> Answer:
    """Return what answers requests at the socket.

    :param when_executed: calls once the workers have executed an order, with how many have not in time
    :param late_in_words: returns a sentence about those, if they are something else than workers
    """
    in_words = late_in_words or _late_workers

    def answer(received: bytes, ended: bool) -> Optional[Answered]:
        if not ended and len(received) <= MAX_REQUEST:
            return None
        if not received:
            return report()
        wanted = _request(received)
        if wanted == RELOAD:
            return lambda reply: reload(lambda refused: reply(status_socket.document(_reloaded(refused))))
        found = obey(wanted)
        if "done" not in found:
            return status_socket.document(found)
        return lambda reply: when_executed(lambda late: reply(status_socket.document(_executed(found, late, in_words))))

    return answer


def _reloaded(refused: Optional[str]) -> Reply:
    return {"refused": refused} if refused else {"done": "The configuration is in force."}


def _executed(found: Reply, late: int, in_words: Callable[[int], str]) -> Reply:
    """Return a reply with what is still to be done."""
    return {"done": f"{found['done']} {in_words(late)}"} if late else found


def _late_workers(late: int) -> str:
    workers = "1 worker has" if late == 1 else f"{late} workers have"
    return f"{workers} not executed it yet."


def _request(received: bytes) -> Any:
    try:
        return json.loads(received)
    except (ValueError, RecursionError):
        return None


def execute(health: Health, request: Any) -> Reply:
    """Change the state of a server; return the answer."""
    key, order = (request.get("server"), request.get("order")) if isinstance(request, dict) else (None, None)
    if not isinstance(key, str) or order not in ADMIN_STATES:
        return {"refused": f"a server and one of {', '.join(ADMIN_STATES)} are required."}
    if key not in health:
        return {"refused": _unknown(key, health.known())}
    health.command(key, order)
    return {"done": f"{key} is {health[key].state}."}


def _unknown(key: str, known: List[str]) -> str:
    near = nearest(key, known)
    return f"there is no server {key}: {f'did you mean {near}?' if near else 'write it as SERVICE/SERVER.'}"


def request(path: str, server: str, order: str) -> str:
    """Make a running proxy change the state of a server; return its answer. Raises status_socket.Refused.

    :param server: SERVICE/SERVER
    """
    answer = status_socket.fetch(path, request=json.dumps({"server": server, "order": order}).encode())
    if "done" not in answer:
        raise status_socket.Refused(answer.get("refused", f"what answers at {path} is not a proxy."))
    return str(answer["done"])
