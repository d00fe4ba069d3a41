# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the balancers of both engines log of those who ask only whether they serve: nothing."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import subprocess
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils import _agent
from support import waiting
from support.plans import pods
from support.ports import free_ports

PACKAGE = os.path.dirname(os.path.dirname(_agent.__file__))
OF_A_HOST = re.compile(r"^ +(?:user|group|chroot|stats socket|server) .*\n", re.MULTILINE)
ASKED = 20  # times each
# What probes, checks and Prometheus ask, by the port of the plan.
ASKS = {9444: "/haproxy_ready", 9454: "/haproxy_monitor", 29445: "/metrics"}
CLIENTS = 9445


def on_free_ports(text):
    """Return a file with other ports, and each of those by the one that it replaces."""
    ports = dict(zip([*ASKS, CLIENTS], free_ports(len(ASKS) + 1)))
    for port, free in ports.items():
        text = re.sub(rf"\b{port}\b", str(free), text)
    return text, ports


def status_of(port, path):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=waiting.LIMIT_S)
    try:
        client.request("GET", path)
        return client.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        client.close()


def asked(command, ports, log, of_client="", **options):
    """Ask a balancer all the time, and return what it logs meanwhile. Then be its client.

    :param of_client: what it logs of that
    """
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, **options)
    try:
        waiting.until(lambda: status_of(ports[9444], ASKS[9444]) == 200 or process.poll() is not None, log.read_text)
        begin = len(log.read_text())
        for port, path in [*ASKS.items()] * ASKED:
            assert status_of(ports[port], path) in (200, 503)
            socket.create_connection(("127.0.0.1", ports[port]), waiting.LIMIT_S).close()
        found = log.read_text()[begin:]
        # There is no server. A client is not logged whose data has not arrived when it is sent away.
        waiting.until(
            lambda: status_of(ports[CLIENTS], "/") or of_client in log.read_text(), "its client is not logged"
        )
        return found
    finally:
        process.terminate()
        process.wait()


@pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is not installed")
def test_haproxy_logs_its_clients_and_nobody_who_asks_for_it(tmp_path):
    text, ports = on_free_ports(OF_A_HOST.sub("", pods.text("haproxy.cfg")))
    config, log = tmp_path / "haproxy.cfg", tmp_path / "log"
    config.write_text(text)
    assert asked(["haproxy", "-db", "-f", config], ports, log, " masters ") == ""


def test_the_agent_logs_nobody_who_asks_for_it(tmp_path):
    text, ports = on_free_ports(pods.text("proxy.json", engine="agent"))
    config = tmp_path / "proxy.json"
    config.write_text(text.replace("/run/onprem-lb-proxy/", f"{tmp_path}/"))
    command = [sys.executable, "-m", "_agent.cli", "proxy", "--config", str(config)]
    said = asked(command, ports, tmp_path / "log", cwd=PACKAGE)
    assert [line for line in said.splitlines() if "127.0.0.1" in line] == []
