# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a host has its names from, and what is wrong with what a name server answers it."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts, ownership, resolver
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


class Host:
    """A reader whose getent finds some names, and whose units are active."""

    def __init__(self, found=(), active=(), state=""):
        self.found, self.active, self.state = dict(found), active, state

    def find(self, program):
        return f"/usr/bin/{program}"

    def run(self, command):
        return 0, "".join(f"{each} STREAM\n" for each in self.found.get(command[-1], [])), ""

    def units_in(self, _prop, units, _state):
        return [unit for unit in units if unit in self.active]

    def text(self, _path):
        return self.state

    def source_names(self):
        return ["one.example", "two.example", "three.example"]


def test_the_first_names_of_others_and_one_that_nobody_has_are_looked_up():
    *others, nobody = resolver.outside_names(Host())
    assert others == ["one.example", "two.example"] and nobody.endswith(".invalid")


API = {"name": "api.lab.example.com", "addresses": ["192.0.2.10", "2001:db8::10"]}
GOOD = {"one.example": ["192.0.2.7"], API["name"]: ["192.0.2.10"]}


@pytest.mark.parametrize(
    "before, now, sentences",
    [
        (["one.example"], GOOD, []),
        (["one.example"], {**GOOD, "one.example": ["192.0.2.8"]}, []),  # it has several, or has moved
        (
            ["one.example"],
            {**GOOD, "one.example": []},
            ["This host no longer resolves one.example, which it did before: "],
        ),
        ([], {**GOOD, "one.example": []}, []),
        (
            [],
            {**GOOD, "x.invalid": ["192.0.2.10"]},
            ["This host resolves x.invalid to ['192.0.2.10'], a name that nobody"],
        ),
        ([], {API["name"]: ["192.0.2.99"]}, [f"This host resolves {API['name']} to ['192.0.2.99']: "]),
        ([], {}, [f"This host resolves {API['name']} to []: "]),
    ],
)
def test_what_a_host_resolves_worse_than_before_is_a_sentence(before, now, sentences):
    given = {"one.example": ["192.0.2.7"] if before else [], "x.invalid": []}
    said = resolver.worse(Host(now), given, [API])
    assert len(said) == len(sentences) and all(map(str.startswith, said, sentences))


STATE = {"answers": True, "asked": True, "forwards": True, "problem": ""}
UNIT, KEEPER = "onprem-lb-resolver.service", "onprem-lb-resolver-keeper.service"


@pytest.mark.parametrize(
    "active, state, sentences",
    [
        ([UNIT, KEEPER], STATE, []),
        ([UNIT], {**STATE, "problem": "old."}, [f"{KEEPER} does not run."]),
        (
            [KEEPER],
            {**STATE, "answers": False},
            [f"{UNIT} does not run.", "the resolver does not answer, so the host "],
        ),
        ([UNIT, KEEPER], {**STATE, "forwards": False}, ["the resolver does not answer for names of others"]),
        ([UNIT, KEEPER], {**STATE, "problem": "it is managed."}, ["it is managed."]),
    ],
)
def test_why_a_host_may_not_find_names(monkeypatch, active, state, sentences):
    monkeypatch.setattr(facts, "is_ours", lambda _unit: True)
    said = resolver.problems(Host((), active, json.dumps(state)))
    assert len(said) == len(sentences) and all(map(str.startswith, said, sentences))
    monkeypatch.setattr(facts, "is_ours", lambda _unit: False)
    assert resolver.problems(Host((), [], json.dumps({**STATE, "problem": "x"}))) == []


def test_it_forwards_unless_others_answer_and_it_does_not(monkeypatch):
    monkeypatch.setattr(
        resolver, "forwards", lambda _server, upstreams: {"a": False, "b": None}.get(upstreams[0], True)
    )
    assert [len(resolver.not_forwarded("192.0.2.1", [each])) for each in "abc"] == [1, 0, 0]


@pytest.mark.parametrize("ours", [True, False])
def test_where_names_lead_is_read_of_a_resolver_of_ours_alone(monkeypatch, ours):
    texts = ["address=/apps.lab.example.com/192.0.2.20\n", "# Managed\n192.0.2.10 api.lab.example.com\n"]
    files = dict(zip(resolver.resolver_records.PATHS, texts))
    monkeypatch.setattr(facts, "is_ours", lambda _unit: ours)
    monkeypatch.setattr(Reader, "text", lambda _reader, path: files.get(path, ""))
    found = {"*.apps.lab.example.com": ["192.0.2.20"], "api.lab.example.com": ["192.0.2.10"]}
    assert resolver.named(Reader(None, None)) == (found if ours else {})
    files.clear()
    assert resolver.named(Reader(None, None)) == {}
