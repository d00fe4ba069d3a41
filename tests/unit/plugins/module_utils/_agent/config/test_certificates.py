# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a certificate expires, by its DER alone."""

from __future__ import annotations

import subprocess
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import certificates
from support.certificates import Authority

DAY = 86400


@pytest.mark.parametrize("days", [10, 20_000], ids=["UTCTime", "GeneralizedTime from 2050 on"])
def test_it_expires_when_openssl_says(tmp_path, days):
    file = tmp_path / "web.pem"
    subject = ["-subj", "/CN=web", "-addext", "subjectAltName=DNS:web"]
    key = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(tmp_path / "key.pem")]
    command = ["openssl", "req", "-x509", *key, "-out", str(file), "-days", str(days), *subject]
    subprocess.run(command, check=True, capture_output=True)
    found = certificates.expires("a line of a person\n" + file.read_text())
    shown = subprocess.run(
        ["openssl", "x509", "-in", str(file), "-noout", "-enddate"], check=True, capture_output=True, text=True
    ).stdout
    expected = time.strptime(shown.strip().partition("=")[2], "%b %d %H:%M:%S %Y GMT")
    assert time.gmtime(found)[:6] == expected[:6]
    assert found == pytest.approx(time.time() + days * DAY, abs=300)


@pytest.mark.parametrize(
    "text",
    ["", "no certificate", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"],
    ids=["empty", "another file", "a part of one"],
)
def test_what_is_no_certificate_does_not_expire(text):
    assert certificates.expires(text) is None


@pytest.mark.parametrize("days", [10, 20_000], ids=["UTCTime", "GeneralizedTime from 2050 on"])
def test_a_list_of_revoked_ones_expires_when_openssl_says(tmp_path, days):
    file = Authority(tmp_path).revoked(days=days)
    found = certificates.next_update(file.read_text())
    assert found == pytest.approx(time.time() + days * DAY, abs=300)
    earlier = Authority(tmp_path, "other").revoked(days=5).read_text()
    assert certificates.next_update(file.read_text() + earlier) == pytest.approx(time.time() + 5 * DAY, abs=300)
    assert certificates.expires(file.read_text()) is None


@pytest.mark.parametrize(
    "text", ["", "-----BEGIN X509 CRL-----\nMIIB\n-----END X509 CRL-----"], ids=["empty", "a part of one"]
)
def test_what_is_no_list_does_not_expire(text):
    assert certificates.next_update(text) is None
