# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a daemon says that it has in force is what it has read, whatever its file has become meanwhile."""

from __future__ import annotations

import hashlib
import importlib

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import file
from support.vrrp.fakes import Log

AGENT = "ansible_collections.onprem.lb.plugins.module_utils._agent"
READ, LATER = "what was read", "what was written a moment later"


class Notifier:
    def reloading(self):
        pass


@pytest.fixture(params=["vrrp", *(each for each in cli.DAEMONS if each != "proxy")])  # whose reload reads elsewhere
def daemon(request, tmp_path, monkeypatch):
    """A daemon whose file changes while it is read."""
    path = tmp_path / "config.json"
    config = importlib.import_module(f"{AGENT}.{request.param}.config")
    lifecycle = importlib.import_module(f"{AGENT}.{request.param}.lifecycle")

    def load(_path):
        path.write_text(LATER)
        return file.Found(READ, object(), [])

    monkeypatch.setattr(config, "load", load)
    monkeypatch.setattr(lifecycle.Lifecycle, "_notify_ready", lambda _self: None)
    one = object.__new__(lifecycle.Lifecycle)
    one.path, one.log, one.notifier, one.text, one.stopping = str(path), Log([]), Notifier(), "before", False
    return one


@pytest.mark.parametrize("faults, in_force", [([], READ), (["It is refused."], "before")])
def test_it_says_by_the_text_that_it_has_put_in_force(daemon, monkeypatch, faults, in_force):
    monkeypatch.setattr(daemon, "_use", lambda _settings: faults)
    daemon.reload()
    assert daemon._checksum() == hashlib.sha256(in_force.encode()).hexdigest()
