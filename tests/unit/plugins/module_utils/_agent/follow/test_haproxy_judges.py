# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy itself judges whether follow reads its file as it does: generated files, with what its grammar allows."""

from __future__ import annotations

import contextlib
import random
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import haproxy_file
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.haproxy import File, Process
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.runtime_api import Runtime
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Haproxy, Server, Target
from support.proxy.proxies import LIMIT
from support.waiting import until

BACKENDS = 40
TIMES = "    mode tcp\n    timeout connect 5s\n    timeout client 1m\n    timeout server 1m\n"
OPTIONS = ("weight 5", "weight 7", "check inter 1m", "no-check", "maxconn 31", "maxconn 9 weight 3", "tcp-ut 9s")
ENABLED = 0x04  # of the state of a check


class Generator:
    """A file with one backend after the other, each with what a file may have. The same for the same seed."""

    def __init__(self, seed) -> None:
        self._chance = random.Random(seed)
        self._defaults = []  # names of those that may be inherited from

    def text(self, socket):
        parts = [f"global\n    stats socket {socket} mode 600 level admin\n"]
        for number in range(BACKENDS):
            if not parts[1:] or self._chance.random() < 0.4:
                parts.append(self._section_of_defaults(number))
            parts.append(self._backend(number))
        return "".join(parts)

    def _section_of_defaults(self, number):
        name = self._chance.choice(["", f"d{number}"]) if self._defaults else f"d{number}"
        parent = f" from {self._chance.choice(self._defaults)}" if name and self._defaults and self._maybe() else ""
        head = f"defaults{f' {self._written(name)}' if name else ''}{parent}{self._comment()}\n"
        if name:
            self._defaults.append(name)
        return head + TIMES + self._default_servers()

    def _backend(self, number):
        parent = f" from {self._chance.choice(self._defaults)}" if self._maybe() else ""
        head = f"{self._chance.choice(['backend', 'listen'])} {self._written(f'b{number}')}{parent}{self._comment()}\n"
        options = " ".join(self._written(word) for word in self._chance.choice(["", *OPTIONS]).split())
        server = f"{self._written('first')} {self._written(f'10.0.{number}.1:6443')} {options}"
        lines = [self._default_servers(), f"    server {server}{self._comment()}\n", self._default_servers()]
        return head + "".join(lines)

    def _default_servers(self):
        lines = [self._chance.choice(OPTIONS[:-1]) for _line in range(self._chance.randrange(3))]
        return "".join(f"\t default-server {self._words(line)}{self._comment()}\n" for line in lines)

    def _words(self, line):
        return "  ".join(self._written(word) for word in line.split())

    def _maybe(self):
        return self._chance.random() < 0.5

    def _comment(self):
        return self._chance.choice(["", "", " # weight 99", "# 'it", ' # "\\'])

    def _written(self, word):
        """Write a word in one of the ways that mean it."""
        at = self._chance.randrange(len(word) + 1)
        return self._chance.choice(
            [
                word,
                word,
                f'"{word}"',
                f"'{word}'",
                f"{word[:at]}'{word[at:]}'",
                f'{word[:at]}""{word[at:]}',
                "".join(f"\\x{ord(sign):02x}" if self._maybe() else sign for sign in word),
            ]
        )


@contextlib.contextmanager
def running(config, socket):
    with subprocess.Popen(["haproxy", "-db", "-f", str(config)], stderr=subprocess.PIPE) as process:
        try:
            runtime = Runtime(str(socket))

            def answers():
                assert process.poll() is None, process.stderr.read()
                with contextlib.suppress(Refused):
                    return runtime.ask("show info")
                return None

            until(answers)
            yield runtime
        finally:
            process.kill()
            process.wait(LIMIT)


def servers(runtime):
    """Return what HAProxy says of each server: address, port, weight, whether it is checked, its limit."""
    head, *rows = runtime.ask("show stat -1 4 -1").lstrip("# ").splitlines()
    keys = head.split(",")
    stats = [dict(zip(keys, row.split(","))) for row in rows]
    limits = {(row["pxname"], row["svname"]): row["slim"] for row in stats if row.get("svname")}
    found = {}
    for line in runtime.ask("show servers state").splitlines()[2:]:
        words = line.split()
        key = (words[1], words[3])
        found[key] = (words[4], words[18], words[8], bool(int(words[13]) & ENABLED), limits[key])
    return found


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_the_runtime_api_adds_is_what_a_restart_with_the_new_file_makes_of_it(tmp_path, seed):
    config, socket = tmp_path / "haproxy.cfg", tmp_path / "s"
    config.write_text(Generator(seed).text(socket))
    targets = tuple(Target(f"b{number}") for number in range(BACKENDS))
    about = Haproxy(targets, str(config), str(socket), program="/usr/sbin/haproxy")
    file = File(about)
    with running(config, socket) as runtime:
        for (backend, name), (address, port, *_rest) in servers(runtime).items():
            read = haproxy_file.read(config.read_text(), Target(backend))
            assert (read.servers, str(read.port)) == ([Server(name, address)], port)
        process = Process(about, 0, lambda: 0, file)
        wanted = [Server("new", "10.9.9.9"), Server("other", "10.9.9.8")]
        file.apply(wanted)
        process.apply(wanted)
        added = {key: value for key, value in servers(runtime).items() if key[1] in ("new", "other")}
    with running(config, socket) as runtime:
        assert added == servers(runtime)


@pytest.mark.parametrize(
    "lines, sentence",
    [
        ("server-template node 3 node.example:6443", "line 11 is a server-template, whose servers come from DNS"),
        (".if defined(X)\n  default-server weight 9\n.endif", "line 11 is a condition, which only HAProxy can judge"),
        ('default-server weight "$WEIGHT"', "'$WEIGHT' has a variable, which only HAProxy knows: write the value."),
        ('server b "${B}:6443"', "line 11 is 'server b \"${B}:6443\"': its address and port are required"),
        ('server "b', "line 11: a quote has no end."),
    ],
)
def test_what_only_haproxy_can_know_is_refused(lines, sentence):
    text = f"global\ndefaults a\n{TIMES}defaults\nbackend b from a\n  server a 10.0.0.1:6443\n\n"
    with pytest.raises(Refused) as refused:
        haproxy_file.read(f"{text}  {lines}\n", Target("b")).arguments()
    assert str(refused.value).startswith(sentence)


def test_a_section_in_a_condition_is_refused_and_a_condition_elsewhere_is_not():
    good = ".if defined(X)\n.endif\nglobal\n.if defined(Y)\n  nbthread 2\n.endif\nbackend b\n  server a 10.0.0.1:6443\n"
    assert haproxy_file.read(good, Target("b")).port == 6443
    with pytest.raises(Refused, match="line 2 is a section inside a .if"):
        haproxy_file.read(".if defined(X)\nbackend b\n  server a 10.0.0.1:6443\n.endif\n", Target("b"))


def test_words_with_spaces_quotes_and_semicolons_reach_the_runtime_api_as_they_are(tmp_path):
    config, socket = tmp_path / "haproxy.cfg", tmp_path / "s"
    hard = r"""sni 'str("a; b\\ c")' check weight 3"""
    head = f"global\n  stats socket {socket} mode 600 level admin\ndefaults\n{TIMES}"
    config.write_text(f"{head}backend b\n  server a 10.0.0.1:1 {hard} # ;\n")
    about = Haproxy((Target("b"),), str(config), str(socket), program="/usr/sbin/haproxy")
    with running(config, socket) as runtime:
        file = File(about)
        wanted = [Server("a", "10.0.0.1"), Server("b", "10.0.0.2")]
        file.apply(wanted)
        Process(about, 0, lambda: 0, file).apply(wanted)
        found = servers(runtime)
        assert found["b", "b"][2:] == found["b", "a"][2:]
    assert f"  server b 10.0.0.2:1 {hard}\n" in config.read_text()
