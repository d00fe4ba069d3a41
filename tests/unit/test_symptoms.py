# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page for three in the morning: a command and a paragraph for each symptom, and what they name exists."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.units import Paths
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import answers
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, paths
from support.documents import blocks, headings
from support.paths import DOCS, PLAYBOOKS, ROLES
from support.variable_tables import options

PAGES = [DOCS / "symptoms.md", DOCS / "monitoring.md"]
SYMPTOMS = PAGES[0]
TEXT = SYMPTOMS.read_text()
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
COMMANDS = [command for page in PAGES for block in blocks(page, "") for command in block.splitlines()]
UNITS = {unit for pair in engines.UNITS.values() for unit in pair} | {*paths.HELPERS, engines.FRR_UNIT}
OF_OTHERS = {"node_exporter.service", "prometheus-node-exporter.service"}
ARCHIVES = {Paths().link, paths.archive("metrics"), paths.archive("follow")}
ASKED = ("systemctl", "journalctl", "ansible-playbook", "ansible")  # whose options this machine knows


@pytest.mark.parametrize("symptom", SECTIONS)
def test_a_symptom_has_one_command_and_one_paragraph(symptom):
    found = re.fullmatch(r"\n```\n(.+)\n```\n\n((?:.+\n)+)\n?", SECTIONS[symptom])
    assert found, symptom
    assert len(found[2].split()) < 110, "too long for three in the morning"


def test_the_page_has_a_section_for_each_symptom_of_its_headings():
    assert [heading for heading, level in headings(SYMPTOMS) if level == 2] == list(SECTIONS)
    assert len(SECTIONS) > 10


def test_every_playbook_that_is_named_is_there():
    named = {name for page in PAGES for name in re.findall(r"\bonprem\.lb\.([a-z]\w*)", page.read_text())}
    assert "site" in named and named <= {file.stem for file in PLAYBOOKS.glob("*.yml")}


def test_every_unit_that_is_named_is_there():
    named = {unit for page in PAGES for unit in re.findall(r"[\w-]+\.(?:service|path|timer)\b", page.read_text())}
    assert named - OF_OTHERS <= UNITS
    assert engines.UNITS[engines.NATIVE].router in named


def test_every_variable_that_is_named_is_one():
    known = {name for role in ("pair", "ipi", "drill", "haproxy", "keepalived", "agent") for name in options(role)}
    known |= set(re.findall(r"\bsurvey_\w+", (PLAYBOOKS / "survey.yml").read_text()))
    text = " ".join(page.read_text() for page in PAGES)
    named = set(re.findall(r"\b(?:pair|ipi|drill|survey|haproxy|keepalived|agent)_\w+(?=[=`:])", text))
    assert {"pair_break_lock", "pair_retired", "survey_hosts", "pair_metrics_file"} <= named
    assert named - {"haproxy_", answers.NAME} <= known


@pytest.mark.parametrize("command", [command for command in COMMANDS if "agent.pyz" in command])
def test_every_subcommand_of_the_agent_is_one(command, capsys):
    _python, archive, *arguments = shlex.split(command)
    assert archive in ARCHIVES
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments, "--help"])
    assert ended.value.code == 0 and arguments[0] in capsys.readouterr().out


@functools.lru_cache(maxsize=None)
def help_of(program):
    return subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.split()[0] in ASKED])
def test_every_option_is_one_that_the_program_has(command):
    program, *arguments = shlex.split(command)
    shown = help_of(program)
    for option in [word.partition("=")[0] for word in arguments if re.match("--?[a-z]", word)]:
        assert re.search(rf"(?<![\w-]){option}\b", shown), option


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_asks_a_unit_of_the_native_engine_asks_the_agents_as_well(command):
    for native, agent in zip(*(engines.UNITS[engine] for engine in (engines.NATIVE, engines.AGENT))):
        assert native not in command or agent in command


def test_haproxys_configuration_is_where_it_is_looked_for():
    defaults = yaml.safe_load((ROLES / "haproxy" / "defaults" / "main.yml").read_text())
    assert f"haproxy -c -f {defaults['haproxy_config_path']}" in COMMANDS


def recommended():
    """Return the role's default of each variable that a page sets in an example; what is shorter could be anything."""
    texts = [
        code for page in sorted(DOCS.glob("*.md")) for language in ("yaml", "ini") for code in blocks(page, language)
    ]
    named = set(re.findall(r"^\s*(\w+)\s*[:=]", "\n".join(texts), re.MULTILINE))
    files = [yaml.safe_load(file.read_text()) or {} for file in ROLES.glob("*/defaults/main.yml")]
    return {name: str(value) for file in files for name, value in file.items() if name in named and len(str(value)) > 3}


def test_no_command_rests_on_a_default_that_the_pages_themselves_change():
    changed = {name: re.compile(rf"(?<![\w-]){re.escape(value)}(?!\w)") for name, value in recommended().items()}
    assert "haproxy_stats_address" in changed
    for command in COMMANDS:
        assert [name for name, value in changed.items() if value.search(command)] == [], command
