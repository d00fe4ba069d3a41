# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules return on the members of a pair and of a cluster, for `support.recorded_plays`."""

from __future__ import annotations

import copy
import json
from typing import Any, Callable, Dict, List, Sequence, Set

from support import members
from support.recorded_plays import Call

Facts = Dict[str, Any]
UNITS = ["haproxy.service", "keepalived.service"]
TAKEOVER = {
    "refusals": [],
    "problems": [],
    "unadoptable": [],
    "keep": [],
    "set_aside": [],
    "stop": False,
    "restart": False,
    "tables": [],
    "lost": [],
    "put_back": [],
}
PAIR = {"pair": {"lb1": {"ansible_host": "192.0.2.1"}, "lb2": {"ansible_host": "192.0.2.2"}}}
PAIR_VARIABLES = {
    "pair_vips": ["192.0.2.10/24"],
    "pair_masters": ["192.0.2.21"],
    "pair_infra_nodes": ["192.0.2.31"],
}
# A master that holds the VIPs, one that does not, and a worker: other nodes do the tasks of one of these.
CLUSTER = {
    "ipi_masters": {f"m{number}": {"ansible_host": f"192.0.2.{number}"} for number in (1, 2)},
    "ipi_workers": {"w1": {"ansible_host": "192.0.2.4"}},
}
CLUSTER_VARIABLES = {
    "ipi_cluster_name": "lab",
    "ipi_domain": "example.com",
    "ipi_api_vips": ["192.0.2.10"],
    "ipi_ingress_vips": ["192.0.2.11"],
    "ipi_auth_pass": "Zq7Zq7Zq",
}


def number_of(host: str) -> int:
    """Return the number of a member: that of its name, from 4 on for workers."""
    return int(host[-1]) + (3 if host.startswith("w") else 0)


def address(interface: str, ip: str, prefix: int, number: int) -> Facts:
    return {"interface": interface, "address": ip, "prefix": prefix, "mac": f"02:00:00:00:00:0{number}"}


def host_info(host: str, **values: Any) -> Facts:
    """Return what host_info returns on a member on which nothing runs yet, but whose packages are installed."""
    number = number_of(host)
    usual = {
        "os_family": "Debian",
        "addresses": [address("lo", "127.0.0.1", 8, 0), address("eth0", f"192.0.2.{number}", 24, number)],
        "listeners": [{"address": "0.0.0.0", "port": 22, "program": "sshd", "pid": 1, "runs_in": "ssh.service"}],
        "takeover": {name: dict(TAKEOVER) for name in ("haproxy", "keepalived", "frr")},
        "keepalived_version": "2.2.7",
        "pods_engine": "",
        "unobtainable": "",
        **{name: {} for name in ("answering", "unremovable", "obstacles", "files", "members", "followed", "held_back")},
        **dict.fromkeys(("firewall", "selinux"), False),
        "package_lists_fresh": True,
        "resolved": {},
        **{
            name: []
            for name in (
                "missing_packages",
                "missing_programs",
                "unfit",
                "expiring",
                "unrestricted_tls",
                "uncovered",
                "own_packages",
                "heard",
            )
        },
        **{
            name: []
            for name in ("recorded_packages", "static_pods", "stale", "instances", "not_following", "plane", "problems")
        },
        **{f"{name}_units": [] for name in ("existing", "enabled", "active", "restarting", "own")},
    }
    return copy.deepcopy({**usual, **values})


def running(call: Call, **values: Any) -> Facts:
    """Return what host_info returns once haproxy and keepalived run."""
    listening = [
        {"address": "0.0.0.0", "port": port, "program": "haproxy", "pid": 9} for port in (80, 443, 6443, 22623)
    ]
    found = {"active_units": UNITS, "enabled_units": UNITS, "existing_units": UNITS, "own_units": UNITS, **values}
    if len(call.given.get("units", [])) == 1:  # as the role of one program asks
        found["active_units"] = call.given["units"]
    return host_info(call.on, listeners=[{**each, "runs_in": "haproxy.service"} for each in listening], **found)


def deployment(**answers: Any) -> Dict[str, Any]:
    """Return the answers of members on which nothing runs yet, and on which everything succeeds.

    :param answers: in place of the usual ones
    """
    wrote = {"changed": True, "paths": ["/etc/some.cfg"], "stale": [], "commands": [], "unchecked": []}
    return {
        "member_lock": locked,
        "host_info": fresh_then_running(),
        "config_files": wrote,
        "member_state": {"changed": True, "postponed": True, "returned_within": 55},
        "systemd_service": {"changed": True},
        "command": {"stdout": "", "rc": 0},
        "layout_info": lambda call: {"faults": [], "held": ["192.0.2.10"] if call.on == "lb1" else [], "holders": {}},
        "agent": {"changed": True, "steps": ["write"]},
        "firewall_openings": {"changed": True, "in_force": False, "openings": []},
        "program": {"changed": True, "python": "/usr/bin/python3", "checksum": "c0ffee"},
        **answers,
    }


def fresh_then_running(**values: Any) -> Callable[[Call], Facts]:
    """Answer host_info with a fresh host, and when a role waits for its program with a running one."""

    def answer(call: Call) -> Facts:
        waits = len(call.given.get("units", [])) == 1 and "packages" not in call.given
        return running(call) if waits else host_info(call.on, **values)

    return answer


def locked(call: Call) -> Facts:
    """Return what member_lock returns of a member that nobody else has locked."""
    taken = {"taken": True, "held_by": None, "interrupted": ""}
    return {"changed": True, **({} if call.given.get("state") == "absent" else taken)}


def seen(call: Call, **values: Any) -> Facts:
    """Return what member_info returns on a member of a pair that works, of which lb1 holds the VIP."""
    number = number_of(call.on)
    return {**members.seen(number, ["192.0.2.10"] if number == 1 else []), "router": "keepalived.service", **values}


class Announcers:
    """Members that announce a VIP by BGP, of which FRR, the health gate and the record do what a run asks for.

    :ivar serving: who served after each call that may have changed that
    :ivar lost: who lost its VIPs while routers still sent to it
    """

    def __init__(self, names: Sequence[str] = ("lb1", "lb2")) -> None:
        self.shutdown: Set[str] = set()  # graceful shutdown is on
        self.withdrawn: Set[str] = set()
        self.records: Dict[str, Dict[str, str]] = {name: {} for name in names}  # by their paths
        self.down: Set[str] = set()  # whose router has no session
        self.stubborn: Set[str] = set()  # whose gate does not follow the record
        self.refusing: Set[str] = set()  # whose FRR refuses commands
        self.serving: List[Set[str]] = []
        self.lost: List[str] = []
        self.left = -1  # after how many more calls the controller is gone; -1 for never

    def answers(self, **others: Any) -> Dict[str, Any]:
        usual = {"member_lock": locked, "member_info": self.seen, "command": self.told, "config_files": self.wrote}
        answers = {**usual, "wait_for": {}, "reboot": {"changed": True}, **others}
        return {module: self._until_cut(answer) for module, answer in answers.items()}

    def _until_cut(self, answer: Any) -> Callable[[Call], Facts]:
        def called(call: Call) -> Facts:
            if self.left == 0:
                return {"unreachable": True, "msg": "the controller is gone"}
            self.left -= self.left > 0 and call.module in ("command", "config_files", "reboot")
            found = answer(call) if callable(answer) else answer
            self.serving.append(self.announcing())
            return dict(found)

        return called

    def on_lo(self) -> Set[str]:
        return {name for name, records in self.records.items() if not records or name in self.stubborn}

    def announcing(self) -> Set[str]:
        return self.on_lo() - self.withdrawn - self.down

    def seen(self, call: Call) -> Facts:
        name = call.on
        here, out = name in self.on_lo(), name in self.announcing()
        state = "Active" if name in self.down else "Established"
        sessions = [members.session(state, sent=int(out), announces=out)]
        drained, records = name in self.shutdown, self.records[name].values()
        found = members.announcer(number_of(name), {members.VIP: "serves" if here else "held_back"}, sessions)
        found["announcing"].update(drained=drained)
        return {**found, "reboot": "", "held_back": next(iter(records), {})}

    def told(self, call: Call) -> Facts:
        """Have FRR do the commands of vtysh."""
        lines = call.given["argv"][2::2]
        if call.on in self.refusing:
            return {"failed": True, "msg": "non-zero return code"}
        for line in [] if call.check else lines:
            words = line.removeprefix("no ")
            kind = self.shutdown if words == "bgp graceful-shutdown" else self.withdrawn
            adds = line.startswith("no ") == (kind is self.withdrawn)
            if words.startswith(("bgp graceful-shutdown", "redistribute connected")):
                (kind.add if adds else kind.discard)(call.on)
        return {"changed": True}

    def wrote(self, call: Call) -> Facts:
        """Write or remove the record."""
        for file in [] if call.check else call.given["files"]:
            during = "maintenance" if "maintenance" in file["path"] else "switchover"
            if file.get("state") == "absent":
                self.records[call.on].pop(file["path"], None)
            else:
                self.lost += {call.on} & self.announcing() - self.stubborn
                record = {"work": "", "done": "", **json.loads(file["content"]), "during": during}
                self.records[call.on][file["path"]] = record
        return {"changed": True}


class Living:
    """A pair that works, whose routers stop and start as a run asks for it. lb1 holds the VIP while its router runs."""

    def __init__(self, **values: Any) -> None:
        self.values = values  # of all members, beside what is usual
        self.stopped: Dict[str, str] = {}  # the record of each member whose router is stopped

    def answers(self, **others: Any) -> Dict[str, Any]:
        return {"member_lock": locked, "member_info": self.seen, "drill_event": self.moved, **others}

    def seen(self, call: Call) -> Facts:
        holder = next((name for name in ("lb1", "lb2") if name not in self.stopped), "")
        found = seen(call, held=[{"address": "192.0.2.10", "seconds": 1}] if call.on == holder else [])
        record = {**members.RECORD, "during": "maintenance", "work": "", "done": ""}
        state = "Active" if call.on == holder else "Backup"
        found["instances"] = [{**each, "state": state} for each in found["instances"]]
        return {**found, "held_back": record if call.on in self.stopped else {}, **self.values}

    def moved(self, call: Call) -> Facts:
        """Stop or start a router. One that is to start again by itself has done so when it is asked next."""
        command = call.given["command"]
        if call.check:
            return {"changed": True}
        if "enable" in command["inject"].split():
            self.stopped.pop(call.on, None)
        elif not command["revert"]:
            self.stopped[call.on] = command["inject"]
        return {"changed": True}
