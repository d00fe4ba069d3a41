# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a host has its names from, and what is wrong with what a name server answers it."""

from __future__ import annotations

import json
import os

from ansible_collections.onprem.lb.plugins.module_utils._host.read import ownership, resolver
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support.programs import Programs

ANSWERS = {
    ("api.lab.example.com", "A"): resolver.Answer(0, ["192.0.2.10", "192.0.2.9"]),
    ("api.lab.example.com", "AAAA"): resolver.Answer(0, ["2001:db8::10"]),
    ("empty", "A"): resolver.Answer(0, []),
    ("empty", "AAAA"): resolver.Answer(0, []),
}
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


def test_each_wrong_answer_is_a_sentence(monkeypatch):
    monkeypatch.setattr(resolver, "ask", lambda _server, name, kind: ANSWERS.get((name, kind), resolver.Answer(3, [])))
    server = "127.0.0.1"
    good = {"name": "api.lab.example.com", "addresses": ["192.0.2.9", "2001:db8::10", "192.0.2.10"]}
    assert resolver.wrong_answers(server, [good, {"name": "empty", "addresses": []}]) == []
    assert resolver.wrong_answers(server, [{**good, "addresses": ["192.0.2.9"]}]) == [
        "127.0.0.1 answers ['192.0.2.10', '192.0.2.9'] when it is asked for api.lab.example.com A: ['192.0.2.9'] is "
        "expected.",
        "127.0.0.1 answers ['2001:db8::10'] when it is asked for api.lab.example.com AAAA: [] is expected.",
    ]
    (first, _second) = resolver.wrong_answers(server, [{"name": "unknown", "addresses": []}])
    assert first == "127.0.0.1 answers code 3 when it is asked for unknown A: [] is expected."


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
