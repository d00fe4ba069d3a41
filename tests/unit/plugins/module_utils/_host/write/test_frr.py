# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FRR comes to run a file or stays as it was, whatever fails on the way. tests/netns/test_frr.py has a real one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import bgp
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files, units
from ansible_collections.onprem.lb.plugins.module_utils._host.write import frr as written
from support.rendering import frr

PEER = {"address": "192.0.2.1", "asn": 64601, "password": "correct-horse"}
GIVEN = {"asn": 64512, "router_id": "192.0.2.11", "peers": [PEER], "prefixes": ["198.51.100.10"]}
OLD, NEW = frr(**GIVEN), frr(**{**GIVEN, "prefixes": ["198.51.100.10", "198.51.100.11"]})
RESTART = "systemctl restart frr.service"


class Host:
    """A host with an FRR that runs a text. What frr-reload makes of a file, and a start, can be replaced."""

    def __init__(self, path, running=OLD, active=True, enabled=True, reloads=None, starts=None, missing=()):
        self.path, self.text, self.active, self.enabled = path, running, active, enabled
        self.reloads = reloads or (lambda _now, given: given)
        self.starts = starts or (lambda given: given)
        self.gone, self.commands, self.loads, self.modes = list(missing), [], 0, []
        self.refuses = False
        self.reader = Reader(self.run, lambda name: f"/usr/bin/{name}")
        self.frr = self.frr_of(self)

    def run(self, command):
        if command[:2] == ["systemctl", "show"]:
            states = ["active" if self.active else "inactive", "enabled" if self.enabled else "disabled"]
            return 0, "Id=frr.service\nActiveState={}\nUnitFileState={}\nNeedDaemonReload=no\n".format(*states), ""
        if "-C" in command:
            return (2, "line 3: % Unknown command: password correct-horse", "") if self.refuses else (0, "", "")
        self.commands.append(" ".join(command))
        if command[1] == "restart":
            self.active, self.gone = True, []
            self.text = self.starts(Path(self.path).read_text())
        return 0, "", ""

    @staticmethod
    def frr_of(host):
        class Fake(written.Frr):
            def running(self):
                if host.text is None or not host.active:
                    raise bgp.NoAnswer("FRR does not answer.")
                return host.text

            def missing(self):
                return host.gone

            def load(self, folder):
                host.loads += 1
                host.modes.append(stat.S_IMODE(os.stat(folder).st_mode))
                host.text = host.reloads(host.text, Path(folder, "frr.conf").read_text())
                return "% Unknown command"

        return Fake(host.reader)


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    monkeypatch.setattr(written, "SETTLE_LIMIT", 0.0)
    monkeypatch.setattr(written, "START_LIMIT", 0.0)
    monkeypatch.setattr(files.records, "note_written", lambda _written: None)
    monkeypatch.setattr(files, "refuse_after_return", lambda: None)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "frr.conf"
    found.write_text(OLD)
    found.chmod(0o640)
    return str(found)


def plan(host, text=NEW):
    return written.plan(host.frr, [{"path": host.path, "content": text, "mode": "0640", "check": "vtysh"}], [], text)


def load(host, text=NEW):
    written.carry_out(plan(host, text), host.frr, os.rename)


def test_a_host_that_runs_its_file_is_left_alone(path):
    host = Host(path)
    planned = plan(host, OLD)
    assert (planned.changes, planned.how, planned.resets) == (False, "", [])
    load(host, OLD)
    assert (host.loads, host.commands) == (0, [])


def test_what_differs_is_loaded_while_it_runs(path):
    host = Host(path)
    load(host)
    assert (host.loads, host.commands, host.text) == (1, [], NEW)
    assert Path(path).read_text() == NEW and host.modes == [0o700]


def test_a_file_that_is_as_wanted_and_was_not_loaded_is_loaded(path):
    host = Host(path, running=NEW)
    assert plan(host, OLD).how == written.RELOAD and plan(host, OLD).changes
    load(host, OLD)
    assert host.text == OLD


def test_half_a_deletion_is_repeated(path):
    """frr-reload needs two passes to end BFD."""
    host = Host(path, reloads=lambda now, given: given if host.loads > 1 else now)
    load(host)
    assert (host.loads, host.text) == (2, NEW)


@pytest.mark.parametrize("why", [{"active": False}, {"missing": ["bfdd"]}, {"active": False, "running": None}])
def test_frr_starts_where_it_or_one_of_its_daemons_does_not_run(path, why):
    host = Host(path, enabled=False, **why)
    planned = plan(host)
    assert planned.steps == ["systemctl enable frr.service", RESTART]
    load(host)
    assert host.commands == planned.steps and host.text == NEW and host.loads == 0


def test_a_restart_ends_all_sessions_and_says_so(path):
    assert plan(Host(path, missing=["bfdd"])).resets == ["192.0.2.1"]
    assert plan(Host(path, active=False)).resets == []


def test_an_frr_that_runs_and_does_not_answer_is_left_alone(path):
    with pytest.raises(files.Refused, match="FRR does not answer. Nothing was changed."):
        plan(Host(path, running=None))


def test_a_file_that_vtysh_refuses_changes_nothing(path):
    host = Host(path)
    host.refuses = True
    with pytest.raises(files.Refused) as raised:
        load(host)
    assert "vtysh refuses the new " in str(raised.value) and "correct-horse" not in str(raised.value)
    assert (Path(path).read_text(), host.loads, host.text) == (OLD, 0, OLD)


def half(now, given):
    """What a frr-reload does that stops in the middle of one file."""
    return now if given == now else now.replace("198.51.100.10/32", "198.51.100.77/32")


def test_frr_returns_to_what_it_ran_if_it_comes_to_run_something_else(path):
    host = Host(path, reloads=lambda now, given: given if "100.11" not in given else half(now, given))
    with pytest.raises(units.Failed) as raised:
        load(host)
    sentence = str(raised.value)
    assert sentence.startswith("FRR does not run the new configuration: it lacks ip prefix-list onprem-vips ")
    assert "It says: % Unknown command" in sentence and sentence.endswith("It was returned to what it ran before.")
    assert Path(path).read_text() == OLD and written.frr_text.differences(OLD, host.text) == []


def test_a_sentence_about_it_has_no_password(path):
    host = Host(path, reloads=lambda now, given: given if "other-horse" not in given else now)
    with pytest.raises(units.Failed) as raised:
        load(host, frr(**{**GIVEN, "peers": [{**PEER, "password": "other-horse"}]}))
    assert "horse" not in str(raised.value)


def test_an_frr_that_cannot_start_with_a_file_starts_with_the_one_of_before(path):
    host = Host(path, missing=["bgpd"], starts=lambda given: given if given == OLD else "")
    with pytest.raises(units.Failed):
        load(host)
    assert host.commands == [RESTART, "systemctl daemon-reload", RESTART]
    assert (Path(path).read_text(), host.text) == (OLD, OLD)


def test_one_that_did_not_run_before_is_stopped_again(path):
    host = Host(path, active=False, starts=lambda _given: "")
    with pytest.raises(units.Failed):
        load(host)
    assert host.commands[-1] == "systemctl stop frr.service" and Path(path).read_text() == OLD


def test_a_file_of_others_comes_back(tmp_path):
    theirs = tmp_path / "frr.conf"
    theirs.write_text("router bgp 1\n")
    host = Host(str(theirs), reloads=lambda now, _given: now)
    wanted = [{"path": str(theirs), "content": NEW, "mode": "0640", "check": "vtysh", "keep": True}]
    planned = written.plan(host.frr, wanted, [], NEW)
    with pytest.raises(units.Failed):
        written.carry_out(planned, host.frr, os.rename)
    assert [each.name for each in tmp_path.iterdir()] == ["frr.conf"] and theirs.read_text() == "router bgp 1\n"


def test_a_host_without_frr_reload_is_told_its_package(path, monkeypatch):
    monkeypatch.setattr(written, "RELOADERS", ())
    host = Host(path)
    with pytest.raises(files.Refused, match="frr-pythontools"):
        written.Frr(host.reader).load("/nowhere")


def test_check_mode_checks_and_changes_nothing(path):
    host = Host(path)
    written.check(plan(host), host.reader, os.rename)
    assert (Path(path).read_text(), host.loads, host.commands) == (OLD, 0, [])


def test_on_the_way_back_it_goes_over_to_its_file_and_never_starts_anew_for_it(path):
    host = Host(path, running=NEW, missing=["bfdd"])
    assert written.take(host.frr, OLD) == ""
    assert (host.text, host.loads, host.commands) == (OLD, 1, [])


@pytest.mark.parametrize("why", [{"reloads": lambda now, _given: now}, {"running": None}], ids=["refuses", "is silent"])
def test_on_the_way_back_it_says_why_it_does_not_run_its_file(path, why):
    said = written.take(Host(path, **{"running": NEW, **why}).frr, OLD)
    assert said.startswith("FRR does not") and "correct-horse" not in said
