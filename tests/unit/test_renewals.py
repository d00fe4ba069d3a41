# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script of docs/operations.md with which certificates are renewed, beside a haproxy that serves."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files
from ansible_collections.onprem.lb.plugins.modules import config_files
from support import waiting
from support.certificates import certificate, certificate_text
from support.haproxies import Haproxy
from support.modules import run
from support.paths import DOCS
from support.programs import Installed
from support.rendering import haproxy_model

RENEWALS = 5
SYSTEMCTL = "#!/bin/sh -e\n[ \"$*\" = 'reload haproxy.service' ]\nhaproxy -c -q -f {config}\nkill -USR2 {pid}\n"


class Client:
    """It asks haproxy without a pause, on new connections, and notes which certificate it gets, and each failure."""

    def __init__(self, port):
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        self._port, self.seen, self.failures, self._ends = port, [], [], threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._ends.set()
        self._thread.join()

    def _run(self):
        while not self._ends.is_set():
            try:
                self.seen.append(self._ask())
            except OSError as fault:
                self.failures.append(fault)

    def _ask(self):
        plain = socket.create_connection(("127.0.0.1", self._port), waiting.LIMIT_S)
        with self._context.wrap_socket(plain) as secure:
            secure.sendall(b"GET / HTTP/1.0\r\n\r\n")
            if not secure.recv(100).startswith(b"HTTP/1.1 200"):
                raise OSError("no answer")
            return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True))


@pytest.fixture
def served(tmp_path):
    """A haproxy with a certificate, which the documented script may renew."""
    (block,) = re.findall(
        r"```sh\n(#!/bin/sh -e\n# haproxy-certificate.*?)```", (DOCS / "operations.md").read_text(), re.DOTALL
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    pem = certificate(tmp_path)
    with Haproxy(tmp_path, f"bind 127.0.0.1:{{port}} ssl crt {pem}") as running:
        texts = {"renew": block, "systemctl": SYSTEMCTL.format(config=running.config, pid=running.pid)}
        for name, text in texts.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        running.pem = pem
        yield running


def renew(served, chain, key):
    environment = {**os.environ, "PATH": f"{served.pem.parent}/bin:{os.environ['PATH']}"}
    command = [f"{served.pem.parent}/bin/renew", chain, key, served.pem]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def made(folder, name):
    """Make a certificate and its key, as certbot has them; return the paths of both."""
    whole = certificate(folder, name).read_text()
    chain, key = folder / f"{name}.chain", folder / f"{name}.key"
    begin = whole.index("-----BEGIN PRIVATE KEY")
    chain.write_text(whole[:begin])
    key.write_text(whole[begin:])
    return chain, key


def test_no_request_fails_while_certificates_are_renewed_and_each_is_served(served, tmp_path):
    before = served.pem.read_text()
    with Client(served.port) as client:
        waiting.until(lambda: client.seen, lambda: client.failures)
        for number in range(RENEWALS):
            chain, key = made(tmp_path, f"new{number}")
            done = renew(served, chain, key)
            assert (done.returncode, done.stderr) == (0, "")
            waiting.until(lambda chain=chain: client.seen[-1] == chain.read_text())
    assert client.failures == []
    order = list(dict.fromkeys(client.seen))
    assert before.startswith(order[0]) and len(order) == RENEWALS + 1
    assert sorted(path.name for path in tmp_path.glob(".new*")) == []
    assert served.pem.stat().st_mode & 0o777 == 0o600


def test_a_key_of_another_certificate_never_gets_there(served, tmp_path):
    before = served.pem.read_text()
    (chain, _key), (_chain, other) = made(tmp_path, "one"), made(tmp_path, "two")
    done = renew(served, chain, other)
    assert done.returncode != 0 and "inconsistencies between private key and certificate" in done.stderr
    assert served.pem.read_text() == before and served.accepts()
    assert sorted(path.name for path in tmp_path.glob(".new*")) == []


def test_no_request_fails_while_texts_of_the_inventory_are_renewed(tmp_path, monkeypatch):
    monkeypatch.setattr(files.paths, "CERTIFICATES", str(tmp_path / "certificates"))

    def given(text):
        """Return what a run gives the module, in a folder of this test."""
        service = {"name": "web", "port": 443, "servers": ["192.0.2.31"], "tls": {"content": text}}
        own = haproxy_model([service])["certificates"]
        moved = [{**each, "path": each["path"].replace("/etc/onprem-lb-", f"{tmp_path}/")} for each in own]
        return moved, moved[0]["path"]

    def wanted(text, before, served):
        moved, path = given(text)
        cfg = {"path": str(served.config), "content": before.replace(first, path), "mode": "0644", "check": "haproxy"}
        return {"files": [*moved, cfg], "unnamed_certificates": True}

    texts = [certificate_text(f"renewed{number}") for number in range(RENEWALS)]
    own, first = given(texts[0])
    run(config_files, {"files": own})
    with Haproxy(tmp_path, f"bind 127.0.0.1:{{port}} ssl crt {first}") as served, Client(served.port) as client:
        before = served.config.read_text()
        for text in texts:
            run(config_files, wanted(text, before, served), Installed())
            served.reload()
            waiting.until(lambda text=text: client.seen and text.startswith(client.seen[-1]), lambda: client.failures)
    assert client.failures == []
    assert len(dict.fromkeys(client.seen)) == RENEWALS
    assert os.listdir(tmp_path / "certificates") == [os.path.basename(given(texts[-1])[1])]
