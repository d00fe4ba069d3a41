# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The facts about a host that a plan needs. Most functions are pure parsers; the module reads the texts."""

from __future__ import annotations

import contextlib
import glob
import ipaddress
import itertools
import json
import os
import socket
import threading
import time
from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

from ..._agent.config.schema import boolean, number, text
from ..._agent.net import socket_tables
from . import processes

LOOPBACK = "lo"
SYSTEMD = "/run/systemd/system"  # exists where systemd runs, sd_booted(3)
SELINUX = "/sys/fs/selinux/enforce"  # exists where SELinux is enabled, enforcing or not
OS_RELEASE = "/etc/os-release"
# All that a run reads of a VRRP instance, of either engine; and what it is where a configuration leaves it out.
INSTANCE: Dict[str, Any] = {
    "name": "",
    "interface": "",
    "vrid": 0,
    "version": 2,
    "priority": 100,
    "preempt": True,
    "advert_interval": 1,
    "auth_pass": "",
    "multicast": False,
    "source": "",
    "addresses": [],
    "excluded_addresses": [],
    "peers": [],
}


def has_systemd() -> bool:
    return os.path.isdir(SYSTEMD)


def has_selinux() -> bool:
    return os.path.exists(SELINUX)


def addresses(ip_json: str) -> List[Dict[str, Any]]:
    """Return ``{interface, address, prefix, mac}`` for each address in the output of ``ip -json address``.

    Those of the loopback interface say nothing of who holds a VIP: each server of direct return has it there. Those
    that RFC 8981 calls temporary are left out, because they change by themselves.
    """
    return [
        {
            "interface": link["ifname"],
            "address": info["local"],
            "prefix": info["prefixlen"],
            "mac": link.get("address", ""),
        }
        for link in json.loads(ip_json or "[]")
        for info in link.get("addr_info", [])
        if info.get("local") and link["ifname"] != LOOPBACK and not info.get("temporary")
    ]


def on_loopback(ip_json: str) -> List[str]:
    """Return the addresses on the loopback interface, from which a speaker of BGP announces VIPs."""
    links = [link for link in json.loads(ip_json or "[]") if link["ifname"] == LOOPBACK]
    return [info["local"] for link in links for info in link.get("addr_info", []) if info.get("local")]


def vip_addresses(vips: Iterable[Any]) -> List[str]:
    """Return the addresses among a user's VIPs. The plan refuses the invalid ones."""
    found = []
    for item in vips:
        text = str(item.get("address", "") if isinstance(item, dict) else item).partition("/")[0]
        try:
            found.append(str(ipaddress.ip_address(text)))
        except ValueError:
            continue
    return found


def links_of(vips: Iterable[str], found: List[Dict[str, Any]]) -> Dict[str, List[str]]:
    """Return, for each interface, the VIPs within its subnets."""
    links: Dict[str, List[str]] = {}
    for vip in vips:
        for info in found:
            network = ipaddress.ip_interface(f"{info['address']}/{info['prefix']}").network
            on_link = links.setdefault(info["interface"], [])
            if ipaddress.ip_address(vip) in network and vip not in on_link:
                on_link.append(vip)
    return {interface: on_link for interface, on_link in links.items() if on_link}


def listening_sockets(table: str) -> List[Dict[str, Any]]:
    """Return ``{address, port, inode}`` for each listening socket of a /proc/net/tcp or tcp6 table."""
    sockets = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == socket_tables.LISTEN:
            address, port = fields[1].split(":")
            sockets.append({"address": socket_tables.address(address), "port": int(port, 16), "inode": fields[9]})
    return sockets


def listeners(root: str = "/proc") -> List[Dict[str, Any]]:
    """Return ``{address, port, program, pid, runs_in}`` of every listening TCP socket, as far as this user may see.

    ``runs_in`` is the unit, container or pod of the program, in words.
    """
    sockets = []
    for name in socket_tables.TABLES:
        path = os.path.join(root, name)
        if os.path.exists(path):
            with open(path, encoding="ascii") as table:
                sockets.extend(listening_sockets(table.read()))
    owners = _owners(root, {item["inode"] for item in sockets})
    found = []
    for item in sockets:
        program, pid = owners.get(item["inode"], ("unknown", 0))
        where = str(processes.runs_in(pid, root)) if pid else ""
        found.append(
            {"address": item["address"], "port": item["port"], "program": program, "pid": pid, "runs_in": where}
        )
    return sorted(found, key=lambda item: (item["port"], item["address"]))


def connections(addresses: Collection[str], root: str = "/proc") -> int:
    """Return how many TCP connections are established at some addresses of this host."""
    count = 0
    for name in socket_tables.TABLES:
        with contextlib.suppress(FileNotFoundError), open(os.path.join(root, name), encoding="ascii") as table:
            count += sum(_is_at(line.split(), addresses) for line in itertools.islice(table, 1, None))
    return count


def _is_at(fields: List[str], addresses: Collection[str]) -> bool:
    if len(fields) < 4 or fields[3] != socket_tables.ESTABLISHED:
        return False
    return socket_tables.unmapped_address(fields[1].partition(":")[0]) in addresses


def _owners(root: str, inodes: Any) -> Dict[str, Any]:
    """Return the process of each socket, without those that end meanwhile."""
    owners: Dict[str, Any] = {}
    for link in glob.glob(os.path.join(root, "[0-9]*", "fd", "*")):
        try:
            inode = os.readlink(link)[8:-1]
            if inode not in inodes or inode in owners:
                continue
            pid = link.split(os.sep)[-3]
            with open(os.path.join(root, pid, "comm"), encoding="utf-8", errors="replace") as comm:
                owners[inode] = (comm.read().strip(), int(pid))
        except OSError:
            continue
    return owners


def reachable(targets: Iterable[Tuple[str, int]], timeout: float) -> List[str]:
    """Return which of the targets accept a TCP connection, each as ``address port``."""
    reached = []
    for address, port in targets:
        try:
            with socket.create_connection((address, port), timeout):
                reached.append(f"{address} {port}")
        except OSError:
            continue
    return reached


def any_reachable(targets: Iterable[Tuple[str, int]], timeout: float) -> bool:
    """Return whether one of the targets accepts a TCP connection in time, including the resolution of its name."""
    reached = threading.Event()

    def connect(target: Tuple[str, int]) -> None:
        if reachable([target], timeout):
            reached.set()

    # Daemon threads, because a resolver without an answer tries for longer than the timeout.
    threads = [threading.Thread(target=connect, args=(target,), daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeout
    while not reached.is_set() and any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        reached.wait(0.02)
    return reached.is_set()


def is_ours(unit: str, folder: str = "/etc/systemd/system") -> bool:
    """Return whether this collection has set a unit up: by a drop-in of its own, or altogether."""
    whole = unit.startswith("onprem-lb-") and os.path.exists(os.path.join(folder, unit))
    return whole or os.path.exists(os.path.join(folder, f"{unit}.d", "onprem-lb.conf"))


def agent_config(vrrp_json: str) -> Dict[str, List[Dict[str, Any]]]:
    """Return the lists in the agent's configuration; none if it is damaged."""
    items = _mapping(vrrp_json).items()
    return {key: [each for each in value if isinstance(each, dict)] for key, value in items if isinstance(value, list)}


def _mapping(text: str) -> Dict[str, Any]:
    """Return what a file has as JSON; nothing if it is damaged."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def agent_instances(vrrp_json: str) -> List[Dict[str, Any]]:
    """Return the instances in the agent's configuration, as `keepalived_conf.instances` does."""
    found = agent_config(vrrp_json).get("instances", [])
    return [{key: _typed(each.get(key, usual), usual) for key, usual in INSTANCE.items()} for each in found]


def _typed(value: Any, usual: Any) -> Any:
    """Return a value as the agent reads it, which takes digits for a number; the usual one in place of a wrong one."""
    if isinstance(usual, list):
        return [*map(str, value)] if isinstance(value, list) else usual
    check = {bool: boolean, str: text, int: number(0, 255)}[type(usual)]
    found, wrong = check(value)
    return usual if wrong else found


def agent_checks(vrrp_json: str) -> List[Dict[str, Any]]:
    """Return the checks in the agent's configuration, a script without a user with the one that it has there."""
    whole = _mapping(vrrp_json)
    usual = {"user": whole.get("script_user", "")}
    found = [each for each in whole.get("checks") or [] if isinstance(each, dict)]
    return [{**usual, **each} if each.get("type") == "script" else each for each in found]


def members(record_json: str) -> Dict[str, List[str]]:
    """Return the addresses of each member in the record of a run; none if it is damaged."""
    items = _mapping(record_json).items()
    return {name: list(map(str, addresses)) for name, addresses in items if isinstance(addresses, list)}


def addresses_of_routers(recorded: Mapping[str, Sequence[str]], instances: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return the addresses of all members that a host knows: those in a record, and its router's peers."""
    of_record = [address for addresses in recorded.values() for address in addresses]
    peers = [peer for instance in instances for peer in instance.get("peers", [])]
    return list(dict.fromkeys([*of_record, *peers]))


def packages(record_json: str) -> List[str]:
    """Return the packages in the record of those that this collection has installed; none if it is damaged."""
    try:
        found = json.loads(record_json or "[]")
    except ValueError:
        return []
    return [str(name) for name in found] if isinstance(found, list) else []


def process_stats(root: str = "/proc") -> List[str]:
    """Return the line /proc/PID/stat of every process."""
    stats = []
    for path in glob.glob(os.path.join(root, "[0-9]*", "stat")):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                stats.append(file.read())
        except OSError:
            continue
    return stats


def children(pid: int, stats: List[str]) -> List[int]:
    """Return the processes that a process has started."""
    parents = {int(stat.split()[0]): int(stat.rpartition(")")[2].split()[1]) for stat in stats}
    return sorted(each for each, parent in parents.items() if parent == pid)


def youngest(main_pid: int, stats: List[str]) -> float:
    """Return when the youngest of a unit's main process and its children started, in seconds since boot."""
    ticks = os.sysconf("SC_CLK_TCK")
    starts = [0.0]
    for stat in stats:
        # The name is in parentheses and may contain anything; the fields after it count from 3, proc(5).
        pid, fields = int(stat.split()[0]), stat.rpartition(")")[2].split()
        if main_pid in (pid, int(fields[1])):
            starts.append(int(fields[19]) / ticks)
    return max(starts)
