# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scenarios that a change needs: with too few, a fault would stay undetected."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import changed
import pytest
from interruptions.operations import LAYOUTS
from support.paths import ROOT
from support.scenarios import IMAGE_OF, IMAGES

DEPLOYED = ["examples:debian12"]
PAIR = ["default:debian12", "agent:debian13", "mixed:debian12", "rke2:debian13", "direct:debian13", *DEPLOYED]
PODS = ["pods:debian12"]
CLUSTER = ["ipi:debian13", "ipi-agent:debian12", "cluster:debian13", *PODS]
ALONE = ["roles:debian13"]
NAMES = ["names:debian12"]
BGP = ["bgp:debian12", "bgp-move:debian12"]
MACHINES = ["machines:debian12"]
EVERY = PAIR + CLUSTER + ALONE + NAMES + BGP
PAIR_CYCLES = [f"interruptions:pair:{cycle}" for cycle in ("deployment", "change", "engine")]
IPI_CYCLES = ["interruptions:ipi:change"]
CYCLES = PAIR_CYCLES + IPI_CYCLES


@pytest.mark.parametrize(
    "path, needed",
    [
        ("plugins/module_utils/_never_seen.py", EVERY),
        ("a-new-folder/file", EVERY),
        ("lab/hosts.py", EVERY + MACHINES),
        ("Makefile", EVERY),
        ("roles/agent/tasks/main.yml", EVERY + CYCLES),  # the layouts use it for native members, too
        ("roles/pair/tasks/main.yml", PAIR + PAIR_CYCLES),
        ("roles/ipi/tasks/main.yml", CLUSTER + IPI_CYCLES),
        ("roles/direct_server/tasks/main.yml", ["direct:debian13"]),  # no killed run has one
        ("roles/resolver/tasks/tell.yml", ["cluster:debian13", *NAMES]),
        ("plugins/module_utils/_plan/dns/resolver.py", NAMES),
        ("playbooks/site.yml", EVERY + CYCLES),
        ("playbooks/status.yml", ["default:debian12"]),
        ("playbooks/maintenance.yml", ["default:debian12", *MACHINES]),
        ("plugins/module_utils/_host/states/undo.py", EVERY + CYCLES),
        ("tests/interruptions/hosts.py", CYCLES),
        ("plugins/module_utils/_plan/ipi/vips.py", CLUSTER),
        (
            "roles/keepalived/vars/main.yml",
            ["default:debian12", *PAIR[2:], "ipi:debian13", "cluster:debian13", *PODS, *ALONE, *CYCLES],
        ),
        ("plugins/module_utils/_agent/proxy/config.py", EVERY),  # haproxy's services are judged by it
        ("molecule/ipi/drill.yml", CLUSTER[:3]),
        ("molecule/ipi-agent/drill.yml", CLUSTER[1:2]),
        ("molecule/bgp/files/router.bird.conf.j2", BGP),
        ("molecule/machines/power.yml", MACHINES),
        ("playbooks/pods.yml", PODS),
        ("plugins/filter/pods.py", PODS),
        ("molecule/never-seen/molecule.yml", EVERY),
        ("examples/kubeadm-external.yml", DEPLOYED),
        ("lab/demo.yml", []),
        ("tests/unit/test_changed.py", []),
        ("docs/agent.md", []),
        ("roles/pair/README.md", []),
        ("roles/haproxy/README.md", ALONE),  # its example is played
    ],
)
def test_a_path_needs_the_scenarios_that_use_it(path, needed):
    assert changed.runs([path]) == needed


def test_each_interruption_is_a_cycle_of_a_layout():
    named = {cycle for each in changed.CYCLES.values() for cycle in each}
    assert named < {f"interruptions:{name}:{cycle}" for name in LAYOUTS for cycle in LAYOUTS[name].cycles()}


def test_several_paths_need_the_scenarios_of_each_once():
    assert (
        changed.runs(["docs/agent.md", "molecule/mixed/drill.yml", "roles/pair/tasks/main.yml"]) == PAIR + PAIR_CYCLES
    )
    assert changed.runs([]) == []


def test_each_scenario_has_an_image_and_each_image_a_scenario():
    assert set(IMAGE_OF) == {file.parent.name for file in ROOT.glob("molecule/*/molecule.yml")}
    assert set(IMAGE_OF.values()) == set(IMAGES)


@pytest.mark.parametrize("prefix", [*changed.SCENARIOS, *changed.EXAMPLES, *changed.INTERRUPTED])
def test_each_prefix_matches_an_existing_path(prefix):
    assert any(ROOT.glob(prefix + "*" if not prefix.endswith("/") else prefix))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit that holds `kept`, `edited` and `moved`."""
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    for name in ("kept", "edited", "moved"):
        (tmp_path / name).write_text(name)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message=first")
    return tmp_path


def git(folder, *arguments):
    who = ("-c", "user.name=a test", "-c", "user.email=test@example.com")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True)


def test_edited_new_moved_and_removed_files_count_committed_or_not(checkout):
    git(checkout, "switch", "--quiet", "--create=topic")
    git(checkout, "mv", "moved", "elsewhere")
    git(checkout, "commit", "--quiet", "--message=second")
    (checkout / "edited").write_text("other")
    (checkout / "nové").write_text("")
    assert sorted(changed.changed("main")) == ["edited", "elsewhere", "moved", "nové"]


def test_later_commits_on_the_base_branch_do_not_count(checkout):
    git(checkout, "switch", "--quiet", "--create=topic")
    git(checkout, "switch", "--quiet", "main")
    (checkout / "theirs").write_text("")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message=theirs")
    git(checkout, "switch", "--quiet", "topic")
    assert changed.changed("main") == []


def commit(checkout, name):
    (checkout / name).write_text(name)
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", f"--message={name}")


def test_a_gate_judges_what_a_branch_has_changed(checkout):
    git(checkout, "switch", "--quiet", "--create=topic")
    commit(checkout, "theirs")
    assert changed.judged("main") == ["theirs"]


@pytest.mark.parametrize(
    "enough, expected",
    [
        (1, ["third"]),
        (2, ["second", "third"]),
        (3, ["edited", "kept", "moved", "second", "third"]),  # there are no more commits, so everything
    ],
)
def test_a_gate_of_a_clone_of_main_judges_what_the_newest_commits_changed(checkout, monkeypatch, enough, expected):
    monkeypatch.setattr(changed, "ENOUGH", enough)
    commit(checkout, "second")
    commit(checkout, "third")
    assert changed.judged("main") == expected


def test_in_a_clone_of_main_uncommitted_files_are_judged_too(checkout, monkeypatch):
    monkeypatch.setattr(changed, "ENOUGH", 1)
    commit(checkout, "second")
    (checkout / "third").write_text("")
    assert changed.judged("main") == ["third"]


def test_what_prints_the_scenarios_needs_only_the_standard_library():
    command = [sys.executable, "-S", "tests/changed.py", "--since", "HEAD"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^scenarios: ##.*\n\t@\$\(PYTHON\) tests/changed.py", makefile, re.MULTILINE)


def test_a_workflow_gets_the_runs_as_a_list_that_a_matrix_takes(checkout, monkeypatch, capsys):
    (checkout / "Makefile").write_text("")
    monkeypatch.setenv("GITHUB_OUTPUT", str(checkout / "kept"))
    monkeypatch.setattr("sys.argv", ["changed.py", "--since", "HEAD"])
    changed.main()
    assert capsys.readouterr().out.split() == EVERY
    assert json.loads((checkout / "kept").read_text().partition("runs=")[2]) == EVERY
