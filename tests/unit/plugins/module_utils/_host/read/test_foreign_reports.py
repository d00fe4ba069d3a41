# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What answers at a status socket may be a daemon of another version, or none: nobody who asks ends in a traceback."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import reports
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import proxy as followed
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import host, parts
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from ansible_collections.onprem.lb.plugins.module_utils._host.read import announcing, balancer, beside, in_force, member
from support.anycast.configs import REPORT as ANYCAST
from support.damages import damaged, deep
from support.direct.reports import REPORT as DIRECT
from support.follow.reports import REPORT as FOLLOW
from support.proxy.reports import REPORT as PROXY
from support.scope import FULL
from support.vrrp.reports import REPORT as VRRP


def first(record):
    """Return a record with one item in each list."""
    if isinstance(record, list):
        return [first(each) for each in record[:1]]
    return {key: first(each) for key, each in record.items()} if isinstance(record, dict) else record


WHOLE = {"vrrp": VRRP, "proxy": PROXY, "follow": FOLLOW, "direct": DIRECT, "anycast": ANYCAST}
REPORTS = {name: first(report) for name, report in WHOLE.items()}


def sample(record):
    """Return some of the damages to a record, all of them in the full scope."""
    return itertools.islice(damaged(record), 0, None, 1 if FULL else 17)


def judged(record, name):
    """Return what is left of an answer for those who ask a daemon."""
    return {} if reports.faults(record) or reports.KEYS[name] not in record else record


def ask_all(monkeypatch, report):
    """Have everybody read a report who reads it on a host."""
    monkeypatch.setattr(in_force, "report_of", lambda _daemon: report)
    monkeypatch.setattr(in_force, "_agent_daemon", lambda _reader, _daemon: (in_force.InForce(True), report))
    for module in (beside, announcing):
        monkeypatch.setattr(module.facts, "is_ours", lambda _unit: True)
    of = {name: report if key in report else {} for name, key in reports.KEYS.items()}
    in_force.router(None)
    member._of_reports("", of["vrrp"], of["proxy"], serves=True)
    balancer.unserved(balancer.of_report(of["proxy"]))
    monkeypatch.setattr(beside, "_of_unit", lambda *_given: ("unit", True, of["follow"]))
    beside.not_following(None)
    monkeypatch.setattr(beside, "_of_unit", lambda *_given: ("unit", True, of["direct"]))
    beside.direct_faults(None)
    beside.plane(None)


def announced(monkeypatch, report):
    monkeypatch.setattr(in_force, "report_of", lambda _daemon: report)
    monkeypatch.setattr(announcing, "_direct", lambda _reader: [])
    monkeypatch.setattr(announcing, "_frr", lambda _reader: announcing.Frr())
    found = announcing.read(Texts())
    for vip, said in found.said.items():
        announcing._shown_vip(vip, said)


class Texts:
    """A host of whose files none is there."""

    def text(self, _path):
        return ""

    def on_loopback(self):
        return []


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_of_this_version_fits_with_more_keys_too(monkeypatch, name):
    report = {**WHOLE[name], "of_a_later_version": [{"x": None}]}
    assert reports.faults(report) == []
    ask_all(monkeypatch, report)


@pytest.mark.parametrize("name", REPORTS)
def test_no_damage_to_a_report_ends_in_a_traceback(monkeypatch, name):
    count = 0
    for done, report in sample(REPORTS[name]):
        kept = judged(report, name)
        count += kept == {}
        try:
            ask_all(monkeypatch, kept)
            announced(monkeypatch, kept)
        except Exception as error:
            pytest.fail(f"{done}: {error!r}")
    assert count > 5


@pytest.mark.parametrize("form", ["table", "prometheus", "json"])
@pytest.mark.parametrize("name", REPORTS)
def test_a_damaged_report_is_shown_or_refused_in_a_sentence(monkeypatch, capsys, name, form):
    for done, report in sample(REPORTS[name]):
        monkeypatch.setattr(status_socket, "fetch", lambda _path, it=report: fetched(it))
        code, printed = cli.main(["status", "--socket", "/x", "--format", form]), capsys.readouterr()
        assert code == 0 or printed.err.count("\n") == 1, done


def fetched(report):
    for fault in reports.faults(report):
        raise status_socket.Refused(fault)
    return report


def test_the_metrics_of_a_router_of_another_version_are_left_out():
    about = {"written": 1, "router_answers": True, "parts": {}, "last_drill": 0, "certificates": {}}
    for done, report in sample(REPORTS["vrrp"]):
        if not reports.faults(report):
            assert "onprem_lb_host_router_answers 1" in host.text(about, report), done


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "vrrp"])
def test_a_part_of_another_version_has_no_metrics(monkeypatch, name):
    (part,) = [each for each in parts.PARTS if each.name == name]
    for done, report in sample(REPORTS[name]):
        monkeypatch.setattr(status_socket, "fetch", lambda _path, _timeout, it=report: fetched(it))
        assert part.ask("") is not None or reports.faults(report), done


def test_follow_refuses_an_answer_of_another_daemon(monkeypatch):
    monkeypatch.setattr(status_socket, "fetch", lambda *_given: VRRP)
    about = settings.Proxy(config="/etc/proxy.json", services=(), socket="/run/proxy.sock")
    with pytest.raises(Refused, match="at /run/proxy.sock answers another daemon"):
        followed.Balancer(about).answering()


@pytest.mark.parametrize(
    "answer, why",
    [
        (deep(), "gave no report"),
        ("[1]", "gave no report"),
        ("x" * 100, "gave no report"),
        (
            json.dumps({**VRRP, "instances": [{"name": 5}]}),
            "another version",
        ),
        (" " * 2_000 + "{}", "gave no report"),
    ],
    ids=["deep", "a list", "no JSON", "another type", "too long"],
)
def test_what_is_no_report_is_refused_in_a_sentence(tmp_path, monkeypatch, answer, why):
    monkeypatch.setattr(status_socket, "LARGEST", 1_000 if answer.startswith(" ") else 1 << 26)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        thread = threading.Thread(target=answer_once, args=(server, answer.encode()))
        thread.start()
        with pytest.raises(status_socket.Refused) as refused:
            status_socket.fetch(str(tmp_path / "s"))
        thread.join()
    assert why in str(refused.value) and "\n" not in str(refused.value)


def answer_once(server, answer):
    client, _address = server.accept()
    with client, contextlib.suppress(BrokenPipeError, ConnectionResetError):  # one who has read enough goes
        client.sendall(answer)
