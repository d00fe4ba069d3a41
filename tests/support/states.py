# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts for tests of saved states: a systemd that is a table of units, and files that are written in one line each."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Sequence, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._host.states.snapshot import File, Snapshot, Unit

CONFIGS = {"haproxy": "/etc/haproxy/haproxy.cfg", "keepalived": "/etc/keepalived/keepalived.conf"}
HAPROXY_UNIT = "/etc/systemd/system/haproxy.service.d/onprem-lb.conf"
KEEPALIVED_UNIT = "/etc/systemd/system/keepalived.service.d/onprem-lb.conf"
MARK = "# Managed by Ansible, onprem.lb.\n"
RUNS, STOPPED = Unit(True, True), Unit(False, False)
INSTANCE = {
    "name": "vip",
    "interface": "eth0",
    "vrid": 51,
    "version": 2,
    "priority": 100,
    "preempt": True,
    "advert_interval": 1.0,
    "auth_pass": "secret",
    "multicast": False,
    "source": "",
    "addresses": ["192.0.2.10/24"],
    "peers": ["192.0.2.12"],
}


def file(path: str, content: str = MARK, mode: int = 0o644) -> File:
    return File(path, mode, 0, 0, content=content.encode())


def native(served: str = "one", routed: str = "one", asked: str = "", **units: Unit) -> Snapshot:
    """Return a member with haproxy and keepalived; each configuration is its mark and a word.

    :param asked: what keepalived asks of the host
    """
    files = [
        file(CONFIGS["haproxy"], f"{MARK}{served}\n", 0o640),
        file(CONFIGS["keepalived"], f"{MARK}{asked}vrrp_instance vip {{ {routed} }}\n", 0o600),
        file(HAPROXY_UNIT),
        file(KEEPALIVED_UNIT),
    ]
    running = {"haproxy.service": RUNS, "keepalived.service": RUNS, "onprem-lb-vrrp.service": STOPPED}
    running.update({f"{name}.service": unit for name, unit in units.items()})
    return Snapshot(CONFIGS, files, running, [INSTANCE])


VIP, VIP6 = "203.0.113.10", "2001:db8:ffff::10"
R1, R2 = "192.0.2.1", "198.51.100.1"
FRR_CONF, GATE_CONF = "/etc/frr/frr.conf", "/etc/onprem-lb-agent/anycast.json"
FRR_DROP_IN, GATE_UNIT = (
    "/etc/systemd/system/frr.service.d/onprem-lb.conf",
    "/etc/systemd/system/onprem-lb-anycast.service",
)
DOWN_FILE = {"name": "haproxy_down", "type": "file", "file": "/run/haproxy.down"}


def gate(vips: Sequence[str] = (VIP,), checks: Sequence[Dict[str, Any]] = (DOWN_FILE,)) -> str:
    """Return anycast.json; each VIP tracks all checks."""
    track = [check["name"] for check in checks]
    return json.dumps({"vips": [{"address": vip, "name": vip, "track": track} for vip in vips], "checks": [*checks]})


def frr(peers: Sequence[str] = (R1,), vips: Sequence[str] = (VIP,), password: str = "one") -> str:
    """Return frr.conf, which FRR shows so when it runs it."""
    neighbours = [line for peer in peers for line in (f" neighbor {peer} remote-as 64601", f" neighbor {peer} {{}}")]
    prefixes = [f"ip prefix-list onprem-vips seq {5 * at} permit {vip}/32" for at, vip in enumerate(vips, 1)]
    lines = [*prefixes, "router bgp 64512", " bgp router-id 192.0.2.11", *neighbours, "exit"]
    return MARK + "\n".join(lines).replace("{}", f"password {password}") + "\n"


def announcing(served: str = "one", conf: str = "", config: str = "", **units: Unit) -> Snapshot:
    """Return a member with haproxy that announces its VIPs by FRR and the health gate.

    :param conf: frr.conf
    :param config: of the gate
    """
    files = [
        file(CONFIGS["haproxy"], f"{MARK}{served}\n", 0o640),
        file(HAPROXY_UNIT),
        file(FRR_DROP_IN),
        file(FRR_CONF, conf or frr(), 0o640),
        file("/etc/frr/daemons", f"{MARK}bgpd=yes\n", 0o640),
        file(GATE_CONF, config or gate(), 0o600),
        file(GATE_UNIT),
        file("/usr/local/lib/onprem-lb-anycast/agent.pyz", "agent"),
    ]
    running = {"haproxy": RUNS, "keepalived": STOPPED, "onprem-lb-vrrp": STOPPED}
    running.update(
        {
            "frr": RUNS,
            "onprem-lb-anycast": RUNS,
            **{name.replace("gate", "onprem-lb-anycast"): unit for name, unit in units.items()},
        }
    )
    return Snapshot(CONFIGS, files, {f"{name}.service": unit for name, unit in running.items()}, [], served=[VIP])


class Systemd:
    """Answers `systemctl show`, and records what else it is asked for."""

    def __init__(self, **active: bool) -> None:
        self.active = {f"{name}.service": state for name, state in active.items()}
        self.asked: List[str] = []
        self.fails: Dict[str, str] = {}  # by the beginning of a command: what it says

    def run_command(self, command: List[str], **_options: Any) -> Tuple[int, str, str]:
        line = " ".join(command)
        if command[:2] == ["systemctl", "show"]:
            return 0, "\n\n".join(self._shown(unit) for unit in command[3:]), ""
        self.asked.append(line)
        said = next((text for begin, text in self.fails.items() if line.startswith(begin)), "")
        if said:
            return 1, "", said
        for verb, state in (("start", True), ("restart", True), ("stop", False)):
            if command[:2] == ["systemctl", verb]:
                self.active.update(dict.fromkeys(command[2:], state))
        return 0, "", ""

    def get_bin_path(self, _name: str) -> str:
        return ""

    def _shown(self, unit: str) -> str:
        state = "active" if self.active.get(unit) else "inactive"
        enabled = "enabled" if unit in self.active else "disabled"
        return f"Id={unit}\nActiveState={state}\nUnitFileState={enabled}"
