# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-test sanity and ansible-lint are given: everything, or what has changed."""

from __future__ import annotations

import json
import subprocess
import venv

import changed
import gates
import pytest

CHANGED = ("plugins/modules/host_info.py", "tests/unit/test_gates.py", "playbooks/site.yml", "tests/golden/gone.yml")


@pytest.fixture
def run_gate(monkeypatch):
    """Return a function that runs a gate with some files changed; it returns the exit code and the command, if any."""

    def run(gate, *options, paths=CHANGED):
        commands = []

        def note(command, **_options):
            commands.append(command)
            return subprocess.CompletedProcess(command, 3)

        monkeypatch.setattr(gates, "prepare_home", lambda home, users: None)
        monkeypatch.setattr(gates.subprocess, "run", note)
        monkeypatch.setattr(changed, "judged", lambda since: list(paths) if since == "main" else [])
        monkeypatch.setattr("sys.argv", ["gates.py", gate, *options])
        code = gates.main()
        return code, commands[0] if commands else None

    return run


@pytest.mark.parametrize("gate, program", [("sanity", "ansible-test"), ("ansible-lint", "ansible-lint")])
@pytest.mark.parametrize("options", [(), ("--since", "")])
def test_without_a_commit_everything_is_judged(run_gate, gate, program, options):
    code, command = run_gate(gate, *options)
    assert (code, command[0]) == (3, program)
    assert not [word for word in command if "/" in word or word.startswith("--skip-test")]


def test_sanity_judges_the_changed_files_that_are_still_there(run_gate):
    _code, command = run_gate("sanity", "--since", "main")
    assert tuple(command[-3:]) == CHANGED[:3]
    assert {word for word in command if word.startswith("--skip")} == {f"--skip-test={name}" for name in gates.LINT_HAS}


def test_ansible_lint_judges_the_changed_files_that_it_would_find_by_itself(run_gate):
    hidden = ".config/molecule/drill.yml"
    excluded = ["tests/golden/haproxy.yml", "bench/peers.yml", "changelogs/config.yaml"]
    _code, command = run_gate("ansible-lint", "--since", "main", paths=[*CHANGED, hidden, *excluded])
    assert command == ["ansible-lint", "--strict", "playbooks/site.yml"]


def test_a_page_must_be_right_and_a_filter_of_the_roles_needs_none(monkeypatch, capsys):
    def says(*paths):
        messages = [{"path": path, "row": None, "column": 3, "message": "wrong"} for path in paths]
        done = subprocess.CompletedProcess((), 3, json.dumps({"messages": messages, "success": False}))
        monkeypatch.setattr(gates.subprocess, "run", lambda *_args, **_options: done)
        return gates.docs(None)

    assert says("plugins/filter/members_status.py") == 0
    assert says("plugins/filter/members_status.py", "plugins/filter/api_redirect.yml") == 1
    assert says("plugins/modules/host_info.py") == says("roles/pair/meta/argument_specs.yml") == 1
    assert capsys.readouterr().out.splitlines()[0] == "plugins/filter/api_redirect.yml:0:3: wrong"


def test_ansible_lint_does_not_judge_everything_when_nothing_that_it_reads_has_changed(run_gate, capsys):
    assert run_gate("ansible-lint", "--since", "main", paths=["plugins/modules/host_info.py"]) == (0, None)
    assert "0 files" in capsys.readouterr().out


def test_pip_is_installed_without_a_download_and_with_the_users_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(gates, "script_names", lambda: {"get_pip_24_2.py"})
    (tmp_path / "user" / ".config" / "pip").mkdir(parents=True)
    gates.prepare_home(tmp_path / "home", tmp_path / "user")
    gates.prepare_home(tmp_path / "home", tmp_path / "user")
    assert (tmp_path / "home" / ".config" / "pip").is_dir()
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    script = tmp_path / "home" / ".ansible" / "test" / "cache" / "get_pip_24_2.py"
    subprocess.run([python, script, "--no-setuptools"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([python, "-m", "pip", "--version"], check=True, stdout=subprocess.DEVNULL)


def test_the_script_has_the_name_that_ansible_test_looks_for():
    assert all(name.startswith("get_pip_") for name in gates.script_names())
    assert gates.script_names()
