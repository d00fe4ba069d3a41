# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics that there are, and those that an expression of Prometheus names."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Set

from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import show as anycast
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import show as direct
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import show as follow
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import frr, host
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import metrics as proxy
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import show

from support import waiting

OF_BLACKBOX_EXPORTER = {"probe_ssl_earliest_cert_expiry"}
HAPROXY = """\
defaults
    mode http
    timeout connect 1s
    timeout client 1s
    timeout server 1s
frontend front
    bind unix@{socket}
    http-request use-service prometheus-exporter
    default_backend back
backend back
    server one 127.0.0.1:1 check
"""
# What is no metric: texts, labels in braces or after a grouping word, times, and the words of the language.
NO_METRIC = re.compile(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without|ignoring)\s*\([^)]*\)')
WORDS = {"and", "or", "unless", "by", "on", "bool"}


def of_agent() -> Set[str]:
    """Return what the agent and the file for node_exporter have."""
    return {
        f"{module.PREFIX}_{metric.name}"
        for module in (show, proxy, direct, follow, anycast, frr, host)
        for metric in module.METRICS  # type: ignore
    }


def of_haproxy(folder: Path) -> Set[str]:
    """Return what the exporter has that is built into the installed HAProxy."""
    path = folder / "haproxy.sock"
    (folder / "haproxy.cfg").write_text(HAPROXY.format(socket=path))
    running = subprocess.Popen([shutil.which("haproxy") or "haproxy", "-db", "-q", "-f", str(folder / "haproxy.cfg")])
    try:
        waiting.until(path.exists)
        return set(re.findall(r"^# TYPE (\S+)", _get(path), re.MULTILINE))
    finally:
        running.terminate()
        running.wait(10)


def _get(path: Path) -> str:
    connection = http.client.HTTPConnection("localhost", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    connection.request("GET", "/metrics")
    with connection.getresponse() as answer:
        return answer.read().decode()


def named(expression: str) -> Set[str]:
    """Return the metrics that an expression names."""
    found = re.findall(r"[a-zA-Z_:][\w:]*(?![\w:]*\s*\()", NO_METRIC.sub(" ", expression))
    return set(found) - WORDS
