# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a certificate is what haproxy serves, whatever its file has meanwhile."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import certificates
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import served
from support import waiting
from support.certificates import certificate
from support.haproxies import Haproxy


def text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(served, "TIMEOUT", waiting.LIMIT_S)


@pytest.fixture
def haproxy(tmp_path):
    """A haproxy with a certificate of a service, and two in a folder."""
    (tmp_path / "certs").mkdir()
    made = [
        certificate(tmp_path, "web", 30),
        certificate(tmp_path / "certs", "a b", 60),
        certificate(tmp_path / "certs", "c", 90),
    ]
    with Haproxy(tmp_path, f"bind 127.0.0.1:{{port}} ssl crt '{made[0]}' crt '{tmp_path}/certs'") as running:
        running.files = {str(path): path for path in made}
        yield running


def read(haproxy, files):
    return served.read(files, served.ask_at(haproxy.socket), text)


def test_what_it_serves_is_what_the_files_have_also_in_a_folder_that_nobody_names(haproxy):
    assert read(haproxy, []) == {path: served.Served(certificates.expires(text(path)), True) for path in haproxy.files}


def test_a_file_that_was_replaced_is_not_loaded_and_the_old_one_counts_until_it_is(haproxy, tmp_path):
    web = next(iter(haproxy.files))
    before = certificates.expires(text(web))
    certificate(tmp_path, "web", 365)
    after = certificates.expires(text(web))
    assert read(haproxy, [web])[web] == served.Served(before, False)
    haproxy.reload()
    assert after != before
    waiting.until(lambda: read(haproxy, [web])[web] == served.Served(after, True))


def test_a_file_that_is_gone_is_not_what_is_served(haproxy):
    web, path = next(iter(haproxy.files.items()))
    before = certificates.expires(text(web))
    path.unlink()
    assert read(haproxy, [web])[web] == served.Served(before, False)


def test_a_certificate_that_it_has_never_loaded_is_not_served(haproxy, tmp_path):
    new = str(certificate(tmp_path, "new"))
    assert read(haproxy, [new])[new] == served.Served(None, False)


def test_while_it_does_not_answer_nothing_is_known(tmp_path):
    assert served.read(["/a.pem"], served.ask_at(str(tmp_path / "none.sock")), text) == {"/a.pem": served.Served()}

    def dies(command):
        if command != served.LIST:
            raise Refused("it is gone")
        return "# filename\n/a.pem\n"

    assert served.read(["/a.pem"], dies, text) == {"/a.pem": served.Served()}


@pytest.mark.parametrize("ask", [lambda _command: "Unknown command.\n", served.ask_at("")], ids=["old", "no socket"])
def test_where_it_cannot_say_a_certificate_expires_as_its_file_does(tmp_path, ask):
    path = str(certificate(tmp_path))
    assert served.read([path], ask, text) == {path: served.Served(certificates.expires(text(path)))}


def test_one_that_it_has_and_does_not_use_is_not_served():
    answers = {served.LIST: "# filename\n/a.pem\n"}
    unused = "Filename: /a.pem\nStatus: Unused\nnotAfter: Dec  1 06:09:07 2026 GMT\nSHA1 FingerPrint: 00\n"
    assert served.read([], lambda command: answers.get(command, unused), text) == {}
