# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reloads haproxy when something else has renewed a certificate: the installed haproxy, and a host of fakes."""

from __future__ import annotations

import os
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import renewals
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import read_services
from ansible_collections.onprem.lb.plugins.module_utils._shared import load_records, quoting
from support.certificates import certificate, certificate_text

CONFIG = "defaults\n  timeout client 1s\nfrontend web\n  mode tcp\n  bind 127.0.0.1:1 ssl crt {pem}\n"
# It is active unless a file says otherwise, and a reload writes the record, as haproxy's unit has it.
SYSTEMCTL = """\
#!/bin/sh
case "$*" in *is-active*) test ! -e {folder}/inactive; exit;; esac
echo "$*" >> {folder}/asked
{record}
exit 0
"""
# While the script waits, somebody may write. It is ended a few looks later.
SLEEP = """\
#!/bin/sh
cd {folder}
for step in step.*; do test ! -e $step || {{ mv $step now; sh now; rm now; exit 0; }}; done
echo >> looks; test $(wc -l < looks) -le {looks} || {{ rm looks; exit 1; }}
"""
LOOKS = 8


class Host:
    def __init__(self, folder, pem, monkeypatch):
        self.folder, self.pem, self.config, self.record = folder, pem, folder / "haproxy.cfg", folder / "loaded"
        self.config.write_text(CONFIG.format(pem=quoting.haproxy(str(pem))))
        monkeypatch.setattr(load_records, "record_of", lambda _program: str(self.record))
        monkeypatch.setattr(quoting, "systemd_shell", lambda script: script)
        record = load_records.recording(self.config.read_text(), "haproxy", str(self.config))
        (folder / "bin").mkdir()
        self.program("systemctl", SYSTEMCTL.format(folder=folder, record=record))
        self.program("sleep", SLEEP.format(folder=folder, looks=LOOKS))
        subprocess.run(["sh", "-c", record], check=False, capture_output=True)  # find says what is not there

    def program(self, name, text):
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def changes(self):
        """Run what the unit runs for some looks; return what it said, and how often haproxy was reloaded."""
        text = renewals.script([str(self.pem)], str(self.config), str(self.record))
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", text], env=environment, capture_output=True, text=True, check=False)
        asked = self.folder / "asked"
        asked_for = asked.read_text().splitlines() if asked.exists() else []
        assert {*asked_for} <= {"reload haproxy.service"}
        return done.stdout, len(asked_for)

    def meanwhile(self, number, command):
        (self.folder / f"step.{number}").write_text(command)


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path, certificate(tmp_path), monkeypatch)


RELOADED, REFUSED = f"<5>{renewals._RELOADED}\n", f"<3>{renewals._REFUSED}\n"


def test_nothing_is_reloaded_that_haproxy_has_loaded_already(host):
    assert host.changes() == ("", 0)


def test_a_renewed_certificate_is_loaded_once(host):
    host.pem.write_text(certificate_text("renewed"))
    assert host.changes() == (RELOADED, 1)
    assert host.changes() == ("", 1)


def test_a_renewal_that_writes_several_files_is_one_reload(host, tmp_path):
    (tmp_path / "whole").write_text(certificate_text("renewed"))
    host.pem.write_text("-----BEGIN CERTIFICATE-----\n")
    host.meanwhile(1, f"head -n 5 whole > {host.pem}")
    host.meanwhile(2, f"cat whole > {host.pem}")
    assert host.changes() == (RELOADED, 1)


def test_what_is_written_during_a_reload_is_loaded_as_well(host, tmp_path):
    (tmp_path / "other").write_text(certificate_text("other"))
    host.pem.write_text(certificate_text("renewed"))
    text = (tmp_path / "bin" / "systemctl").read_text()
    once = f"test -e {tmp_path}/written || {{ touch {tmp_path}/written; cat {tmp_path}/other > {host.pem}; }}"
    host.program("systemctl", text.replace("exit 0", f"{once}"))
    assert host.changes() == (RELOADED * 2, 2)


def test_one_that_haproxy_refuses_is_said_and_not_loaded(host):
    before = host.record.read_text()
    host.pem.write_text(certificate_text("renewed").replace("MII", "XXX"))
    said, reloads = host.changes()
    assert said.startswith(REFUSED) and said.count(renewals._REFUSED) == 1 and reloads == 0
    assert said.count(str(host.pem)) == 1, "what haproxy says of it, once"
    assert host.record.read_text() == before


def test_one_that_is_deleted_is_not_loaded(host):
    host.pem.unlink()
    said, reloads = host.changes()
    assert said.startswith(REFUSED) and reloads == 0


@pytest.mark.parametrize("is_recorded", [True, False], ids=["a configuration that was edited", "no record"])
def test_nothing_else_is_loaded_with_it(host, is_recorded):
    host.pem.write_text(certificate_text("renewed"))
    host.config.write_text(f"{host.config.read_text()}# edited\n") if is_recorded else host.record.unlink()
    assert host.changes() == (f"<4>{renewals._CHANGED}\n", 0)


def test_a_haproxy_that_does_not_run_is_left_alone(host, tmp_path):
    host.pem.write_text(certificate_text("renewed"))
    (tmp_path / "inactive").touch()
    assert host.changes() == ("", 0)


def test_a_reload_that_has_no_effect_is_no_loop(host, tmp_path):
    host.pem.write_text(certificate_text("renewed"))
    host.program("systemctl", f'#!/bin/sh\necho "$*" | grep -v is-active >> {tmp_path}/asked; exit 0\n')
    assert host.changes() == (f"{RELOADED}<3>{renewals._NOT_LOADED}\n", 1)


@pytest.mark.parametrize("change", ["add", "remove"])
def test_one_that_comes_to_a_folder_or_leaves_it_is_a_change(tmp_path, monkeypatch, change):
    folder = tmp_path / "a folder's"
    folder.mkdir()
    certificate(folder)
    other = certificate(folder, "other")
    host = Host(tmp_path, folder, monkeypatch)
    assert host.changes() == ("", 0)
    (folder / "more.pem").write_text(certificate_text("more")) if change == "add" else other.unlink()
    assert host.changes() == (RELOADED, 1)


def test_a_run_that_deletes_what_it_has_written_itself_is_nothing_to_speak_of(host, tmp_path):
    """Its reload follows a moment after the files."""
    host.record.write_text(f"{host.record.read_text()}{'0' * 64}  {tmp_path}/shop-0123456789abcdef.pem\n")
    host.config.write_text(f"{host.config.read_text()}# written by a run\n")
    assert host.changes() == ("", 0)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_that_leads_to_another_file_is_a_change(tmp_path, monkeypatch, kind):
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        certificate(tmp_path / number)
    link = tmp_path / "live"
    link.symlink_to("1" if kind == "folder" else "1/web.pem")
    host = Host(tmp_path, link / "web.pem" if kind == "folder" else link, monkeypatch)
    host.meanwhile(1, "true")
    host.meanwhile(2, f"ln -s {'2' if kind == 'folder' else '2/web.pem'} new; mv -T new live")
    assert host.changes() == (RELOADED, 1)


def test_one_that_was_refused_for_a_while_is_loaded_once_haproxy_takes_it(host, tmp_path):
    """It may need a name that nobody resolves for a moment."""
    host.pem.write_text(certificate_text("renewed"))
    host.program("haproxy", f"#!/bin/sh\ntest -e {tmp_path}/resolves || {{ echo no such name >&2; exit 1; }}\n")
    for look in range(1, 4):
        host.meanwhile(look, "true")
    host.meanwhile(4, "touch resolves")
    assert host.changes() == (f"{REFUSED}no such name\n{RELOADED}", 1)


def test_one_that_is_mended_is_loaded_and_a_fault_that_comes_back_is_said_again(host, tmp_path):
    bad, good = (certificate_text(name).replace("MII", part) for name, part in (("bad", "XXX"), ("good", "MII")))
    (tmp_path / "bad").write_text(bad), (tmp_path / "good").write_text(good)
    for at, text in enumerate(("bad", "good", "bad")):
        host.meanwhile(3 * at + 1, f"cat {text} > {host.pem}")
        host.meanwhile(3 * at + 2, "true")
        host.meanwhile(3 * at + 3, "true")
    said, reloads = host.changes()
    own = [line for line in said.splitlines(keepends=True) if line.startswith("<")]
    assert (own, reloads) == ([REFUSED, RELOADED, REFUSED], 1)


def test_the_files_are_those_that_haproxy_reads_but_for_those_of_a_run():
    named = {"certificate": ["/a 100%.pem", "/folder/"], "ca": "/ca.pem", "crl": "/crl.pem"}
    tls = [named, {"content": certificate_text()}, None, {"certificate": "/ca.pem"}]
    services = [
        {"name": f"s{at}", "port": 443 + at, "servers": ["192.0.2.31"], "tls": each} for at, each in enumerate(tls)
    ]
    found, faults = read_services(services, "services")
    assert faults == []
    assert renewals.watched(found) == ["/a 100%.pem", "/folder/", "/ca.pem", "/crl.pem"]
