# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of a host's parts are asked, and what is said of those that do not answer."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import show as anycast
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import show as direct
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import show as follow
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import parts
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.name_server import Answer
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import metrics as proxy
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from support.anycast.configs import REPORT as ANYCAST
from support.direct.reports import REPORT as DIRECT
from support.follow.reports import REPORT as FOLLOW
from support.proxy.reports import REPORT as PROXY

DAEMONS = tuple(part for part in parts.PARTS if part.name != "frr")  # and the resolver
CONFIGS = {part.name: part.config for part in parts.PARTS}
REPORTS = {
    "proxy": (PROXY, proxy.prometheus),
    "direct": (DIRECT, direct.prometheus),
    "anycast": (ANYCAST, anycast.prometheus),
    "follow": (FOLLOW, follow.prometheus),
}
NAMES = """\
# lab.example.com
local=/api.lab.example.com/
host-record=api.lab.example.com,192.0.2.10,300
host-record=api.lab.example.com,192.0.2.9,300
host-record=api.lab.example.com,2001:db8::10,300
host-record=api-int.lab.example.com,192.0.2.11,300
"""
GOOD = {"A": Answer(0, ["192.0.2.10", "192.0.2.9"]), "AAAA": Answer(0, ["2001:db8::10"])}
SILENT = Answer(None, [])


def read(monkeypatch, answering, configured):
    """Return what is read on a host with some parts, of which some answer."""
    sockets = {engines.Daemon(name).status_socket: REPORTS[name][0] for name in answering}

    def fetch(path, _timeout):
        if path not in sockets:
            raise status_socket.Refused("no agent answers")
        return sockets[path]

    monkeypatch.setattr(status_socket, "fetch", fetch)
    return parts.read(lambda path: "{}" if path in [CONFIGS[name] for name in configured] else "", DAEMONS)


@pytest.mark.parametrize("name", REPORTS)
def test_a_daemon_that_answers_has_its_own_metrics(monkeypatch, name):
    report, metrics = REPORTS[name]
    assert read(monkeypatch, [name], [name]) == ({name: True}, metrics(report))


def test_one_that_is_configured_and_does_not_answer_is_said(monkeypatch):
    answers, text = read(monkeypatch, ["proxy"], ["proxy", "direct", "follow"])
    assert answers == {"proxy": True, "direct": False, "follow": False}
    assert text == proxy.prometheus(PROXY)


@pytest.mark.parametrize("report", [{}, {"services": None}], ids=str)
def test_a_daemon_whose_report_is_of_another_version_answers_and_has_no_metrics(monkeypatch, report):
    monkeypatch.setattr(status_socket, "fetch", lambda _path, _timeout: report)
    every = dict.fromkeys(REPORTS, True)
    assert parts.read(lambda path: "" if path == CONFIGS["resolver"] else "{}", DAEMONS) == (every, "")


def test_a_part_that_the_host_does_not_have_is_not_asked_for(monkeypatch):
    assert read(monkeypatch, REPORTS, []) == ({}, "")


@pytest.mark.parametrize("says", ["onprem_lb_bgp_announced 1\n", None])
def test_frr_is_a_part_of_a_host_with_a_health_gate(says):
    (frr,) = [part._replace(ask=lambda _config: says) for part in parts.PARTS if part.name == "frr"]
    assert frr.config == CONFIGS["anycast"]
    assert parts.read(lambda _path: "{}", (frr,)) == ({"frr": says is not None}, says or "")
    assert parts.read(lambda _path: "", (frr,)) == ({}, "")


def asked(config, answers, state=""):
    questions = []

    def ask(server, name, kind):
        questions.append((server, name, kind))
        return answers[kind]

    return parts.resolver(config, ask, lambda: state), questions


def test_a_resolver_is_asked_for_each_family_of_its_first_name():
    name = "api.lab.example.com"
    assert asked(NAMES, GOOD) == ("", [("127.0.0.1", name, "A"), ("127.0.0.1", name, "AAAA")])


def test_it_is_asked_where_it_listens():
    assert asked(f"listen-address=192.0.2.1,192.0.2.2\n{NAMES}", GOOD)[1][0][0] == "192.0.2.1"


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("answer", [SILENT, Answer(5, []), Answer(0, []), Answer(0, ["192.0.2.99"])], ids=str)
def test_a_resolver_that_is_silent_or_wrong_does_not_answer(kind, answer):
    assert asked(NAMES, {**GOOD, kind: answer})[0] is None


def test_one_without_a_name_of_its_own_is_asked_whether_it_is_there():
    assert asked("port=53\n", {"A": Answer(3, [])})[0] == ""
    assert asked("port=53\n", {"A": SILENT})[0] is None


@pytest.mark.parametrize(
    "state, values",
    [
        ('{"answers": true, "asked": true, "forwards": null, "problem": ""}', "11"),
        ('{"answers": true, "asked": false, "forwards": false, "problem": "it is managed."}', "00"),
        ("", ""),
        ("{}", ""),
        ("[", ""),
    ],
)
def test_its_metrics_are_what_its_keeper_has_found(state, values):
    lines = [line for line in asked(NAMES, GOOD, state)[0].splitlines() if not line.startswith("#")]
    assert [line.split() for line in lines] == [
        [f"onprem_lb_resolver_{name}", value] for name, value in zip(("host_asks", "forwards"), values)
    ]
