# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module frr_config: what it says, and what it never says."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files, frr
from ansible_collections.onprem.lb.plugins.modules import frr_config
from support.modules import refusal, run
from support.rendering import frr as rendered

SECRET = "correct-horse"
PEER = {"address": "192.0.2.1", "asn": 64601}
OLD = rendered(asn=64512, router_id="192.0.2.11", peers=[PEER])
NEW = rendered(asn=64512, router_id="192.0.2.11", peers=[{**PEER, "password": SECRET}])


def given(tmp_path, content=NEW, check="vtysh"):
    file = {"path": str(tmp_path / "frr.conf"), "content": content, "mode": "0640", "check": check}
    return {"files": [file], "secrets": [SECRET]}


@pytest.fixture(autouse=True)
def host(monkeypatch):
    active = "Id=frr.service\nActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no\n"
    monkeypatch.setattr(frr.units, "show", lambda *_asked: [dict(line.split("=") for line in active.split())])
    monkeypatch.setattr(frr.Frr, "missing", lambda _self: [])
    monkeypatch.setattr(frr.Frr, "running", lambda _self: OLD)
    monkeypatch.setattr(files, "_others", lambda _found, _wanted: False)


def test_check_mode_says_what_would_change_and_whose_session_ends_without_a_secret(tmp_path):
    found = run(frr_config, given(tmp_path), check=True)
    assert (found["changed"], found["steps"], found["resets"]) == (True, ["frr-reload.py --reload"], ["192.0.2.1"])
    assert found["paths"] == found["unchecked"] == [str(tmp_path / "frr.conf")]
    assert SECRET not in str(found) and "neighbor 192.0.2.1 password ********" in found["diff"][0]["after"]
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_loaded_is_a_sentence(tmp_path, monkeypatch):
    def refused(*_given):
        raise files.Refused("It is refused.")

    monkeypatch.setattr(frr, "carry_out", refused)
    assert refusal(frr_config, given(tmp_path)) == "It is refused."


def test_exactly_one_file_is_the_configuration(tmp_path):
    said = refusal(frr_config, given(tmp_path, check="none"))
    assert said == "files has 0 with check=vtysh: exactly one is required."
