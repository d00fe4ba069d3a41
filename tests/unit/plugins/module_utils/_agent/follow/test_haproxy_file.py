# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server lines of HAProxy's configuration."""

from __future__ import annotations

from collections import Counter

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import haproxy_file
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Server, Target
from support.paths import GOLDEN

A, B, C = (Server(f"master-{at}", f"10.0.0.{host}") for at, host in enumerate((34, 99, 90)))
MASTERS = Target("masters")


@pytest.fixture(scope="module")
def text():
    """A file as the role haproxy writes it."""
    return (GOLDEN / "ipi-default.haproxy.cfg").read_text()


def rendered(text, *wanted, target=MASTERS):
    return haproxy_file.render(text, haproxy_file.read(text, target), wanted)


def difference(before, after):
    """Return the lines that are gone, and those that are new."""
    old, new = (Counter(each.splitlines()) for each in (before, after))
    return [*(old - new).elements()], [*(new - old).elements()]


def test_the_fallback_of_a_backend_has_its_nodes_if_the_file_has_one(text):
    target = MASTERS._replace(fallback="masters-fallback")
    with_it = [target, target._replace(name="masters-fallback", fallback="")]
    assert list(haproxy_file.each(text, [target])) == with_it
    assert list(haproxy_file.each(text.replace("backend masters-fallback", "backend other"), [target])) == [target]
    assert list(haproxy_file.each(text, [MASTERS])) == [MASTERS]


def test_a_file_with_the_wanted_servers_stays_as_it_is(text):
    assert rendered(text, A, B, C) is text


def test_a_server_that_joins_is_written_like_the_others_and_behind_them(text):
    after = rendered(text, A, B, C, Server("master-3", "10.0.0.7"))
    line = "    server master-3 10.0.0.7:6443 weight 256 tcp-ut 10000ms"
    assert difference(text, after) == ([], [line])
    lines = after.splitlines()
    assert lines[lines.index(line) - 1] == "    server master-1 10.0.0.99:6443 weight 256 tcp-ut 10000ms"


def test_a_server_that_leaves_is_removed_and_nothing_else(text):
    assert difference(text, rendered(text, A, B)) == (
        ["    server master-2 10.0.0.90:6443 weight 256 tcp-ut 10000ms"],
        [],
    )


def test_a_server_at_another_address_keeps_its_place_and_options(text):
    after = rendered(text, A, B, C._replace(address="fd00::7"))
    assert difference(text, after)[1] == ["    server master-2 [fd00::7]:6443 weight 256 tcp-ut 10000ms"]
    number = {line.split()[1]: at for at, line in enumerate(after.splitlines()) if line.startswith("    server ")}
    assert sorted(number, key=number.get) == ["master-0", "master-2", "master-1"]


def test_what_joins_and_leaves_comes_back_to_the_same_text(text):
    joined = rendered(text, A, B, C, Server("master-3", "10.0.0.7"))
    assert rendered(joined, A, B, C) == text


def test_a_runtime_server_gets_the_options_of_default_server_as_well(text):
    found = haproxy_file.read(text, MASTERS)
    assert " ".join(found.arguments()) == (
        "check inter 200ms fall 6 rise 3 check-ssl verify none slowstart 60000ms weight 256"
    )
    assert found.port == 6443


@pytest.mark.parametrize("options, kept", [("tcp-ut 10s", ""), ("check tcp-ut 9 weight 3", "check weight 3")])
def test_a_runtime_server_goes_without_what_haproxy_refuses_there_until_the_next_reload(options, kept):
    text = f"backend masters\n  server a 10.0.0.1:6443 {options}\n"
    assert haproxy_file.read(text, MASTERS).arguments() == kept.split()


def test_a_runtime_server_gets_the_options_of_the_defaults_section_as_well():
    text = "defaults\n  default-server inter 3s\nbackend other\n  default-server weight 9\n"
    text += "backend masters\n  default-server fall 2\n  server a 10.0.0.1:6443 check\n"
    assert " ".join(haproxy_file.read(text, MASTERS).arguments()) == "inter 3s fall 2 check"


def test_port_and_options_may_be_given(text):
    target = Target("masters", 7443, "weight 9")
    assert "    server n 10.0.0.7:7443 weight 9\n" in rendered(text, A, Server("n", "10.0.0.7"), target=target)


def test_other_sections_with_the_same_servers_are_not_touched():
    text = "backend one\n server a 10.0.0.1:1\n# end\n\nlisten two\n bind :5\n server a 10.0.0.1:1\n"
    after = haproxy_file.render(text, haproxy_file.read(text, Target("two")), [Server("b", "10.0.0.2")])
    assert after == "backend one\n server a 10.0.0.1:1\n# end\n\nlisten two\n bind :5\n server b 10.0.0.2:1\n"


def test_an_empty_backend_gets_servers_if_its_port_is_known():
    text = "backend one\n    balance roundrobin\n\nfrontend f\n"
    assert rendered(text, Server("b", "10.0.0.2"), target=Target("one", 5)) == (
        "backend one\n    balance roundrobin\n    server b 10.0.0.2:5\n\nfrontend f\n"
    )
    with pytest.raises(Refused, match="its backend one has no server: set the port in haproxy.backends."):
        haproxy_file.read(text, Target("one"))


def test_an_address_in_another_spelling_is_the_same():
    text = "backend one\n server a [FD00:0::7]:5 check\n"
    assert rendered(text, Server("a", "fd00::7"), target=Target("one")) is text


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("frontend one\n", "it has the backend one 0 times: name another one in haproxy.backends."),
        ("backend one\nbackend one\n", "it has the backend one 2 times: name another one in haproxy.backends."),
        ("backend one\n server a api.example:5\n", "line 2 is 'server a api.example:5': its address and port are "),
        ("backend one\n server a 10.0.0.1\n", "line 2 is 'server a 10.0.0.1': its address and port are "),
        ("backend one\n server a /run/x.sock\n", "line 2 is 'server a /run/x.sock': its address and port are "),
    ],
)
def test_a_file_that_cannot_be_followed_is_refused(text, sentence):
    with pytest.raises(Refused) as refused:
        haproxy_file.read(text, Target("one"))
    assert str(refused.value).startswith(sentence)
