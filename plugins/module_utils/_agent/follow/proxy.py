# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gives the agent's proxy the servers that it should have: by its file, which is tested, and its control socket.

A reload drains: old sessions stay with the workers that have them, new ones go to the new servers.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Sequence, Tuple

from ..config import host
from ..proxy import config
from ..proxy.settings import DOWN
from ..runtime import status_socket
from . import changes, files
from .changes import Applied, Refused
from .settings import Proxy, Server, Target

TIMEOUT = 25.0  # seconds of a reload: the proxy reads its file within 20


class Balancer:
    """``apply`` may be called at any time: it compares what is with what is wanted, and changes the difference."""

    def __init__(self, about: Proxy) -> None:
        self._about = about

    def apply(self, wanted: Sequence[Server]) -> Applied:
        """Make the nodes the servers of each service. Raises Refused."""
        if not wanted:
            raise Refused("an empty list of servers is not followed.")
        before = files.load(self._about.config)
        try:
            whole = json.loads(before)
            lines = [line for target in self._about.services for line in _follow(whole, target, wanted)]
        except (ValueError, RecursionError) as fault:
            raise Refused(f"{self._about.config} is not JSON.") from fault
        except Refused as refused:
            raise Refused(f"{self._about.config}: {refused}") from refused
        if lines:
            files.replace(self._about.config, json.dumps(whole, indent=2) + "\n", _test)
        if lines or self._is_behind():
            self._reload()
        return Applied(lines)

    def written(self) -> List[Server]:
        """Return the servers of the first service in the file. Raises Refused."""
        try:
            return servers(json.loads(files.load(self._about.config)), self._about.services[0])
        except (ValueError, RecursionError) as fault:
            raise Refused(f"{self._about.config} is not JSON.") from fault

    def answering(self) -> List[Tuple[str, bool]]:
        """Return whether each server that is checked answers, by its address. Raises Refused."""
        followed = {target.name for target in self._about.services}
        services = [each for each in self._services() if each["name"] in followed]
        known = [server for each in services for server in each["servers"] if server.get("check")]
        return [(changes.canonical(each["address"]), each["state"] != DOWN) for each in known]

    def _is_behind(self) -> bool:
        """Whether the proxy has other servers than its file, because a reload has failed."""
        text = files.load(self._about.config)
        found, _faults = config.parse(text)
        services = self._services()
        if found is None:
            return False
        known = {each["name"]: {(s["name"], s["address"]) for s in each["servers"]} for each in services}
        followed = {target.name for target in self._about.services}
        return any(
            known.get(service.name) != {(server.name, server.address) for server in service.servers}
            for service in found.services
            if service.name in followed
        )

    def _services(self) -> List[Dict[str, Any]]:
        report = self._ask()
        if "services" not in report:
            raise Refused(f"the proxy keeps the servers that it had: at {self._about.socket} answers another daemon.")
        return list(report["services"])

    def _reload(self) -> None:
        answer = self._ask(json.dumps({"order": "reload"}).encode())
        if "done" not in answer:
            raise Refused(f"the proxy keeps the servers that it had: {answer.get('refused', 'it is too old.')}")

    def _ask(self, request: bytes = b"") -> Dict[str, Any]:
        try:
            return status_socket.fetch(self._about.socket, TIMEOUT, request)
        except status_socket.Refused as refused:
            raise Refused(f"the proxy keeps the servers that it had: {refused}") from refused


def servers(whole: Any, target: Target) -> List[Server]:
    """Return the servers of a service in a configuration. Raises Refused."""
    return [_server(item) for item in _service(whole, target).get("servers") or []]


def _service(whole: Any, target: Target) -> Dict[str, Any]:
    services = whole.get("services") if isinstance(whole, dict) else None
    known = services if isinstance(services, list) else []
    mine = [each for each in known if isinstance(each, dict) and each.get("name") == target.name]
    if not mine:
        raise Refused(f"it has no service {target.name}: correct proxy.services.")
    return mine[0]


def _follow(whole: Any, target: Target, wanted: Sequence[Server]) -> List[str]:
    """Change the servers of a service in a configuration; return a line for each change."""
    mine = _service(whole, target)
    given = {_server(item): item for item in mine.get("servers") or []}
    made = changes.between(list(given), wanted)
    moved = {server.name: server.address for server in made.moved}
    kept = [_moved(item, moved.get(server.name)) for server, item in given.items() if server not in made.dropped]
    port = {"port": target.port} if target.port else {}
    like: Dict[str, Any] = next((item for item in given.values() if isinstance(item, dict)), {})
    new = [{**like, "name": server.name, "address": server.address, **port} for server in made.added]
    mine["servers"] = [*kept, *new]
    return changes.sentences(target.name, made, len(kept) + len(new))


def _server(item: Any) -> Server:
    address = item.get("address") if isinstance(item, dict) else item
    name = item.get("name") if isinstance(item, dict) else None
    return Server(str(name or address), changes.canonical(str(address)))


def _moved(item: Any, address: Any) -> Any:
    if address is None:
        return item
    return {**item, "address": address} if isinstance(item, dict) else address


def _test(path: str) -> Any:
    return " ".join(config.parse(files.load(path), path, host)[1]) or None
