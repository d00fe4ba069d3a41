# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is counted, and what VRRP, a terminal and Prometheus are told."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import show
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.attempts import FEW
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.down_file import PATIENCE, DownFile
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.packets import Packets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.rulesets import Table
from support.agent.loops import Time
from support.direct.reports import NEW, REPORT, UP

KEY, OTHER = ("192.0.2.100", 6443, "192.0.2.1"), ("192.0.2.100", 443, "192.0.2.1")
TABLE = Table("", {}, {"one": [KEY, OTHER]}, {"begun": [KEY, OTHER]})


def listed(packets, name="one"):
    counter = {"family": "netdev", "name": name, "table": "t", "handle": 1, "packets": packets, "bytes": 9}
    return json.dumps({"nftables": [{"metainfo": {}}, {"counter": counter}]})


def test_packets_are_summed_up_over_tables_that_are_written_anew():
    packets = Packets()
    for number in (5, 7, 3, 4):  # between 7 and 3 the table was replaced
        packets.take(listed(number), TABLE)
    assert packets.of(*KEY) == packets.of(*OTHER) == 11


def test_a_server_of_which_only_attempts_arrive_is_known_at_the_second_count_and_until_a_client_goes_on():
    packets = Packets()

    def counted(every, begun):
        both = [json.loads(listed(number, name)) for name, number in (("one", every), ("begun", begun))]
        packets.take(json.dumps({"nftables": [each["nftables"][1] for each in both]}), TABLE)
        return packets.attempts.unanswered(KEY)

    assert [counted(FEW - 1, FEW - 1), counted(FEW - 1, FEW - 1), counted(FEW, FEW)] == [0, 0, 0]
    assert [counted(FEW + 3, FEW + 3), counted(FEW + 3, FEW + 3)] == [FEW, FEW + 3]
    assert counted(FEW + 4, FEW + 3) == 0, "one has gone on"
    assert [counted(FEW + 20, FEW + 19), counted(FEW + 21, FEW + 19)] == [0, 0]


def test_counters_of_others_and_what_is_no_list_count_nothing():
    packets = Packets()
    for text in (listed(5, "other"), "", "[]", '{"nftables": [1]}', '{"nftables": [{"counter": {"name": "one"}}]}'):
        packets.take(text, TABLE)
    assert packets.of(*KEY) == 0


class Log:
    """The faults that are logged and not cured."""

    def __init__(self):
        self.faults = {}

    def fault(self, key, text):
        self.faults[key] = text

    def cured(self, key, _text):
        self.faults.pop(key, None)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def down_file(time, log, tmp_path):
    made = DownFile(time, log)
    made.use(str(tmp_path / "run" / "down"))
    return made


@pytest.fixture
def said(tmp_path):
    return (tmp_path / "run" / "down").read_text


def test_until_there_is_a_table_the_vip_is_not_wanted(down_file, said):
    assert said() == "1\n" and not down_file.is_up
    down_file.report(False)
    assert said() == "1\n"
    down_file.report(True)
    assert said() == "0\n" and down_file.is_up


@pytest.mark.parametrize("left, expected", [("0\n", "0\n"), ("1\n", "1\n"), ("", "1\n"), ("nonsense", "1\n")])
def test_what_an_earlier_run_has_left_stays_until_it_is_known_whether_its_table_is_there(
    time, log, tmp_path, left, expected
):
    path = tmp_path / "down"
    path.write_text(left)
    made = DownFile(time, log)
    made.use(str(path))
    assert path.read_text() == expected
    made.report(False)
    time.advance(PATIENCE)
    assert path.read_text() == "1\n"


def test_a_table_that_is_back_soon_moves_no_vip(down_file, said, time):
    down_file.report(True)
    down_file.report(False)
    time.advance(PATIENCE - 1)
    assert said() == "0\n"
    down_file.report(True)
    time.advance(10 * PATIENCE)
    assert said() == "0\n"


def test_one_that_stays_away_does(down_file, said, time):
    down_file.report(True)
    down_file.report(False)
    time.advance(PATIENCE // 2)
    down_file.report(False)
    time.advance(PATIENCE // 2)
    assert said() == "1\n"


def test_another_file_says_the_same(down_file, tmp_path):
    down_file.report(True)
    down_file.use(str(tmp_path / "other"))
    assert (tmp_path / "other").read_text() == "0\n"


def test_a_file_that_cannot_be_written_is_a_sentence(down_file, log, tmp_path):
    down_file.use(str(tmp_path))
    assert log.faults == {"down_file": f"{tmp_path} cannot be written: is a directory."}
    down_file.use("")
    assert log.faults == {}


def changed(**changes):
    return {**REPORT, "table": {**REPORT["table"], **changes}}


def test_the_table_for_a_terminal():
    lines = show.table(REPORT, 1000.0).splitlines()
    there = "The table on eth0 is there, written 1m 0s ago within 31 ms, brought back 3 times; the VIP may be here."
    assert there in lines
    *_others, service, _empty, _heads, up, down = [line.split() for line in lines]
    assert service == ["api", "up", "1", "of", "2", "192.0.2.100:6443", "4096"]
    assert up[:9] == ["api/a", "up", "10m", "0s", "yes", "192.0.2.1", "02:00:00:00:00:01", "1", "1.2k"]
    assert down[:8] == ["api/b", "down", "10m", "0s", "no", "192.0.2.2", "not", "known"]


def test_what_is_wrong_is_said():
    service = {**REPORT["services"][0], "kept": True}
    report = {**changed(in_force=False, fault="nft refuses: so."), "up": False, "services": [service]}
    text = show.table(report, 1000.0)
    assert "is not there" in text and "The last transaction was refused: nft refuses: so." in text
    assert "the VIP should be elsewhere" in text
    assert "No server is up with a path that is proven, so the last ones stay in the table: api." in text


def test_a_server_that_does_not_answer_for_the_vip_is_named_with_the_reason():
    service = {**REPORT["services"][0], "servers": [UP, {**NEW, "name": "b", "path_fault": "b does not answer."}]}
    assert "\n\napi/b does not answer.\n\n" in show.table({**REPORT, "services": [service]}, 1000.0)
    assert "does not answer" not in show.table(REPORT, 1000.0)


def test_whose_new_connections_are_left_to_this_host_is_said():
    service = {**REPORT["services"][0], "new_connections": "host"}
    said = "\n\nNew connections are left to the programs of this host: api.\n\n"
    assert said in show.table({**REPORT, "services": [service]}, 1000.0)
    assert "New connections" not in show.table(REPORT, 1000.0)


def test_a_plane_that_has_written_nothing_yet_has_a_report():
    report = changed(in_force=False, written_at=None, took=None)
    assert "The table on eth0 is not there, brought" in show.table(report, 1000.0)
    assert "onprem_lb_direct_table_written_seconds 0" in show.prometheus(report)


@pytest.mark.parametrize(
    "line",
    [
        "onprem_lb_direct_up 1",
        "onprem_lb_direct_table_change_duration_seconds 0.03125",
        "onprem_lb_direct_table_restored_total 3",
        'onprem_lb_direct_service_usable_servers{service="api"} 1',
        'onprem_lb_direct_server_packets_total{service="api",server="a"} 1234',
        'onprem_lb_direct_server_state{service="api",server="b",state="down"} 1',
        'onprem_lb_direct_server_state{service="api",server="b",state="up"} 0',
        'onprem_lb_direct_server_mac_known{service="api",server="b"} 0',
        'onprem_lb_direct_server_path_proven{service="api",server="a"} 1',
        'onprem_lb_direct_server_path_proven{service="api",server="b"} 0',
    ],
)
def test_the_metrics(line):
    assert line in show.prometheus(REPORT).splitlines()
