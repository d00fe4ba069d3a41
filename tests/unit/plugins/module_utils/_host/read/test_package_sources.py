# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Can a host install packages? Its package manager's files say where from."""

from __future__ import annotations

import socket
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts, package_sources
from support.waiting import LIMIT_S

LIST = """\
# deb http://commented.example/ x main
deb http://deb.example/debian bookworm main
deb-src http://sources.example/debian bookworm main
  deb [arch=amd64 signed-by=/x] https://signed.example:8443/debian bookworm main
"""
DEB822 = """\
Types: deb deb-src
URIs: http://one.example/debian
 http://two.example/debian
Suites: trixie

Types: deb
Enabled: no
URIs: http://off.example/debian

Types: deb-src
URIs: http://src.example/debian
"""
REPO = """\
[baseos]
name=Base
mirrorlist=https://mirrors.example/list?repo=$releasever
#baseurl=http://commented.example/
[crb]
enabled=0
baseurl=http://off.example/
[own]
enabled = 1
baseurl = http://own.example:8080/x
"""


def asked(sources, answer=False):
    places = []
    said = package_sources.unobtainable(sources, lambda wanted: places.extend(wanted) or answer)
    return said, places


def test_apts_lists_are_read_in_both_formats():
    assert package_sources.apt([LIST]).addresses == ["http://deb.example/debian", "https://signed.example:8443/debian"]
    assert package_sources.apt([DEB822]).addresses == ["http://one.example/debian", "http://two.example/debian"]


def test_yums_repositories_are_read():
    found = package_sources.yum([REPO]).addresses
    assert found == ["https://mirrors.example/list?repo=$releasever", "http://own.example:8080/x"]


def test_a_source_that_answers_is_enough():
    assert asked(package_sources.apt([LIST]), answer=True)[0] == ""


def test_no_source_that_answers_is_said_with_their_names():
    said, places = asked(package_sources.apt([LIST]))
    assert said == "none of its package sources can be reached (deb.example, signed.example)"
    assert places == [("deb.example", 80), ("signed.example", 8443)]


def test_a_host_without_sources_is_not_asked():
    assert asked(package_sources.apt([])) == ("the host has no package sources", [])
    assert asked(package_sources.yum(["[x]\nenabled=0\nbaseurl=http://x/\n"]))[0] == "the host has no package sources"
    assert (
        asked(package_sources.apt(["deb cdrom:[Debian]/ trixie main"]))[0]
        == "the host has no package sources but removable media"
    )


@pytest.mark.parametrize(
    "address", ["file:/srv/mirror", "file:///srv/mirror", "copy:/srv/mirror", "mirror+file:/etc/m"]
)
def test_what_is_on_the_host_itself_can_be_had(address):
    assert asked(package_sources.apt([f"deb {address} bookworm main"])) == ("", [])


def test_a_proxy_stands_for_all_of_them():
    proxied = package_sources.apt(
        [LIST], ['# Acquire::http::Proxy "http://old.example:1";\nAcquire::http::Proxy "http://proxy.example:3128";\n']
    )
    assert asked(proxied)[1] == [("proxy.example", 3128)]
    assert asked(package_sources.yum([REPO], ["[main]\nproxy=http://proxy.example:3128\n"]))[1] == [
        ("proxy.example", 3128)
    ]


def test_one_that_takes_a_connection_is_found_among_those_that_do_not():
    with socket.socket() as server, socket.socket() as closed:
        for each in (server, closed):
            each.bind(("127.0.0.1", 0))
        server.listen()
        dead = ("127.0.0.1", closed.getsockname()[1])
        assert facts.any_reachable([dead, ("127.0.0.1", server.getsockname()[1])], 5)
        assert not facts.any_reachable([dead], 5)
        assert not facts.any_reachable([], 5)


def test_resolving_a_name_takes_no_longer_than_the_limit(monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(facts, "reachable", lambda targets, timeout: answered.wait(LIMIT_S) and targets)
    try:
        assert not facts.any_reachable([("nowhere.example", 80)], 0.1)
    finally:
        answered.set()


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"instances": [1]}', '{"services": []}'])
def test_what_is_no_configuration_of_the_agents_router_has_no_instances(text):
    assert facts.agent_instances(text) == []


def test_the_agents_instances_are_read():
    (found,) = facts.agent_instances('{"instances": [{"name": "front", "vrid": 5, "priority": 7}]}')
    assert found == {**facts.INSTANCE, "name": "front", "vrid": 5, "priority": 7}


@pytest.mark.parametrize(
    "sources, names",
    [
        (
            package_sources.Sources(["http://deb.example/x", "http://deb.example/y", "http://192.0.2.1/", "file:/x"]),
            ["deb.example"],
        ),
        (package_sources.Sources(["http://deb.example/x"], "http://proxy.example:3128"), ["proxy.example"]),
        (package_sources.Sources(["http://[2001:db8::1]/", "http://mirror/"]), []),
    ],
)
def test_the_names_that_a_host_resolves_for_its_packages(sources, names):
    assert package_sources.names(sources) == names
