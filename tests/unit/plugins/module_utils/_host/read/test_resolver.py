# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a host has its names from, and what a name server answers it."""

from __future__ import annotations

import json
import os
import socket
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import ownership, resolver
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support.programs import Programs

KNOWN = {("api.lab.example.com.", "A"): ["192.0.2.10", "192.0.2.9"], ("api.lab.example.com.", "AAAA"): ["2001:db8::10"]}
UNITS = "Id=systemd-resolved.service\nActiveState=active\n\nId=NetworkManager.service\nActiveState=inactive\n"
IP = json.dumps(
    [
        {"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "prefixlen": 8}]},
        {
            "ifname": "eth0",
            "addr_info": [
                {"local": "fe80::1", "prefixlen": 64},
                {"local": "2001:db8::1", "prefixlen": 64},
                {"local": "192.0.2.1", "prefixlen": 24},
            ],
        },
    ]
)


@pytest.fixture
def server(monkeypatch):
    """A name server at a port of its own that has KNOWN, and an alias before it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        monkeypatch.setattr(resolver, "PORT", own.getsockname()[1])
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
    assert resolver.ask(server, name, kind) == answer


def test_a_server_that_is_silent_or_not_there_is_no_answer(server):
    assert resolver.ask(server, "silent", "A", timeout=0.05) == (None, [])
    assert resolver.ask("127.0.0.2", "api.lab.example.com", "A", timeout=0.05) == (None, [])


def test_each_wrong_answer_is_a_sentence(server):
    good = {"name": "api.lab.example.com", "addresses": ["192.0.2.9", "2001:db8::10", "192.0.2.10"]}
    assert resolver.wrong_answers(server, [good, {"name": "empty", "addresses": []}]) == []
    assert resolver.wrong_answers(server, [{**good, "addresses": ["192.0.2.9"]}]) == [
        "127.0.0.1 answers ['192.0.2.10', '192.0.2.9'] when it is asked for api.lab.example.com A: ['192.0.2.9'] is "
        "wanted.",
        "127.0.0.1 answers ['2001:db8::10'] when it is asked for api.lab.example.com AAAA: [] is wanted.",
    ]
    (first, _second) = resolver.wrong_answers(server, [{"name": "unknown", "addresses": []}])
    assert first == "127.0.0.1 answers code 3 when it is asked for unknown A: [] is wanted."


def read(path):
    known = Programs({"systemctl": UNITS, "ip": IP})
    return resolver.read(Reader(known.run, known.find), str(path))


def test_who_runs_and_where_the_host_has_its_names_from(tmp_path):
    path, real = tmp_path / "resolv.conf", tmp_path / "stub"
    real.write_text("nameserver 127.0.0.53\n")
    path.symlink_to(real)
    found = read(path)
    assert (found["resolved"], found["networkmanager"]) == (True, False)
    assert found["resolv_conf"] == {
        "text": "nameserver 127.0.0.53\n",
        "target": os.path.realpath(real),
        "kept": False,
        "kept_text": "",
        "kept_target": "",
        "mounted": False,
    }
    assert found["addresses"] == ["192.0.2.1", "2001:db8::1"]


def test_what_is_kept_is_read_too(tmp_path):
    path = tmp_path / "resolv.conf"
    (tmp_path / ownership.kept("resolv.conf")).write_text("nameserver 192.0.2.1\n")
    found = read(path)["resolv_conf"]
    assert (found["text"], found["kept"], found["kept_text"]) == ("", True, "nameserver 192.0.2.1\n")
