# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/acme.md: a CA of the test validates through the VIP, whichever member holds it, and what it issues is served."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import secrets
import shutil
import ssl
import subprocess

import pytest
import yaml
from support.certificates import Authority
from support.documents import blocks
from support.netns.links import VIP, temporary_link
from support.netns.namespaces import inside
from support.netns.two_servers import ELSEWHERE
from support.paths import DOCS
from support.rendering import haproxy as render
from support.rendering import haproxy_model
from support.waiting import LIMIT_S, until

# The key of RFC 7638, section 3.1, and its thumbprint.
KEY = {
    "kty": "RSA",
    "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3"
    "oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6q"
    "MQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzK"
    "nqDKgw",
    "e": "AQAB",
}
THUMBPRINT = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
NAME = "www.example.com"


class Ca:
    """As much of a CA as RFC 8555 has of HTTP-01: it knows its account's key, and asks where a client would."""

    def __init__(self, link, folder):
        self._link, self._authority = link, Authority(folder, "ca")
        self.pem = self._authority.pem

    def get(self, path):
        with inside(self._link.client.namespace):
            client = http.client.HTTPConnection(VIP, 80, timeout=LIMIT_S)
            client.request("GET", path, headers={"Host": NAME})
            answer = client.getresponse()
            return answer.status, answer.read().decode().rstrip(), answer.headers

    def validates(self):
        """Whether whoever holds the VIP answers a challenge; the token has 128 bits and more, in base64url."""
        token = secrets.token_urlsafe(32)
        members = json.dumps({key: KEY[key] for key in sorted(KEY)}, separators=(",", ":"))
        digest = hashlib.sha256(members.encode()).digest()
        expected = f"{token}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
        status, text, _headers = self.get(f"/.well-known/acme-challenge/{token}")
        return (status, text) == (200, expected)

    def issue(self):
        assert self.validates()
        return self._authority.issue(NAME).read_text()


class Member:
    """A haproxy with the services of the page, and the files of the role in a folder of the test's."""

    def __init__(self, node, folder):
        self.node, self._folder, self._process = node, folder / node.name, None
        self._folder.mkdir()

    def serve(self, services):
        self.stop()
        text = render(services, haproxy_stats_enabled=False)
        for file in haproxy_model(services)["certificates"]:
            own = self._folder / file["path"].rsplit("/", 1)[1]
            own.write_text(file["content"])
            text = text.replace(file["path"], str(own))
        lines = [line for line in text.splitlines() if line.split()[:1] and line.split()[0] not in ELSEWHERE]
        (self._folder / "haproxy.cfg").write_text("\n".join([*lines, ""]))
        command = [shutil.which("haproxy"), "-db", "-f", str(self._folder / "haproxy.cfg")]
        self._process = subprocess.Popen(["ip", "netns", "exec", self.node.namespace, *command])
        ports = [f":{service['port']}" for service in services]
        until(lambda: all(port in self.node.output("ss", "-Hltn") for port in ports))

    def stop(self):
        if self._process:
            self._process.terminate()
            self._process.wait(LIMIT_S)


def of_page(pem):
    """Return the services of the page, with the thumbprint and the certificate of the test."""
    (block, _pem) = blocks(DOCS / "acme.md", "yaml")
    text = block.replace("{{ acme_thumbprint }}", THUMBPRINT)
    services = yaml.safe_load(text)["pair_services"]
    services[1]["tls"]["content"] = pem
    return services


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acme")
    with temporary_link(2) as link:
        members = [Member(node, folder) for node in link.members]
        try:
            yield link, members, Ca(link, folder)
        finally:
            for member in members:
                member.stop()


def hold(link, holder):
    """Have one member hold the VIP, as its router would."""
    for node in link.members:
        if not node.has(*node.addresses):
            node.release(VIP)
    holder.take_over(VIP)


def presented(link, ca):
    """Return whose certificate a client gets that trusts the CA."""
    context = ssl.create_default_context(cafile=str(ca.pem))
    context.check_hostname = False  # it is issued by a stand-in, without a subjectAltName
    with inside(link.client.namespace):
        client = http.client.HTTPSConnection(VIP, 443, timeout=LIMIT_S, context=context)
        client.connect()
        subject = client.sock.getpeercert()["subject"]
        client.close()
    return subject[0][0][1]


def test_each_member_answers_the_challenges_of_the_ca_and_serves_what_it_issues(pair):
    link, members, ca = pair
    (first, _web) = of_page("")
    for member in members:
        member.serve([first])
    for member in members:  # the first issue, and a renewal while the other one holds the VIP
        hold(link, member.node)
        issued = ca.issue()
        for each in members:
            each.serve(of_page(issued))
        assert ca.validates()
        assert presented(link, ca) == NAME


def test_everything_else_leads_to_the_site_and_nothing_of_others_is_repeated(pair):
    link, members, ca = pair
    members[0].serve([of_page("")[0]])
    hold(link, members[0].node)
    for path in (
        "/",
        "/.well-known/acme-challenge/",
        "/.well-known/acme-challenge/a/b",
        "/.well-known/acme-challenge/<a>",
    ):
        status, _text, headers = ca.get(path)
        assert (status, headers["location"]) == (301, f"https://{NAME}{path}")
    status, text, headers = ca.get("/.well-known/acme-challenge/a?b=%[src]")
    assert (status, text, headers["content-type"]) == (200, f"a.{THUMBPRINT}", "text/plain")
