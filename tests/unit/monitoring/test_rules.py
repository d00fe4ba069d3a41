# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alerts for Prometheus: promtool reads them, and each fires when it should and not otherwise."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from support.documents import anchors
from support.paths import MONITORING, ROOT

RULES = MONITORING / "rules.yml"
EVERY = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
ALERTS = [rule for rule in EVERY if "alert" in rule]
TESTS = sorted((Path(__file__).parent / "rules").glob("*.yml"))


def promtool(*arguments):
    """Return what promtool says; it must be content."""
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_reads_the_rules():
    assert f"SUCCESS: {len(EVERY)} rules found" in promtool("check", "rules", RULES)


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_an_alert_fires_when_it_should_and_not_otherwise(file):
    assert "SUCCESS" in promtool("test", "rules", file)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_alert_has_a_case_that_fires_and_one_that_does_not(alert):
    (file,) = [file for file in TESTS if file.stem == alert["alert"]]
    fires = []
    for case in yaml.safe_load(file.read_text())["tests"]:
        moments = case["alert_rule_test"]
        assert {moment["alertname"] for moment in moments} == {alert["alert"]}
        fires.append(any(moment.get("exp_alerts") for moment in moments))
    assert set(fires) == {True, False}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_says_what_is_wrong_and_leads_to_a_page_that_is_there(alert):
    assert "$labels." in alert["annotations"]["summary"] and alert["labels"]["severity"]
    page = alert["annotations"]["page"]
    file, _hash, chosen = page.partition("#")
    for anchor in re.split(r"\{\{.*?\}\}", chosen):
        assert not anchor or anchor in anchors(ROOT / file), page
