# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a playbook writes on the controller is tried before its work, and never replaces what no run has written."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import layouts
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import report
from ansible_collections.onprem.lb.plugins.module_utils._shared import own_text
from ansible_collections.onprem.lb.plugins.plugin_utils import outputs
from support.paths import PLAYBOOKS, ROLES

EVERY = [*outputs.FILES, *outputs.FOLDERS]
READ = {"tasks", "pods_kubeconfig", "string"}  # which a playbook reads alone; those of maintenance and restore
ON_CONTROLLER = re.compile(r"(\w+)(?: \| default\([^)]*\))? \| expanduser \| realpath")
TRIED = re.compile(r"^ +outputs: \[(.*)\]$", re.M)
DNS = {
    "layout": "pair",
    "domain": "example.com",
    "subdomain": "apps",
    "vips": ["192.0.2.10", "2001:db8::10"],
    "members": {"lb1": "192.0.2.11"},
    "etcd": ["192.0.2.31"],
    "nodes": {"m0": "192.0.2.31"},
    "api": True,
}


def test_each_variable_that_names_what_is_written_on_the_controller_is_tried():
    files = [*PLAYBOOKS.glob("*.yml"), *ROLES.glob("*/tasks/*.yml"), *ROLES.glob("*/vars/*.yml")]
    texts = [path.read_text() for path in files]
    named = {name for text in texts for name in ON_CONTROLLER.findall(text)}
    tried = {name for text in texts for names in TRIED.findall(text) for name in names.split(", ")}
    assert named - READ == {*tried} == {*EVERY}


def written(name):
    """Return what runs write there."""
    if name == "dns_output":
        described = layouts.describe({**DNS, "ttl": 300})
        assert described["faults"] == []
        return [described[form] for form in ("zone", "dnsmasq", "nsupdate", "corefile")]
    if name == "import_output":
        return [own_text.sealed("pair: {}\n")]
    if name == "drill_html":
        return [(ROLES / "drill" / "templates" / "report.html.j2").read_text()]
    return [json.dumps(report.report([]) if name == "drill_report" else {"layouts": [], "faults": []}, indent=4)]


@pytest.mark.parametrize("name", outputs.FILES)
def test_what_an_earlier_run_has_written_is_written_again_and_trying_it_leaves_it_as_it_is(tmp_path, name):
    path = tmp_path / "out"
    for text in ["", *written(name)]:
        path.write_text(text)
        assert outputs.faults({name: str(path)}) == [] and path.read_text() == text
    path.unlink()
    assert outputs.faults({name: str(path)}) == [] and os.listdir(tmp_path) == []


OTHERS = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\n",
    "a script": "# run me\necho 1\n",
    "an inventory": "all: {hosts: {lb1: {}}}\n",
    "JSON": '{"faults": []}\n',
    "a list": "[]\n",
    "a page": "<!DOCTYPE html><p>hello</p>\n",
    "bytes": "\udcff",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("name", outputs.FILES)
def test_a_file_of_others_is_refused_and_left(tmp_path, name, text):
    path = tmp_path / "out"
    path.write_text(text, errors="surrogateescape")
    assert outputs.faults({name: str(path)}) == [
        f"{name} is {path}: another file is there already: name one that is not there yet."
    ]
    assert path.read_text(errors="surrogateescape") == text


@pytest.mark.parametrize("name", outputs.FILES)
def test_a_file_is_no_folder_device_or_pipe_and_needs_its_folder(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    assert outputs.faults({name: str(tmp_path)}) == [f"{name} is {tmp_path}: it is a folder: name a file."]
    (tmp_path / "dangling").symlink_to("later")
    assert outputs.faults({name: str(tmp_path / "dangling")}) == []
    out, _end = os.pipe()  # as /dev/stdout is, whose target has no path
    for path in ("/dev/null", f"/proc/self/fd/{out}", tmp_path / "pipe", tmp_path / "link", f"{tmp_path}/a/../pipe"):
        (fault,) = outputs.faults({name: str(path)})
        assert fault == f"{name} is {path}: it is no ordinary file, and one would replace it: name another path."
    (fault,) = outputs.faults({name: f"{tmp_path}/missing/x"})
    assert "it cannot be written (No such file or directory)" in fault


@contextlib.contextmanager
def another_user():
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("name", outputs.FILES)
@pytest.mark.parametrize("mode", [0o777, 0o1777], ids=["writable", "sticky"])
def test_a_file_that_is_read_only_or_anothers_is_replaced_if_its_folder_permits_it(name, mode):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # which others may enter
        os.chmod(folder, mode)
        path = os.path.join(folder, "out")
        with open(path, "w", encoding="utf-8") as file:
            file.write(written(name)[0])
        os.chmod(path, 0o444)
        assert outputs.faults({name: path}) == []
        sticky = f"{name} is {path}: it belongs to another user, whose files this folder keeps: name another path."
        with another_user():
            assert outputs.faults({name: path}) == ([sticky] if mode & 0o1000 else [])


@pytest.mark.parametrize("name", EVERY)
def test_a_run_that_writes_nothing_needs_no_folder_that_can_be_written(name):
    assert outputs.faults({name: "/proc/x"}, dry=True) == []


@pytest.mark.parametrize("name", outputs.FILES)
@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_a_dry_run_refuses_what_a_run_would_replace(tmp_path, name, text):
    (tmp_path / "out").write_text(text, errors="surrogateescape")
    for path in (tmp_path / "out", tmp_path, "/dev/null"):
        assert outputs.faults({name: str(path)}, dry=True) == outputs.faults({name: str(path)}) != []


def test_a_play_tries_its_outputs_in_a_dry_run_if_it_writes_them_then():
    """The status does, and the others do not."""
    for path in [*PLAYBOOKS.glob("*.yml"), ROLES / "drill" / "tasks" / "main.yml"]:
        tried = re.findall(r"outputs: \[(\w+).*\](?:\n +(?!- )\S.*)*?\n +check_mode: false", path.read_text())
        assert tried == (["status_output"] if path.name == "status.yml" else []), path


def test_a_zone_that_a_user_has_given_blank_lines_and_directives_is_written_again(tmp_path):
    (zone, *_rest) = written("dns_output")
    path = tmp_path / "zone"
    path.write_text("$ORIGIN example.com.\n$TTL 300\n\n" + zone.replace("\n", "\n\n") + "  \n")
    assert outputs.faults({"dns_output": str(path)}) == []


@pytest.mark.parametrize("name", outputs.FOLDERS)
def test_a_folder_may_be_missing_and_is_not_made(tmp_path, name):
    assert outputs.faults({name: f"{tmp_path}/a/b"}) == outputs.faults({name: str(tmp_path)}) == []
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("theirs")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        (fault,) = outputs.faults({name: str(path)})
        assert fault.startswith(f"{name} is {path}: it cannot be written (Not a directory)")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("value", [5, ["x"], {"a": 1}, True])
def test_what_is_no_path_is_one_sentence(name, value):
    assert outputs.faults({name: value}) == [f"{name} is {value!r}: a path is required."]


@pytest.mark.parametrize("name", EVERY)
def test_a_path_that_no_file_can_have_is_one_sentence(name):
    (fault,) = outputs.faults({name: "a\0b"})
    assert fault.startswith(f"{name} is ")


@pytest.mark.parametrize("name", EVERY)
def test_a_folder_in_which_nobody_can_write_is_refused(name):
    (fault,) = outputs.faults({name: "/proc/x"})
    assert fault.startswith(f"{name} is /proc/x: it cannot be written (")


def test_what_is_not_set_is_not_tried_and_two_outputs_are_two_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert outputs.faults(dict.fromkeys(EVERY)) == outputs.faults(dict.fromkeys(EVERY, "")) == []
    assert outputs.faults({"drill_report": "x", "drill_html": "./x"}) == [
        "drill_html is ./x: drill_report is the same file: name another one."
    ]
