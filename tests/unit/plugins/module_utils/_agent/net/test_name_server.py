# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a name server answers, as it is read."""

from __future__ import annotations

import socket
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import name_server

KNOWN = {("api.lab.example.com.", "A"): ["192.0.2.10", "192.0.2.9"], ("api.lab.example.com.", "AAAA"): ["2001:db8::10"]}


@pytest.fixture
def server(monkeypatch):
    """A name server at a port of its own that has KNOWN, and an alias before it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        monkeypatch.setattr(name_server, "PORT", own.getsockname()[1])
        thread = threading.Thread(target=serve, args=(own,))
        thread.start()
        yield "127.0.0.1"
        own.sendto(b"", own.getsockname())
        thread.join()


def serve(own):
    while True:
        query, peer = own.recvfrom(512)
        if not query:
            return
        asked = dns.message.from_wire(query)
        name, kind = asked.question[0].name, dns.rdatatype.to_text(asked.question[0].rdtype)
        if str(name) == "silent.":
            continue
        reply = dns.message.make_response(asked)
        reply.flags |= dns.flags.RA
        if str(name) == "alias.":
            reply.answer.append(dns.rrset.from_text(name, 30, "IN", "CNAME", "api.lab.example.com."))
            name = dns.name.from_text("api.lab.example.com.")
        found = KNOWN.get((str(name), kind), [])
        if found:
            reply.answer.append(dns.rrset.from_text(name, 30, "IN", kind, *found))
        elif str(name) == "unknown.":
            reply.set_rcode(dns.rcode.NXDOMAIN)
        own.sendto(reply.to_wire(), peer)


@pytest.mark.parametrize(
    "name, kind, answer",
    [
        ("api.lab.example.com", "A", (0, ["192.0.2.10", "192.0.2.9"])),
        ("api.lab.example.com", "AAAA", (0, ["2001:db8::10"])),
        ("alias", "A", (0, ["192.0.2.10", "192.0.2.9"])),
        ("empty", "AAAA", (0, [])),
        ("unknown", "A", (3, [])),
    ],
)
def test_an_answer_is_read(server, name, kind, answer):
    assert name_server.ask(server, name, kind) == answer


def test_a_server_that_is_silent_or_not_there_is_no_answer(server):
    assert name_server.ask(server, "silent", "A", timeout=0.05) == (None, [])
    assert name_server.ask("127.0.0.2", "api.lab.example.com", "A", timeout=0.05) == (None, [])
