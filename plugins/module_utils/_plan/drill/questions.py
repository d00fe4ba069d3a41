# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the probe asks through a VIP, so that only an answer counts. Pure; runs on the controller.

A connection alone proves little: the kernel accepts it for a balancer that hangs, and the balancer for servers that do
not answer. So the probe asks as a client would, by what is known of the service: its mode and TLS, its check where that
asks the port of the servers itself, or else the port. Before the drill each question is tried. Where nothing is known,
or nothing comes back, the probe connects only, and the report says so.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from ..._shared import events
from ..model import bind_line, direct_plane

HTTP, HTTPS = "http", "https"
HTTP_PORTS, TLS_PORTS = (80, 8080), (443, 6443, 8443)  # of services of which nothing else is known
CONNECTS, SENT = "connects only", "drill_send"
HEADER = "PROXY UNKNOWN\r\n"  # of a proxy's own connection: who connects is the client
HTTP_REQUEST = re.compile(r"[A-Z]+ \S+ HTTP/1\.[01](\r?\n|$)")

Service = Mapping[str, Any]


class Question(NamedTuple):
    """What is sent through a VIP.

    :ivar words: for the report
    :ivar send: what the service's settings say; what the user has it send may be a secret, and is no part of a question
    :ivar gateway_errors_fail: whether HTTP's 502, 503 and 504 are no answers
    :ivar lasting_port: for the connections that last: of a service whose servers keep them, if the VIP has one
    """

    vip: str
    port: int
    words: str
    send: str = ""
    tls: bool = False
    server_name: str = ""
    gateway_errors_fail: bool = True
    lasting_port: int = 0

    @property
    def asks(self) -> bool:
        return self.tls or bool(self.send) or self.words == SENT


def questions(plans: Sequence[Mapping[str, Any]], send: str = "") -> List[Dict[str, Any]]:
    """Return what to try through each VIP, the likeliest first, all of it at one port.

    :param plans: of each pair or cluster, as `layout_plans` returns them
    :param send: what the user has the probe send
    """
    found: List[Question] = []
    for plan in plans:
        vips = dict.fromkeys(vip for vip, _port in plan["targets"])
        found += [_lasting(one, plan) for vip in vips for one in _of_vip(plan, vip, send)]
    return [question._asdict() for question in found]


def at(plans: Sequence[Mapping[str, Any]], targets: Sequence[Sequence[Any]]) -> List[Dict[str, Any]]:
    """Return what to try at targets at which something listens, whether a plan knows it or not.

    :param targets: ``[VIP, port]`` of each
    """
    known = {vip: plan["members"] for plan in plans for vip, _port in plan["targets"]}
    vips = dict.fromkeys(vip for vip, _port in targets)
    return questions(
        [{"targets": [each for each in targets if each[0] == vip], "members": known.get(vip, {})} for vip in vips]
    )


def ask(rounds: Sequence[Mapping[str, Any]], tried: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Return the rounds of a drill, each with its question, and whether that shows what the event costs.

    :param tried: the results of a loop over `questions`, in which `vip_probe` tried each
    """
    asked = {vip: (question._asdict(), question.asks) for vip, question in _chosen(tried).items()}
    return [
        {
            **one,
            "question": asked[one["vip"]][0],
            "measured": asked[one["vip"]][1] or one["event"] not in events.ACCEPTING,
        }
        for one in rounds
    ]


def _chosen(tried: Sequence[Mapping[str, Any]]) -> Dict[str, Question]:
    """Return the question of each VIP: the first that was answered."""
    found: Dict[str, Question] = {}
    for result in tried:
        question = Question(**{key: result["item"][key] for key in Question._fields})
        answered = _answered(question, result)
        known = found.get(question.vip)
        if known is None or (answered.asks and not known.asks):
            found[question.vip] = answered
    return found


def _answered(question: Question, result: Mapping[str, Any]) -> Question:
    """Return a question as the drill may ask it: what its service answers now counts as an answer."""
    if not question.asks or question.words == SENT or result["failed_attempts"] < result["tried"]:
        return question
    if result["failures"].get("unavailable"):
        return question._replace(words=f"{question.words}, any status", gateway_errors_fail=False)
    return question._replace(words=f"{CONNECTS}: no answer to {question.words}", send="", tls=False, server_name="")


def service_of(plan: Mapping[str, Any], vip: str, send: str) -> Optional[Service]:
    """Return the service of a VIP that is asked; None where its balancer is not ours."""
    services = _services(plan, vip)
    return services[_port(services, send)] if services else None


def _of_vip(plan: Mapping[str, Any], vip: str, send: str) -> List[Question]:
    services = _services(plan, vip)
    port = _port(services, send)
    if send:
        return [Question(vip, port, SENT, gateway_errors_fail=False)]
    plain = [_question(vip, port, kind, services[port]) for kind in _kinds(port, services[port])]
    return [each for one in plain for each in _ways(one, services[port])] or [Question(vip, port, CONNECTS)]


def _lasting(question: Question, plan: Mapping[str, Any]) -> Question:
    """Return a question with the port for the connections that last. A draft, which nobody drills, has no planes."""
    planes = [member["direct"] for member in plan["members"].values() if member.get("direct")]
    kept = direct_plane.kept_ports(planes[0], question.vip) if planes else []
    return question._replace(lasting_port=question.port if question.port in kept else min(kept, default=question.port))


def _ways(plain: Question, service: Optional[Service]) -> List[Question]:
    """Return how a service may be asked that expects the header of a proxy from some or all. TLS is asked without."""
    headed = plain._replace(words=f"{plain.words} behind a PROXY header", send=HEADER + plain.send)
    from_some, from_all = bool(service and service.get("accept_proxy")), bind_line.is_behind_proxy(service or {})
    return [*([] if from_all else [plain]), *([headed] if (from_some or from_all) and not plain.tls else [])]


def sent(question: Mapping[str, Any], send: str) -> str:
    """Return what the probe sends for a question, as the filters return it."""
    return _whole(send) if question["words"] == SENT else str(question["send"])


def _whole(send: str) -> str:
    """Return what the user sends; a template takes the CR and the last LF away, without which HTTP waits for more."""
    if not HTTP_REQUEST.match(send):
        return send
    head, *body = re.split(r"\r?\n\r?\n", send, maxsplit=1)
    return "\r\n".join([*head.splitlines(), "", "".join(body)])


def _services(plan: Mapping[str, Any], vip: str) -> Dict[int, Optional[Service]]:
    return {port: _service_at(plan, vip, port) for address, port in plan["targets"] if address == vip}


def _port(services: Mapping[int, Optional[Service]], send: str) -> int:
    """Return the port to ask: the first of which is known how, and that lets everybody in, and as often as they ask."""
    services = {port: each for port, each in services.items() if not (each or {}).get("rate_limit")} or services
    known = [port for port, service in services.items() if kind_of(service) and not (service or {}).get("allow")]
    likely = [port for port, service in services.items() if _kinds(port, service)]
    return next(iter([*([] if send else [*known, *likely]), *services]))


def _kinds(port: int, service: Optional[Service]) -> List[str]:
    """Return what clients may speak, the likeliest first."""
    usual = [HTTP] if port in HTTP_PORTS else [HTTPS, HTTP] if port in TLS_PORTS else []
    kind = kind_of(service)
    return [kind] if kind else usual


def _question(vip: str, port: int, kind: str, service: Optional[Service]) -> Question:
    asked = _own_check(service) if service else {}
    if kind == HTTPS:
        return Question(vip, port, f"TLS at {port}", tls=True, server_name=asked.get("sni") or asked.get("host") or "")
    host = asked.get("host") or (f"[{vip}]" if ":" in vip else vip)
    path = (asked.get("path") or "/").partition("?")[0]  # what follows may be a secret
    lines = (f"GET {path} HTTP/1.1", f"Host: {host}", "User-Agent: onprem.lb", "Connection: close", "", "")
    return Question(vip, port, f"HTTP at {port}", send="\r\n".join(lines))


def kind_of(service: Optional[Service]) -> str:
    """Return what clients of a service speak, HTTP or HTTPS; nothing where its settings do not say it."""
    if not service:
        return ""
    if service["tls"] or (service["routes"] and service["mode"] != HTTP):  # which are by the name in TLS
        return HTTPS
    kind = _own_check(service).get("type", "")
    to_servers = {word for server in service["servers"] for option in server["options"] for word in option.split()}
    if service["mode"] == HTTP or (kind == HTTPS and "ssl" in to_servers):
        return HTTP
    return kind if kind in (HTTP, HTTPS) else ""


def _own_check(service: Service) -> Mapping[str, Any]:
    """Return the check, or the step of it, that asks the port of the servers: another one may speak otherwise."""
    check, ports = service["check"], {None, 0, *(server["port"] for server in service["servers"])}
    return next((step for step in check["steps"] or [check] if step["port"] in ports), {})


def _service_at(plan: Mapping[str, Any], vip: str, port: int) -> Optional[Service]:
    """Return the service of a balancer that clients of a VIP reach at a port."""
    return next((one for one in _reached(plan, vip, port)), None)


def _reached(plan: Mapping[str, Any], vip: str, port: int) -> Iterator[Service]:
    wildcard = "::" if ":" in vip else "*"
    for member in plan["members"].values():
        redirect = member["balancer"]["redirect"] or {"vips": [], "ports": {}}
        ports = {int(key): to for key, to in redirect["ports"].items()} if vip in redirect["vips"] else {}
        for service in json.loads(member["balancer"]["services"]):
            bound = {wildcard, vip} & set(service["bind"])
            if bound and service["port"] == ports.get(port, port):
                yield service
            elif bound and service["tls"] and service["tls"]["redirect"] == port:
                yield {**service, "tls": None, "mode": HTTP}
