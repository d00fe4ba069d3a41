# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fault of the agent's configuration is told with its line."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import lines

TEXT = """{
  "retries": "many",
  "services": [
    {"name": "a", "port": 80, "servers": []},
    {
      "name": "b", "bind": ["*", "x: [{,"],
      "check": {
        "type": "http",
        "steps": [{}, {"port":
          0}]
      },
      "servers": [{"name": "one",
        "address": "192.0.2.1"}]
    }
  ],
  "page": {"port": 1}
}
"""
ROWS = [
    ("configuration.retries is 'many': ...", 2),
    ("services has the name 'web' twice: ...", 3),
    ("services[0] (a).servers has none: ...", 4),
    ("services[1] (b) lacks 'port': add it.", 5),
    ("services[1] (b).bind is ...", 6),
    ("services[1].check.type is ...", 8),
    ("services[1] (b).check.steps[1].port is 0: ...", 9),
    ("services[1] (b).check.steps[1].path is ...", 9),
    ("services[1] (b).servers[0] (one).address is ...", 13),
    ("page.port is 1: ...", 16),
    ("page.bind is missing.", 16),
]


@pytest.mark.parametrize("fault, line", ROWS, ids=[fault for fault, _line in ROWS])
def test_the_line_is_that_of_the_key_or_of_what_lacks_it(fault, line):
    assert lines.numbered(TEXT, [fault]) == [f"line {line}: {fault}"]


@pytest.mark.parametrize("fault", ["configuration lacks 'services': add it.", "two programs have port 80.", "[x"])
def test_a_fault_of_no_place_has_no_line(fault):
    assert lines.numbered(TEXT, [fault]) == [fault]


def test_a_text_of_one_line_has_none_to_tell():
    faults = ["services[0].port is 0: ...", "retries is 5"]
    assert lines.numbered(json.dumps(json.loads(TEXT)) + "\n", faults) == faults


def test_every_place_of_a_text_is_found():
    """As json.tool writes it, each value that is no object or list has a line of its own."""
    data = {"a": [1, {"b": None, "c\u00e9\n": 'x\\"{'}, [[]], []], "d": {"e": {}}, "f": -1.5e3}
    text = json.dumps(data, indent=1)
    found = {"a": 2, "a[0]": 3, "a[1]": 4, "a[1].b": 5, "a[1].c\u00e9\n": 6, "a[2]": 8, "a[2][0]": 9, "a[3]": 11}
    assert lines._lines(text) == {"": 1, **found, "d": 13, "d.e": 14, "f": 16}


def test_check_config_tells_the_lines(tmp_path, capsys):
    path = tmp_path / "proxy.json"
    path.write_text(json.dumps({"services": [{"name": "web", "port": 0, "servers": []}]}, indent=2))
    assert cli.main(["check-config", "--config", str(path)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "line 5: services[0] (web).port is 0: a port from 1 to 65535 is required.",
        "line 6: services[0] (web).servers is []: a list of 1 or more is required.",
    ]
