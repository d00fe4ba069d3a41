# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Raw lines that only haproxy can judge: the check before the first change refuses them in its words."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files
from support.rendering import haproxy

WEB = {"name": "web", "port": 8443, "servers": ["192.0.2.31"]}
STATISTICS = ["frontend everybody", "    bind 127.0.0.1:8405", "    stats enable"]
HAPROXY = {
    "haproxy_extra_lines: extra_lines with an unknown backend": (
        {"haproxy_extra_lines": ["frontend other", "    bind 127.0.0.1:8081", "    default_backend nobody"]},
        "unable to find required default_backend: 'nobody'",
    ),
    "haproxy_extra_lines: a second public stats page": (
        {"haproxy_extra_lines": STATISTICS},
        "'stats' statement ignored",
    ),
    "frontend lines with http-request in tcp mode": (
        {"services": [{**WEB, "frontend_lines": ["http-request deny"]}]},
        "'http-request' rules ignored for frontend 'web'",
    ),
}


def refusal(path, content):
    """Return what haproxy says of a file, as `config_files` has it checked."""
    wanted = {"path": str(path), "content": content, "mode": "0640", "state": "present", "check": "haproxy"}

    def run(command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    with pytest.raises(files.Refused) as refused:
        files.replace_all(files.changes([wanted]), shutil.which, run, os.rename, True)
    return str(refused.value)


@pytest.mark.parametrize("given, words", HAPROXY.values(), ids=HAPROXY)
def test_haproxy_refuses_lines_that_would_not_work(given, words, tmp_path):
    text = haproxy(**{"services": [WEB], **given})
    assert words in refusal(tmp_path / "haproxy.cfg", text)
