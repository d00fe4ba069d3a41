# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names in certificates that openssl has made, and those that servers serve."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import subprocess
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import served_certificates
from support.waiting import LIMIT_S

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
KUBEADM = "DNS:kubernetes,DNS:kubernetes.default.svc.cluster.local,DNS:cp1,IP:10.96.0.1,IP:192.0.2.21,IP:2001:db8::21"
MANY = [f"host-{number}.example.com" for number in range(300)]  # a length of two bytes


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(served_certificates, "TIMEOUT", LIMIT_S)


def made(folder, *options, key=EC):
    """Return the files of a certificate and its key, as openssl makes them."""
    files = [folder / "cert.pem", folder / "key.pem"]
    words = ("openssl", "req", "-x509", *key, "-nodes", "-subj", "/CN=api", "-keyout", files[1], "-out", files[0])
    subprocess.run([*words, *options], check=True, capture_output=True)
    return files


def der(folder, *options, **more):
    return ssl.PEM_cert_to_DER_cert(made(folder, *options, **more)[0].read_text())


def with_names(names):
    return "-addext", f"subjectAltName={names}"


@pytest.mark.parametrize(
    "names, key, found",
    [
        (
            KUBEADM,
            EC,
            [
                *("kubernetes", "kubernetes.default.svc.cluster.local", "cp1"),
                *("10.96.0.1", "192.0.2.21", "2001:db8::21"),
            ],
        ),
        ("DNS:*.apps.example.com,email:a@example.com,URI:https://b.example.com", EC, ["*.apps.example.com"]),
        (",".join(f"DNS:{name}" for name in MANY), ("-newkey", "rsa:2048"), MANY),
        ("critical,DNS:only.example.com", EC, ["only.example.com"]),
    ],
    ids=["kubeadm", "others", "many", "critical"],
)
def test_the_names_of_a_certificate_are_read(tmp_path, names, key, found):
    assert served_certificates.subject_alt_names(der(tmp_path, *with_names(names), key=key)) == found


def test_a_certificate_without_names_has_none(tmp_path):
    assert served_certificates.subject_alt_names(der(tmp_path)) == []


def test_a_certificate_of_version_1_has_no_extensions(tmp_path):
    cert, key = made(tmp_path)
    request, old = tmp_path / "request.pem", tmp_path / "old.pem"
    words = ("openssl", "req", "-new", "-key", key, "-subj", "/CN=api", "-out", request)
    subprocess.run(words, check=True, capture_output=True)
    words = ("openssl", "x509", "-req", "-in", request, "-signkey", key, "-out", old)
    subprocess.run(words, check=True, capture_output=True)
    assert served_certificates.subject_alt_names(ssl.PEM_cert_to_DER_cert(old.read_text())) == []


def test_what_is_cut_or_no_certificate_raises_an_error_that_is_expected_and_never_another(tmp_path):
    whole = der(tmp_path, *with_names(KUBEADM))
    for end in range(1, len(whole)):
        with pytest.raises(ValueError):
            served_certificates.subject_alt_names(whole[:end])
    for at, bit in itertools.product(range(len(whole)), (0x01, 0x80)):
        damaged = whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
        with contextlib.suppress(ValueError):
            assert isinstance(served_certificates.subject_alt_names(damaged), list)


@pytest.mark.parametrize(
    "own, name, fits",
    [
        ("api.example.com", "API.example.com", True),
        ("*.example.com", "api.example.com", True),
        ("*.example.com", "a.api.example.com", False),
        ("*.example.com", "example.com", False),
        ("2001:db8::10", "2001:DB8:0::10", True),
        ("192.0.2.1", "192.0.2.10", False),
        ("*", "192.0.2.10", False),
    ],
)
def test_a_name_fits_as_a_client_compares_it(own, name, fits):
    assert served_certificates.is_for(own, name) is fits


@contextlib.contextmanager
def server(files, by_name=None):
    """An API server on a port of this host; with another certificate for one name, if that is wanted."""
    contexts = {None: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)}
    contexts[None].load_cert_chain(*files)
    for name, others in (by_name or {}).items():
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[name].load_cert_chain(*others)

    def choose(connection, name, _context):
        connection.context = contexts.get(name, contexts[None])

    contexts[None].sni_callback = choose
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _peer = listening.accept()
                    with contextlib.suppress(OSError), contexts[None].wrap_socket(connection, server_side=True) as tls:
                        tls.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield {"address": "127.0.0.1", "port": listening.getsockname()[1]}
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_name_that_the_served_certificate_lacks_is_found(tmp_path):
    files = made(tmp_path, *with_names("DNS:api.example.com,IP:192.0.2.10"))
    with server(files) as there:
        found = served_certificates.uncovered(
            [there], ["api.example.com", "192.0.2.10", "192.0.2.11", "api2.example.com"]
        )
    assert found == [{"server": "127.0.0.1", "name": name} for name in ("192.0.2.11", "api2.example.com")]


def test_each_name_is_asked_for_by_itself(tmp_path):
    """As OpenShift's API server has a certificate for api, and another for api-int."""
    folders = [tmp_path / name for name in ("api", "api-int")]
    for folder in folders:
        folder.mkdir()
    one, other = (made(folder, *with_names(f"DNS:{folder.name}.example.com")) for folder in folders)
    with server(one, {"api-int.example.com": other}) as there:
        assert served_certificates.uncovered([there], ["api.example.com", "api-int.example.com"]) == []


def test_of_a_server_that_is_silent_nothing_is_said(monkeypatch):
    monkeypatch.setattr(served_certificates, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        mute = [{"address": "127.0.0.1", "port": port}]
        assert served_certificates.uncovered(mute, ["api.example.com"]) == []
    assert served_certificates.uncovered(mute, ["api.example.com"]) == []
    assert served_certificates.uncovered([{"address": 5}, "", None, {"port": "x"}], ["api.example.com"]) == []
    assert served_certificates.uncovered("192.0.2.21", ["api.example.com"]) == []
