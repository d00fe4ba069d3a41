# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit records when its program loads its configuration is what a run compares with the files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import loaded_files
from ansible_collections.onprem.lb.plugins.module_utils._shared import load_records
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import HAPROXY, KEEPALIVED

# What a configuration says, and the files that its program reads then. `{folder}` has them.
CASES = {
    "a certificate with all beside it": (
        HAPROXY,
        "bind :443 ssl crt {folder}/web.pem",
        ["web.pem", "web.pem.key", "web.pem.ocsp", "web.pem.issuer", "web.pem.sctl"],
    ),
    "one for each kind of key": (
        HAPROXY,
        "bind :443 ssl crt {folder}/web.pem",
        ["web.pem.rsa", "web.pem.ecdsa", "web.pem.ecdsa.key", "web.pem.rsa.ocsp"],
    ),
    "a folder": (HAPROXY, "bind :443 ssl crt {folder}/certs/", ["certs/a.pem", "certs/b.pem", "certs/b.pem.key"]),
    "a list": (
        HAPROXY,
        "bind :443 ssl crt-list {folder}/list.txt",
        ["list.txt", "a.pem", "sub/b.pem", "sub/b.pem.key"],
    ),
    "a list of names without a folder": (
        HAPROXY,
        "crt-base {folder}/sub\n bind :443 ssl crt-list {folder}/short.txt",
        ["short.txt", "sub/b.pem", "sub/b.pem.key"],
    ),
    "authorities, patterns, maps and pages": (
        HAPROXY,
        "bind :443 ssl crt {folder}/web.pem ca-file {folder}/ca.pem\n acl a src -f {folder}/known.lst\n"
        " use_backend %[src,map({folder}/a.map)]\n errorfile 503 {folder}/503.http",
        ["web.pem", "ca.pem", "known.lst", "a.map", "503.http"],
    ),
    "strange names": (
        HAPROXY,
        "bind :443 ssl crt '{folder}/a b.pem' crt '{folder}/$HOME %h;touch x.pem' crt \"{folder}/it's.pem\"",
        ["a b.pem", "$HOME %h;touch x.pem", "it's.pem", "a b.pem.key"],
    ),
    "what is included": (KEEPALIVED, "include {folder}/conf.d/*.conf", ["conf.d/a.conf", "conf.d/b.conf"]),
    "authorities of keepalived": (KEEPALIVED, "SSL {{\n ca {folder}/ca.pem\n}}", ["ca.pem"]),
}
LISTS = {
    "list.txt": "# one a line\n{folder}/a.pem [alpn h2] *.example\n\n  {folder}/sub/b.pem\n",
    "short.txt": "b.pem shop.example\n",
}


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """A configuration whose program has loaded it, with all files that it reads."""
    program, text, names = CASES[request.param]
    path = tmp_path / "program.conf"
    path.write_text(text.format(folder=tmp_path) + "\n")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(LISTS.get(name, "text\n").format(folder=tmp_path))
    return program, path, [str(tmp_path / name) for name in names]


def load(program, path):
    """Do what systemd does at a reload, and return the record."""
    line = load_records.recording(path.read_text(), program, str(path))
    shell, script = re.fullmatch(r"(/bin/sh) -c '(.*)'", line).groups()
    script = re.sub(r"\\(.)", r"\1", script.replace("%%", "%").replace("$$", "$"))
    script = script.replace(f"/run/{program}.loaded", str(path.with_name("record")))
    subprocess.run([shell, "-c", script], check=False, cwd="/", capture_output=True)
    return load_records.read_record(path.with_name("record").read_text())


def changed(program, path, record):
    return loaded_files.changed(program, str(path), record.others)


def test_right_after_it_nothing_has_changed(case):
    program, path, names = case
    record = load(program, path)
    assert (record.config, record.checksum) == (str(path), loaded_files.checksum(str(path)))
    assert sorted(record.others) == sorted(names)
    assert changed(program, path, record) == []


def test_each_file_that_changes_is_named_until_the_next_one(case):
    program, path, names = case
    for name in names:
        record = load(program, path)
        with open(name, "a", encoding="utf-8") as file:
            file.write("# more\n")
        assert changed(program, path, record) == [name]
        assert changed(program, path, load(program, path)) == []


def test_each_file_that_goes_or_comes_is_named(case):
    program, path, names = case
    for name in names:
        with_all = load(program, path)
        text = Path(name).read_text()
        Path(name).unlink()
        without = load(program, path)
        assert name in changed(program, path, with_all) and changed(program, path, without) == []
        Path(name).write_text(text)
        assert name in changed(program, path, without)


def test_a_configuration_that_names_nothing_is_recorded_alone():
    assert load_records.recording("listen a\n", HAPROXY, "/etc/haproxy/haproxy.cfg") == (
        "/bin/sh -c '{ sha256sum /etc/haproxy/haproxy.cfg; cat /proc/uptime; } > /run/haproxy.loaded'"
    )


def test_what_is_no_record_is_an_empty_one():
    checksum = "0" * 64
    whole = f"{checksum}  /a.cfg\n12.34 5.67\n{checksum}  /a b.pem\n"
    assert load_records.read_record(whole) == (checksum, "/a.cfg", 12.34, {"/a b.pem": checksum})
    for text in ("", "text\n", f"{checksum}  /a.cfg\n", whole[1:]):
        assert load_records.read_record(text) == load_records.Record()
