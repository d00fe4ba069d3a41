# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the `bind` lines of services promise, asked of the installed HAProxy: it has the role's own file."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import warnings

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import questions
from support.certificates import Authority, certificate
from support.netns.links import sh
from support.proxy.side_by_side import own_network
from support.rendering import haproxy as render
from support.waiting import LIMIT_S, until

PORT = 443
LOCAL, OWN, PROXY, CLIENT = "127.0.0.1", "10.9.0.1", "10.9.0.2", "198.51.100.7"
# What needs the folders and users of the package.
ELSEWHERE = ("user", "group", "chroot", "log", "stats")
# Whom HAProxy takes for its client.
ANSWER = 'http-request return status 200 content-type text/plain lf-string "%[src]"'


@pytest.fixture(scope="module", autouse=True)
def network():
    with own_network():
        for address in (OWN, PROXY):
            sh("ip", "addr", "add", f"{address}/32", "dev", "lo")
        yield


@contextlib.contextmanager
def serving(folder, **service):
    """A service that HAProxy answers itself."""
    given = {"name": "web", "port": PORT, "mode": "http", "servers": ["192.0.2.31"], "check": {"type": "none"}}
    text = render([{**given, "frontend_lines": [ANSWER], **service}], haproxy_stats_enabled=False)
    kept = [line for line in text.splitlines() if line.split()[:1] and line.split()[0] not in ELSEWHERE]
    (folder / "haproxy.cfg").write_text("\n".join(kept) + "\n")
    process = subprocess.Popen([shutil.which("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")])
    try:
        until(_listens)
        yield
    finally:
        process.kill()
        process.wait()


def _listens():
    with contextlib.suppress(OSError), socket.create_connection((LOCAL, PORT), LIMIT_S):
        return True
    return False


def context():
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
    return found


def shown(name):
    """Return the certificate that a client gets for a name; None if it is refused."""
    with contextlib.suppress(ssl.SSLError, ConnectionResetError):
        plain = socket.create_connection((LOCAL, PORT), LIMIT_S)
        with plain, context().wrap_socket(plain, server_hostname=name) as secure:
            return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True))
    return None


def of(*files):
    return [file.read_text()[: file.read_text().index("-----BEGIN PRIVATE")] for file in files]


@pytest.mark.parametrize("is_strict", [False, True])
@pytest.mark.parametrize("kind", ["files", "folder"])
def test_each_name_gets_its_certificate_of_several_files_or_of_a_folder(tmp_path, kind, is_strict):
    folder = tmp_path / "several"
    folder.mkdir()
    pems = [certificate(folder, name) for name in ("a.example", "b.example")]
    (folder / ".old.pem").write_text("")
    named = list(map(str, pems)) if kind == "files" else f"{folder}/"
    with serving(tmp_path, tls={"certificate": named, "strict_sni": is_strict}):
        found = [shown(name) for name in ("b.example", "a.example", "c.example", None)]
    b, a = of(pems[1], pems[0])
    assert found == [b, a, *([None, None] if is_strict else [a, a])]


VERSIONS = ("TLSv1", "TLSv1_1", "TLSv1_2", "TLSv1_3")
CLIENTS = {
    "old": VERSIONS,
    "intermediate": VERSIONS[2:],
    "modern": VERSIONS[3:],
    "": VERSIONS[2:],
    "none": VERSIONS[2:],
}


def spoken(version, ciphers="ALL:@SECLEVEL=0"):
    """Return the cipher with which a client that has one version of TLS alone is served; None if it is refused."""
    client = context()
    client.set_ciphers(ciphers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the old versions
        client.minimum_version = client.maximum_version = ssl.TLSVersion[version]
    with contextlib.suppress(ssl.SSLError, ConnectionResetError):
        plain = socket.create_connection((LOCAL, PORT), LIMIT_S)
        with plain, client.wrap_socket(plain) as secure:
            return secure.cipher()[0]
    return None


@pytest.mark.parametrize("profile", CLIENTS)
def test_a_profile_serves_its_versions_of_tls_and_no_others(tmp_path, profile):
    tls = {"certificate": str(certificate(tmp_path)), "profile": profile}
    with serving(tmp_path, tls=tls):
        assert tuple(version for version in VERSIONS if spoken(version)) == CLIENTS[profile]
        weak = "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"
        assert bool(spoken("TLSv1_2", weak)) == (profile in ("old", "none"))


def test_versions_and_ciphers_of_ones_own_overrule_a_profile(tmp_path):
    own = {"min_version": "TLSv1.3", "ciphersuites": "TLS_AES_256_GCM_SHA384"}
    with serving(tmp_path, tls={"certificate": str(certificate(tmp_path)), "profile": "intermediate", **own}):
        assert spoken("TLSv1_2") is None
        assert spoken("TLSv1_3") == "TLS_AES_256_GCM_SHA384"


def answered(pem=None):
    """Return the answer to a client that shows a certificate; None if it is refused."""
    client = context()
    if pem:
        client.load_cert_chain(str(pem))
    with contextlib.suppress(ssl.SSLError, ConnectionResetError, BrokenPipeError):
        plain = socket.create_connection((LOCAL, PORT), LIMIT_S)
        with plain, client.wrap_socket(plain) as secure:
            secure.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return secure.recv(4096).partition(b"\r\n\r\n")[2].decode() or None
    return None


WHO = 'http-request return status 200 content-type text/plain lf-string "to %[ssl_c_s_dn(cn)]"'


@pytest.mark.parametrize("verify", ["required", "optional"])
def test_clients_show_a_certificate_of_the_authority_that_is_not_revoked(tmp_path, verify):
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    good, gone, foreign = authority.issue("good"), authority.issue("gone"), other.issue("good")
    tls = {"certificate": str(certificate(tmp_path)), "ca": str(authority.pem), "verify": verify}
    with serving(tmp_path, tls=tls, frontend_lines=[WHO]):
        without = {"required": None, "optional": "to "}[verify]
        assert list(map(answered, (None, good, gone, foreign))) == [without, "to good", "to gone", None]
    crl = authority.revoked(gone)
    with serving(tmp_path, tls={**tls, "crl": str(crl)}, frontend_lines=[WHO]):
        assert list(map(answered, (None, good, gone, foreign))) == [without, "to good", None, None]
    crl = authority.revoked(has_expired=True)
    with serving(tmp_path, tls={**tls, "crl": str(crl)}, frontend_lines=[WHO]):
        assert list(map(answered, (None, good))) == [without, None]


def heard(source, header="", secure=False):
    """Return whom HAProxy takes for the client of a connection from an address; None if it is cut off."""
    with contextlib.suppress(ssl.SSLError, ConnectionResetError, BrokenPipeError):
        plain = socket.create_connection((OWN, PORT), LIMIT_S, (source, 0))
        with plain:
            plain.sendall(header.encode())
            with context().wrap_socket(plain) if secure else contextlib.nullcontext(plain) as client:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return client.recv(4096).partition(b"\r\n\r\n")[2].decode() or None
    return None


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_a_named_proxy_says_who_its_client_is_and_nobody_else_may(tmp_path, secure):
    header = f"PROXY TCP4 {CLIENT} {OWN} 4711 {PORT}\r\n"
    tls = {"certificate": str(certificate(tmp_path))} if secure else None
    with serving(tmp_path, accept_proxy=[PROXY], tls=tls):
        assert [heard(PROXY, header, secure), heard(OWN, secure=secure)] == [CLIENT, OWN]
        assert heard(PROXY, secure=secure) is None
        assert heard(OWN, header, secure) not in (CLIENT, OWN)
        assert heard(PROXY, questions.HEADER, secure) == PROXY
    with serving(tmp_path, accept_proxy=[PROXY], allow=[CLIENT], tls=tls):
        assert [heard(PROXY, header, secure), heard(OWN, secure=secure)] == [CLIENT, None]
        assert heard(PROXY, header.replace(CLIENT, "198.51.100.8"), secure) is None


def test_the_answer_of_ocsp_beside_a_certificate_is_stapled(tmp_path):
    authority = Authority(tmp_path)
    pem = authority.issue("web.example")
    asked = ["openssl", "s_client", "-connect", f"{LOCAL}:{PORT}", "-status"]
    for stapled in (False, True):
        if stapled:
            authority.staple(pem)
        with serving(tmp_path, tls={"certificate": str(pem)}):
            done = subprocess.run(asked, input="", capture_output=True, text=True, check=False)
        assert ("OCSP Response Status: successful" in done.stdout) == stapled
