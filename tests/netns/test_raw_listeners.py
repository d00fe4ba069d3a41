# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A firewall is opened where HAProxy listens: raw lines are shown to it, and the kernel says where that is."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy as _haproxy
from support.netns.links import PORT, temporary_link
from support.netns.two_servers import ELSEWHERE
from support.rendering import render
from support.waiting import LIMIT_S, until

FAMILY = {"runtime_socket": "", "log_targets": [], "authorities": ""}
FRONTEND = ["frontend more", "    mode http", "    http-request return status 200"]
# Each kind of raw lines that listens, and where HAProxy does then, besides the service.
KINDS = {
    "bind": [*FRONTEND, "    bind :8001", "    bind 192.0.2.1:8002,127.0.0.1:8003"],
    "ports": [*FRONTEND, "    bind :8001-8004"],
    "IPv6": [*FRONTEND, "    bind ipv6@:8001", "    bind :::8002 v4v6", "    bind [2001:db8::1]:8003"],
    "interface": [*FRONTEND, "    bind :8001 interface eth0"],
    "threads": [*FRONTEND, "    bind :8001 thread 1"],
    "syslog": ["log-forward syslog", "    dgram-bind :514", "    bind :1514", "    log 192.0.2.9:514 local0"],
    "peers": ["peers mine", "    peer lb1 192.0.2.1:10000", "    peer lb2 192.0.2.2:10000"],
    "peers with a bind": ["peers mine", "    bind :10000", "    server lb1", "    server lb2 192.0.2.2:10000"],
    "socket": ["global", "    stats socket :7001", "    stats socket ipv4@127.0.0.1:7002"],
}


@pytest.fixture(scope="module")
def link():
    with temporary_link() as made:
        yield made


def listening(node):
    """Return where the programs of a node listen for other hosts: ports and protocols."""
    found = set()
    for line in node.output("ss", "-Hltun").splitlines():
        protocol, _state, _received, _sent, local, *_peer = line.split()
        address, _colon, port = local.rpartition(":")
        found |= {f"{port}/{protocol}"} if not address.startswith("127.") else set()
    return found


@pytest.mark.parametrize("lines", KINDS.values(), ids=KINDS)
def test_the_firewall_is_opened_where_haproxy_listens(link, tmp_path, lines):
    service = {"name": "web", "port": PORT, "servers": ["192.0.2.9"]}
    settings = _haproxy.settings_of({"services": [service], "extra_lines": lines, "stats_enabled": False})
    model = _haproxy.model(settings, [], "lb1")
    assert model["faults"] == []
    text = render("haproxy", "haproxy.cfg.j2", model=_haproxy.for_template(model), family=FAMILY)
    own, _begin, raw = text.partition("\n".join(lines))
    kept = [line for line in own.splitlines() if line.split()[:1] and line.split()[0] not in ELSEWHERE]
    config = tmp_path / "haproxy.cfg"
    config.write_text("\n".join([*kept, *lines, raw]))
    command = [shutil.which("haproxy"), "-db", "-L", "lb1", "-f", str(config)]
    running = subprocess.Popen(["ip", "netns", "exec", link.lb1.namespace, *command])
    try:
        until(lambda: running.poll() is not None or f"{PORT}/tcp" in listening(link.lb1))
        ports = [str(port) for port in (PORT, *model["ports"], *(each["port"] for each in model["restricted_ports"]))]
        assert listening(link.lb1) == {port if "/" in port else f"{port}/tcp" for port in ports}
    finally:
        running.terminate()
        running.wait(LIMIT_S)
