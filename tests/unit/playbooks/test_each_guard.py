# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each guard of a secret, taken out by itself, lets a mark through that the search finds.

Otherwise a search that finds nothing would say nothing of that guard. None is taken out of a file: what a task with
`no_log` would print is noted as it is played, and the guards in Python are replaced.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from unittest import mock

import pytest
import yaml
from ansible.module_utils import basic
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import schema
from ansible_collections.onprem.lb.plugins.module_utils._host import candidates, masking, module
from ansible_collections.onprem.lb.plugins.modules import config_files
from support.modules import run as run_module
from support.paths import PLAYBOOKS, ROLES
from support.programs import Programs
from support.recorded_hosts import (
    CLUSTER,
    PAIR,
    PAIR_VARIABLES,
    deployment,
    fresh_then_running,
    locked,
    seen,
)
from support.recorded_plays import run

from .test_nothing_secret_is_shown import IPI, MARK, NATIVE, kept
from .test_restore import STATE

FILES = [*ROLES.glob("*/tasks/**/*.yml"), *ROLES.glob("*/handlers/*.yml"), *PLAYBOOKS.rglob("*.yml")]
NOTHING = re.compile("((((?!))))")  # with as many groups as what it replaces
FOLLOWED = {"pair_follow": True, "pair_follow_kubeconfig": "/etc/onprem/kubeconfig"}
CHECK = {"path": "/readyz?token=MarkReady"}
USER = {"name": "a", "user": {"token": "MarkToken"}}
KUBECONFIG = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": {"server": "https://api.example.com:6443"}}],
    "users": [USER],
}


def hiding(value):
    """Yield the name of each task with `no_log`."""
    for each in value if isinstance(value, list) else []:
        if each.get("no_log"):
            yield each["name"]
        for key in ("tasks", "block", "rescue", "always"):
            yield from hiding(each.get(key))


def guards():
    """Yield each task with `no_log` as Ansible names it: with its role."""
    for file in FILES:
        role = f"{file.relative_to(ROLES).parts[0]} : " if ROLES in file.parents else ""
        yield from (f"{role}{name}" for name in hiding(yaml.safe_load(file.read_text())))


def slurped(call):
    return {"content": base64.b64encode(json.dumps(KUBECONFIG).encode()).decode(), "source": "MarkSlurped"}


def posted(call):
    text = "userlist people\n user ann insecure-password MarkUser\n"
    return {"content": base64.b64encode(text.encode()).decode(), "source": "MarkSlurped"}


def compared(call):
    return {"engine": "native", "states": [{**STATE, "id": call.given.get("id")}]}


def runs(folder):
    """Play what hides something, with a mark in all that it reads and is given."""
    fresh = {"host_info": fresh_then_running(found="MarkHost")}
    yield run("pair", PAIR, deployment(**fresh), limit="lb2", **NATIVE)
    yield run("pair", PAIR, deployment(slurp=slurped), **PAIR_VARIABLES, **FOLLOWED)
    yield run("status", PAIR, {"member_info": seen}, **NATIVE)
    yield run("status", CLUSTER, {"member_info": seen}, **IPI, ipi_server_check=CHECK)
    saved, answers = {"auth_pass": "MarkSaved"}, {"member_lock": locked, "member_info": seen}
    exported = {"member_state": {"engine": "native", "saved": saved}}
    yield run("backup", PAIR, {**answers, **exported}, backup_folder=str(folder), **PAIR_VARIABLES)
    file = folder / "backup.json"
    file.write_text(json.dumps({"backup": "20260131T120000Z", "members": {"lb1": saved}}))
    yield run("restore", PAIR, {**answers, "member_state": compared}, restore_file=str(file), **PAIR_VARIABLES)
    files = {"import_haproxy": "/etc/haproxy/haproxy.cfg", "import_output": str(folder / "new.yml")}
    yield run("import", {"here": {"localhost": {}}}, {"slurp": posted}, **files)
    yield run("import", PAIR, {"slurp": posted}, **files, import_hosts="pair")


def test_each_task_that_hides_its_words_has_a_mark_in_them(tmp_path):
    found = {}
    for play in runs(tmp_path):
        assert kept(play) == []
        for name, text in play.hidden:
            found.setdefault(name, set()).update(MARK.findall(text))
    assert {name: found.get(name) for name in guards() if not found.get(name)} == {}


def said_of(tmp_path, before="", content="mode http\n", printed="", crash=False, **given):
    """Return what config_files logs, returns and prints of a file that replaces another one, or of its crash."""
    path = tmp_path / "a.cfg"
    path.write_text(before)
    logged = []
    files_given = {"files": [{"path": str(path), "content": content, "check": "haproxy"}], **given}
    programs = Programs({"haproxy": (1, "", printed) if printed else ""})
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(basic, "has_journal", False))
        stack.enter_context(mock.patch.object(basic.syslog, "syslog", lambda _level, line: logged.append(line)))
        stack.enter_context(mock.patch.object(candidates, "mover", fails) if crash else contextlib.nullcontext())
        said = run_module(config_files, files_given, programs)
    return json.dumps([said, logged], ensure_ascii=False)


def fails(*given, **_others):
    raise KeyError("MarkCrash")


def unmasked(_masks, said):
    return said


ENCODED = base64.b64encode(b"MarkEncoded it").decode().rstrip("=")
PASSWORD = "user ops insecure-password {}\n"
# Each guard in Python: what stands in its place, and what has its mark.
GUARDS = {
    "logged arguments": ((module, "shown", lambda _spec, given: given), {"secrets": ["MarkLogged"]}),
    "secrets that a task names": (
        (masking.Masks, "all", unmasked),
        {"content": "x MarkNamed\n", "secrets": ["MarkNamed"]},
    ),
    "passwords of a file": ((masking, "PASSWORD", NOTHING), {"content": PASSWORD.format("MarkFile")}),
    "each form of a secret": (
        (masking, "forms", lambda secret: {secret}),
        {"content": f"x {ENCODED}\n", "secrets": ["MarkEncoded it"]},
    ),
    "what a file had": ((masking, "of_before", lambda before, _after: before), {"before": "option key MarkBefore\n"}),
    "what a program prints": (
        (masking.Masks, "text", unmasked),
        {"printed": "[ALERT] : unknown MarkPrinted\n", "content": "x MarkPrinted\n", "secrets": ["MarkPrinted"]},
    ),
    "what crashes": (
        (module.Module, "masks", lambda _self: masking.Masks([])),
        {"content": "MarkCrash\n", "crash": True},
    ),
}


@pytest.mark.parametrize("name", GUARDS)
def test_each_guard_of_a_module_keeps_a_mark(tmp_path, name):
    (where, attribute, instead), given = GUARDS[name]
    marks = (*MARK.findall(str(given)), ENCODED)
    assert not [mark for mark in marks if mark in said_of(tmp_path, **given)]
    with mock.patch.object(where, attribute, instead):
        assert [mark for mark in marks if mark in said_of(tmp_path, **given)]


@pytest.mark.parametrize(
    "guard, instead, given",
    [
        ("ARGUMENTS", (), ("command", "/bin/true MarkArgument")),
        ("SECRET", NOTHING, ("instances", "auth_pass: MarkText")),
    ],
)
def test_each_guard_of_a_sentence_keeps_a_mark(monkeypatch, guard, instead, given):
    assert "Mark" not in schema.shown_of(*given)
    monkeypatch.setattr(schema, guard, instead)
    assert "Mark" in schema.shown_of(*given)
