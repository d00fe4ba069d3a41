# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reloads haproxy when something else has renewed a certificate: the installed haproxy, and a host of fakes."""

from __future__ import annotations

import os
import subprocess
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.certificates import keeper, watch
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import commands
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
LOOKS = 8


class Ended(Exception):
    pass


class Host:
    def __init__(self, folder, pem, monkeypatch):
        self.folder, self.pem, self.config, self.record = folder, pem, folder / "haproxy.cfg", folder / "loaded"
        self.config.write_text(CONFIG.format(pem=quoting.haproxy(str(pem))))
        monkeypatch.setattr(load_records, "record_of", lambda _program: str(self.record))
        monkeypatch.setattr(quoting, "systemd_shell", lambda script: script)
        record = load_records.recording(self.config.read_text(), "haproxy", str(self.config))
        (folder / "bin").mkdir()
        self.program("systemctl", SYSTEMCTL.format(folder=folder, record=record))
        path = {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
        monkeypatch.setattr(commands, "ENVIRONMENT", {**os.environ, **path})
        self.looks, self.steps, self.said = 0, {}, []
        subprocess.run(["sh", "-c", record], check=False, capture_output=True)  # find says what is not there

    def program(self, name, text):
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def changes(self):
        """Run the service for some looks; return what it said, and how often haproxy was reloaded."""
        self.looks, self.said = 0, []
        settings = keeper.Settings(str(self.config), str(self.record), "haproxy.service", [str(self.pem)])
        with pytest.raises(Ended):
            keeper.main(settings, SimpleNamespace(info=self.said.append, warning=self.said.append), self.sleep)
        asked = self.folder / "asked"
        asked_for = asked.read_text().splitlines() if asked.exists() else []
        assert {*asked_for} <= {"reload haproxy.service"}
        return self.said, len(asked_for)

    def sleep(self, _seconds):
        """While the service waits, somebody may write. It is ended a few looks later."""
        self.looks += 1
        if self.steps:
            self.looks = 0
            subprocess.run(["sh", "-ec", self.steps.pop(min(self.steps))], cwd=self.folder, check=True)
        elif self.looks == LOOKS:
            raise Ended

    def meanwhile(self, number, command):
        self.steps[number] = command


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path, certificate(tmp_path), monkeypatch)


RELOADED = watch.RELOADED


def test_nothing_is_reloaded_that_haproxy_has_loaded_already(host):
    assert host.changes() == ([], 0)


def test_a_renewed_certificate_is_loaded_once(host):
    host.pem.write_text(certificate_text("renewed"))
    assert host.changes() == ([RELOADED], 1)
    assert host.changes() == ([], 1)


def test_a_renewal_that_writes_several_files_is_one_reload(host, tmp_path):
    (tmp_path / "whole").write_text(certificate_text("renewed"))
    host.pem.write_text("-----BEGIN CERTIFICATE-----\n")
    host.meanwhile(1, f"head -n 5 whole > {host.pem}")
    host.meanwhile(2, f"cat whole > {host.pem}")
    assert host.changes() == ([RELOADED], 1)


def test_what_is_written_during_a_reload_is_loaded_as_well(host, tmp_path):
    (tmp_path / "other").write_text(certificate_text("other"))
    host.pem.write_text(certificate_text("renewed"))
    text = (tmp_path / "bin" / "systemctl").read_text()
    once = f"test -e {tmp_path}/written || {{ touch {tmp_path}/written; cat {tmp_path}/other > {host.pem}; }}"
    host.program("systemctl", text.replace("exit 0", f"{once}"))
    assert host.changes() == ([RELOADED] * 2, 2)


def test_one_that_haproxy_refuses_is_said_and_not_loaded(host):
    before = host.record.read_text()
    host.pem.write_text(certificate_text("renewed").replace("MII", "XXX"))
    said, reloads = host.changes()
    (refused,) = said
    assert refused.startswith(watch.REFUSED) and str(host.pem) in refused and reloads == 0
    assert host.record.read_text() == before


def test_one_that_is_deleted_is_not_loaded(host):
    host.pem.unlink()
    said, reloads = host.changes()
    assert [line.startswith(watch.REFUSED) for line in said] == [True] and reloads == 0


@pytest.mark.parametrize("is_recorded", [True, False], ids=["a configuration that was edited", "no record"])
def test_nothing_else_is_loaded_with_it(host, is_recorded):
    host.pem.write_text(certificate_text("renewed"))
    host.config.write_text(f"{host.config.read_text()}# edited\n") if is_recorded else host.record.unlink()
    assert host.changes() == ([watch.CHANGED], 0)


def test_a_haproxy_that_does_not_run_is_left_alone(host, tmp_path):
    host.pem.write_text(certificate_text("renewed"))
    (tmp_path / "inactive").touch()
    assert host.changes() == ([], 0)


def test_a_reload_that_has_no_effect_is_no_loop(host, tmp_path):
    host.pem.write_text(certificate_text("renewed"))
    host.program("systemctl", f'#!/bin/sh\necho "$*" | grep -v is-active >> {tmp_path}/asked; exit 0\n')
    assert host.changes() == ([RELOADED, watch.NOT_LOADED], 1)


@pytest.mark.parametrize("change", ["add", "remove"])
def test_one_that_comes_to_a_folder_or_leaves_it_is_a_change(tmp_path, monkeypatch, change):
    folder = tmp_path / "a folder's"
    folder.mkdir()
    certificate(folder)
    other = certificate(folder, "other")
    host = Host(tmp_path, folder, monkeypatch)
    assert host.changes() == ([], 0)
    (folder / "more.pem").write_text(certificate_text("more")) if change == "add" else other.unlink()
    assert host.changes() == ([RELOADED], 1)


def test_a_run_that_deletes_what_it_has_written_itself_is_nothing_to_speak_of(host, tmp_path):
    """Its reload follows a moment after the files."""
    host.record.write_text(f"{host.record.read_text()}{'0' * 64}  {tmp_path}/shop-0123456789abcdef.pem\n")
    host.config.write_text(f"{host.config.read_text()}# written by a run\n")
    assert host.changes() == ([], 0)


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
    assert host.changes() == ([RELOADED], 1)


def test_one_that_was_refused_for_a_while_is_loaded_once_haproxy_takes_it(host, tmp_path):
    """It may need a name that nobody resolves for a moment."""
    host.pem.write_text(certificate_text("renewed"))
    host.program("haproxy", f"#!/bin/sh\ntest -e {tmp_path}/resolves || {{ echo no such name >&2; exit 1; }}\n")
    for look in range(1, 4):
        host.meanwhile(look, "true")
    host.meanwhile(4, "touch resolves")
    assert host.changes() == ([f"{watch.REFUSED} no such name.", RELOADED], 1)


def test_one_that_is_mended_is_loaded_and_a_fault_that_comes_back_is_said_again(host, tmp_path):
    bad, good = (certificate_text(name).replace("MII", part) for name, part in (("bad", "XXX"), ("good", "MII")))
    (tmp_path / "bad").write_text(bad), (tmp_path / "good").write_text(good)
    for at, text in enumerate(("bad", "good", "bad")):
        host.meanwhile(3 * at + 1, f"cat {text} > {host.pem}")
        host.meanwhile(3 * at + 2, "true")
        host.meanwhile(3 * at + 3, "true")
    said, reloads = host.changes()
    assert [line.partition(" [ALERT]")[0] for line in said] == [watch.REFUSED, RELOADED, watch.REFUSED] and reloads == 1
