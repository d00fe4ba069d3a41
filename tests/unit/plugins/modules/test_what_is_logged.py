# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No module says what may be secret: in the host's log, its result, its words, its difference or its crash.

Ansible's own code logs and prints. Each text of each module's arguments is a mark of its own.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import itertools
import json
import shlex
from urllib.parse import quote

import pytest
from ansible.module_utils import basic
from ansible_collections.onprem.lb.plugins.module_utils._host import candidates
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module
from ansible_collections.onprem.lb.plugins.module_utils._shared import quoting
from ansible_collections.onprem.lb.plugins.modules import agent, config_files, drill_event
from support.modules import run
from support.paths import MODULES
from support.programs import Programs

NAMES = sorted(file.stem for file in MODULES.glob("*.py") if "Module(" in file.read_text())
# Options of text that are logged, because they are names, addresses and the like: never what a user writes freely.
HARMLESS = {
    *(
        "addresses",
        "break_variable",
        "clusters",
        "downgrade_variable",
        "first",
        "holder",
        "id",
        "interface",
        "interfaces",
        "loaded",
        "macs",
    ),
    *("members", "mode", "name", "networks", "packages", "port", "ports", "program", "programs", "purpose", "removes"),
    *(
        "address",
        "event",
        "router",
        "run",
        "server",
        "take_over_variable",
        "unit",
        "units",
        "user",
        "vip",
        "vips",
        "vrrp_interface",
        "vrrp_peers",
    ),
    *("setting", "with_auth_pass", "owner", "group"),
}
# Each way to write a text into a file; a shell script is quoted by whoever writes the script.
QUOTES = [
    each
    for name, each in inspect.getmembers(quoting, inspect.isfunction)
    if each.__module__ == quoting.__name__ and name[0] != "_" and name != "systemd_shell"
]
# As a user may write it: what a shell, haproxy, keepalived, JSON or a URL quotes.
AWKWARD = ["Zq{}", "/Zq{}%s a$b 'c d'", "Zq{}'s", 'Zq{}"s', "Zq{}\\s", "Zq{} #s", "Zq{}/+s", "Zqü{}"]


class Stopped(Exception):
    """A module has said what its arguments are."""


def spec_of(name, monkeypatch):
    """Return the argument spec of a module."""
    found = {}

    def noted(_module, argument_spec, **_others):
        found.update(argument_spec)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(Module, "__init__", noted)
        patch.setattr(Module, "running", None)
        with pytest.raises(Stopped):
            importlib.import_module(f"ansible_collections.onprem.lb.plugins.modules.{name}").main()
    return found


def marked(option, name, numbers):
    """Return a value for an option: a mark, unless Ansible would refuse it or it is harmless."""
    if "options" in option:
        inner = {key: marked(each, key, numbers) for key, each in option["options"].items()}
        return [inner, inner] if option["type"] == "list" else inner
    kind = option.get("elements") if option.get("type") == "list" else option.get("type", "str")
    if "choices" in option or kind in ("bool", "int", "float", "path"):
        value = option["choices"][0] if "choices" in option else {"path": "/plain"}.get(kind, 1)
    else:
        value = "plain" if option.get("no_log") is False else f"Zq{next(numbers)}'\\\n\"qZ"
        value = {"key": [value]} if kind == "dict" else value
    return [value] if option.get("type") == "list" else value


@pytest.fixture
def logged(monkeypatch):
    """What Ansible writes to the host's log."""
    lines = []
    monkeypatch.setattr(basic, "has_journal", False)
    monkeypatch.setattr(basic.syslog, "syslog", lambda _level, line: lines.append(line))
    return lines


def test_no_module_logs_or_returns_what_may_be_secret_in_its_arguments(monkeypatch, logged):
    for name in NAMES:
        spec = spec_of(name, monkeypatch)
        given = {key: marked(option, key, itertools.count(100)) for key, option in spec.items()}
        said = [json.dumps(call(spec, given, end)) for end in ENDS.values()]
        assert [line for line in [*said, *logged] if "Zq" in line] == [], name
    assert len([line for line in logged if line.startswith("Invoked with")]) == len(NAMES) * len(ENDS)


ENDS = {
    "good": lambda module: module.exit_json(changed=True),
    "bad": lambda module: module.fail_json(msg="It failed."),
}


def call(spec, given, end):
    """Return what a module of this spec prints."""

    class Own:
        RETURN = "{}"

        @staticmethod
        def main():
            end(Module(argument_spec=spec, supports_check_mode=True))

    return run(Own, given)


def test_what_is_logged_of_a_call_is_a_choice_a_number_a_path_or_on_a_list(monkeypatch):
    free = {
        (name, key) for name in NAMES for key, option in every_option(spec_of(name, monkeypatch)) if is_free(option)
    }
    assert {(name, key) for name, key in free if key not in HARMLESS} == set()


def every_option(spec):
    for key, option in spec.items():
        yield key, option
        yield from every_option(option.get("options", {}))


def is_free(option):
    return option.get("no_log") is False


def test_a_call_is_logged_with_what_is_no_secret(tmp_path, logged):
    run(config_files, {"files": [{"path": str(tmp_path / "a.cfg"), "content": "text\n", "mode": "0640"}]})
    (line,) = logged
    assert str(tmp_path / "a.cfg") in line and "0640" in line and "NOT_LOGGED" in line and "text" not in line


def written(secret):
    """Return a secret in the forms in which files, programs and logs have it."""
    quoted = [secret, shlex.quote(secret), *(each for each in map(attempt, QUOTES, [secret] * len(QUOTES)) if each)]
    logged = [form for text in quoted for form in (text, json.dumps(text)[1:-1], repr(text)[1:-1])]
    return [
        *logged,
        quote(secret, safe=""),
        quote(secret),
        base64.b64encode(secret.encode()).decode().rstrip("="),
    ]


def attempt(write, secret):
    try:
        return write(secret)
    except quoting.Unquotable:
        return ""


@pytest.mark.parametrize("form", AWKWARD)
def test_a_secret_is_masked_in_each_form_in_which_it_is_written(tmp_path, logged, form):
    secret = form.format("7w7")
    content = "".join(f"    http-request set-header X-Key {each}\n" for each in written(secret)) + "    mode http\n"
    echoes = Programs({"haproxy": (1, "", f"[ALERT] : unknown words in '{content!r}' {written(secret)}\n")})
    given = {"files": [{"path": str(tmp_path / "a.cfg"), "content": content, "check": "haproxy"}], "secrets": [secret]}
    for programs in (echoes, Programs({"haproxy": ""})):
        said = json.dumps(run(config_files, given, programs, check=True), ensure_ascii=False)
        assert not [each for each in written(secret) if each in f"{said}{logged}"]
        assert "X-Key ********" in said
    assert "mode http" in said


def test_the_rest_of_a_file_is_legible_beside_its_secrets(tmp_path):
    path = tmp_path / "haproxy.cfg"
    old = "backend web\n    mode tcp\n    http-request set-header X-Shop Zqold\n    errorfile 503 /etc/e.http\n"
    path.write_text(old)
    after = "backend web\n    mode http\n    http-request set-header X-Shop Zqnew\n    server a 192.0.2.31:8080\n"
    given = {"files": [{"path": str(path), "content": after}], "secrets": ["X-Shop Zqnew"]}
    (diff,) = run(config_files, given)["diff"]
    assert diff["after"] == after.replace("X-Shop Zqnew", "********")
    assert diff["before"] == old.replace("X-Shop Zqold", "******** ********")


@pytest.mark.parametrize("password", ["1", "haproxy", "80"])
def test_a_trivial_password_is_masked_where_it_is_one_and_nowhere_else(tmp_path, password):
    content = f"# Managed by haproxy 1\nuser ops insecure-password {password}\nport 80\n"
    result = run(
        config_files, {"files": [{"path": str(tmp_path / "a.cfg"), "content": content}], "secrets": [password]}
    )
    assert result["diff"][0]["after"] == content.replace(f"password {password}", "password ********")


@pytest.mark.parametrize(
    "module, given",
    [
        (config_files, {"files": [{"path": "/plain", "content": "line Zq71\n"}], "secrets": ["Zq72"]}),
        (agent, {"vrrp": {"checks": [{"command": "/bin/true Zq71"}]}, "secrets": ["Zq72"]}),
        (drill_event, {"event": "own", "command": {"inject": "echo Zq71; echo Zq72"}}),
    ],
    ids=["config_files", "agent", "drill_event"],
)
def test_a_crash_is_a_sentence_without_the_arguments(monkeypatch, module, given):
    """Ansible adds the trace of an exception with -vvv, or where its settings want it."""
    monkeypatch.setattr("ansible.module_utils._internal._traceback.is_traceback_enabled", lambda _event: True)

    def crash(*_arguments, **_others):
        raise KeyError(json.dumps(given))

    monkeypatch.setattr(drill_event, "run_event", crash)
    monkeypatch.setattr(candidates, "mover", crash)
    crashed = run(module, given)
    assert "KeyError" in crashed["exception"] and crashed["msg"].startswith("This is a bug in the collection: ")
    assert "Zq" not in json.dumps(crashed)


def test_what_is_wrong_with_an_argument_is_said_without_it():
    said = json.dumps(run(config_files, {"files": ["path=/plain content='Zq71' Zq72"], "secrets": {"Zq73": "Zq74"}}))
    assert '"failed": true' in said and "Zq" not in said
