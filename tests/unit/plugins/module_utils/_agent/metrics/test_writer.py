# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in the file of metrics, and when it is written anew."""

from __future__ import annotations

import socket
import stat
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import dumps, keepalived, parts, served, writer
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import netlink
from ansible_collections.onprem.lb.plugins.module_utils._shared import mark
from support.vrrp.keepalived_dumps import DATA, STATISTICS
from support.vrrp.reports import REPORT
from support.waiting import LIMIT_S

KEEPALIVED = dumps.report(DATA, STATISTICS)
ACTIVE = 'onprem_lb_vrrp_state{instance_name="six",interface="eth0",vrid="52",state="Active"}'
INITIALIZE = ACTIVE.replace("Active", "Initialize")


class Log:
    def __init__(self):
        self.faults = []

    def fault(self, _key, text):
        self.faults.append(text)

    def cured(self, _key, _text):
        self.faults.clear()


def text_of(read, tmp_path, log=None, **options):
    options = writer.Options(drill=str(tmp_path / "drill.json"), **options)
    return writer.Writer(options, read, log or Log()).text().splitlines()


def test_keepalived_and_the_agent_have_the_same_names(tmp_path):
    assert f"{ACTIVE} 1" in text_of(lambda: KEEPALIVED, tmp_path)
    of_agent = text_of(lambda: REPORT, tmp_path)
    assert 'onprem_lb_vrrp_agent_info{version="1.0.0"} 1' in of_agent
    of_keepalived = text_of(lambda: KEEPALIVED, tmp_path)
    assert {line for line in of_keepalived if line.startswith("#")} < set(of_agent)


def test_a_router_that_no_longer_answers_is_in_initialize_and_holds_nothing(tmp_path):
    answers = [KEEPALIVED, None]
    kept = writer.Writer(writer.Options(drill=str(tmp_path / "none")), lambda: answers.pop(0), Log())
    assert f"{ACTIVE} 1" in kept.text()
    after = kept.text()
    assert f"{ACTIVE} 0" in after and f"{INITIALIZE} 1" in after
    assert "onprem_lb_host_router_answers 0" in after


def test_a_router_that_never_answered_has_no_instances(tmp_path):
    found = text_of(lambda: None, tmp_path)
    assert "onprem_lb_host_router_answers 0" in found
    assert not any("vrrp" in line for line in found)


@pytest.mark.parametrize("answers", [True, False])
def test_a_host_that_announces_by_bgp_has_no_router_that_could_answer_unless_one_has(tmp_path, monkeypatch, answers):
    monkeypatch.setattr(parts, "read", lambda _text: ({"anycast": True, "frr": answers}, ""))
    assert not any(line.startswith("onprem_lb_host_router_answers") for line in text_of(lambda: None, tmp_path))
    said = [KEEPALIVED, None]
    kept = writer.Writer(writer.Options(drill=str(tmp_path / "none")), lambda: said.pop(0), Log())
    assert "onprem_lb_host_router_answers 1" in kept.text()
    assert "onprem_lb_host_router_answers 0" in kept.text()


def test_a_router_that_was_set_up_beside_bgp_should_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "read", lambda _text: ({"anycast": True, "frr": True}, ""))
    monkeypatch.setattr(writer, "OF_ROUTERS", (str(tmp_path / "none"), str(tmp_path)))
    assert "onprem_lb_host_router_answers 0" in text_of(lambda: None, tmp_path)


def test_why_keepalived_does_not_answer_is_logged_until_it_does(tmp_path):
    log, answers = Log(), [keepalived.Refused("it is busy."), KEEPALIVED]

    def read():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    kept = writer.Writer(writer.Options(drill=str(tmp_path / "none")), read, log)
    assert "onprem_lb_host_router_answers 0" in kept.text()
    assert log.faults == ["it is busy."]
    assert "onprem_lb_host_router_answers 1" in kept.text()
    assert log.faults == []


@pytest.mark.parametrize(
    "record, expected", [('{"at": 1790000000}', 1790000000), ("{", 0), ("[]", 0), (None, 0)], ids=str
)
def test_the_last_drill_is_what_its_record_says(tmp_path, record, expected):
    if record is not None:
        (tmp_path / "drill.json").write_text(record)
    assert f"onprem_lb_host_last_drill_seconds {expected}" in text_of(lambda: None, tmp_path)


def test_a_certificate_that_cannot_be_read_has_no_time(tmp_path):
    found = text_of(lambda: None, tmp_path, certificates=[str(tmp_path / "none.pem")])
    assert not any(line.startswith("onprem_lb_host_certificate") for line in found)


def test_the_certificate_is_the_one_that_haproxy_serves_and_whether_the_file_has_it_is_said(tmp_path, monkeypatch):
    answers = {
        "/a.pem": served.Served(1790000000, True),
        "/b.pem": served.Served(1780000000, False),
        "/c.pem": served.Served(),
    }
    monkeypatch.setattr(served, "read", lambda files, _ask, _text: {path: answers[path] for path in files})
    found = text_of(lambda: None, tmp_path, certificates=list(answers))
    assert [line for line in found if line.startswith("onprem_lb_host_certificate")] == [
        'onprem_lb_host_certificate_expires_seconds{path="/a.pem"} 1790000000',
        'onprem_lb_host_certificate_expires_seconds{path="/b.pem"} 1780000000',
        'onprem_lb_host_certificate_loaded{path="/a.pem"} 1',
        'onprem_lb_host_certificate_loaded{path="/b.pem"} 0',
    ]


def test_a_folder_counts_as_the_certificates_in_it(tmp_path, monkeypatch):
    folder = tmp_path / "certificates"
    folder.mkdir()
    for name in ("b.pem", "a.pem", "a.pem.key", ".a.pem", "a.pem.ocsp"):
        (folder / name).touch()
    asked = []
    monkeypatch.setattr(served, "read", lambda files, _ask, _text: asked.extend(files) or {})
    text_of(lambda: None, tmp_path, certificates=[str(folder), "/none.pem"])
    assert asked == [f"{folder}/a.pem", f"{folder}/b.pem", "/none.pem"]


def test_what_the_other_parts_report_is_in_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setattr(
        parts, "read", lambda _text: ({"follow": True, "resolver": False}, "onprem_lb_follow_nodes 3\n")
    )
    found = text_of(lambda: KEEPALIVED, tmp_path)
    assert 'onprem_lb_host_part_answers{part="follow"} 1' in found
    assert 'onprem_lb_host_part_answers{part="resolver"} 0' in found
    assert "onprem_lb_follow_nodes 3" in found and f"{ACTIVE} 1" in found


def test_the_file_is_replaced_as_a_whole_and_all_may_read_it(tmp_path):
    file = tmp_path / "lb.prom"
    file.write_text("of before")
    with open(file) as reader:
        writer.replace(str(file), "new\n")
        assert reader.read() == "of before"
    assert file.read_text() == "new\n" and stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [file]


class Netlink:
    """Netlink with events that the test makes."""

    def __init__(self):
        self.mine, self.theirs = socket.socketpair()

    def fileno(self):
        return self.mine.fileno()

    def events(self):
        return [{b"a": ADDRESS_GONE, b"l": LINK_GONE}[self.mine.recv(1)]]


ADDRESS_GONE = netlink.AddressGone(netlink.Address(2, "192.0.2.10", 32, True))
LINK_GONE = netlink.LinkGone(2)


def waited(event, seconds):
    """Return how long it waits for an address that moves, while there is an event."""
    events = Netlink()
    events.theirs.send(event)
    began = time.monotonic()
    writer.wait(events, seconds)
    return time.monotonic() - began


def test_an_address_that_moves_is_noted_at_once(monkeypatch):
    monkeypatch.setattr(writer, "SETTLED", 0)
    assert waited(b"a", LIMIT_S) < LIMIT_S


@pytest.mark.parametrize("event", [b"l", b""], ids=["link", "nothing"])
def test_without_one_the_file_is_written_when_it_is_time(event):
    assert waited(event, 0.2) >= 0.2


def test_the_file_is_known_again_as_our_own_whatever_is_in_it(tmp_path):
    assert mark.is_metrics("\n".join(text_of(lambda: None, tmp_path)))
