# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of the scenarios is one that follow believes: .config/molecule/files/standin.py."""

from __future__ import annotations

import importlib.util
import json
import threading
import urllib.request

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import watching
from support.paths import ROOT

PATH = ROOT / ".config" / "molecule" / "files" / "standin.py"


@pytest.fixture
def standin(tmp_path):
    spec = importlib.util.spec_from_file_location("standin", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.NODES = str(tmp_path / "nodes.json")
    with open(module.NODES, "w") as file:
        json.dump({"version": 7, "nodes": {"master1": "192.0.2.1"}}, file)
    return module


@pytest.fixture
def url(standin):
    server = standin.Server(("::1", 0), standin.Handler)
    server.kind = standin.KINDS["api"]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://[::1]:{server.server_port}/api/v1/nodes?"
    server.shutdown()
    server.server_close()


def lines(url):
    request = urllib.request.Request(url, headers={"Authorization": "Bearer standin-token"})
    with urllib.request.urlopen(request) as answer:
        yield from map(json.loads, answer)


def test_a_watch_without_a_change_has_bookmarks(standin, url):
    assert standin.BOOKMARK < watching.SILENT
    standin.BOOKMARK = 0.2
    client = watching.Watching(1)
    for listed in lines(url):
        client.after(watching.page_of(listed))
    watched = lines(f"{url}watch=1&resourceVersion={client.request.version}&timeoutSeconds=60")
    assert client.line(next(watched)) == client.line(next(watched)) == [watching.Connected(0)]
