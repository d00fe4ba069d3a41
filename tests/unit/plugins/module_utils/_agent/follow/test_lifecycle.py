# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`agent follow` as a host runs it, with a stand-in API server and a real HAProxy."""

from __future__ import annotations

import os
import signal

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.runtime_api import Runtime
from support.follow.nodes import node
from support.follow.running import Follow, Haproxy
from support.waiting import stays, until


@pytest.fixture
def haproxy(tmp_path):
    found = Haproxy(tmp_path)
    yield found
    found.close()


@pytest.fixture
def start(tmp_path, api, haproxy):
    """Start it; it is stopped at the end."""
    started = []

    def begin(**changes):
        started.append(Follow(tmp_path, api, haproxy, changes))
        return started[-1]

    yield begin
    for each in started:
        each.stop()


@pytest.fixture
def follow(server, start, haproxy):
    """One that follows two masters, the first of which HAProxy has from its file."""
    server.put(node("a", "10.0.0.1"), node("b", "10.0.0.2"))
    found = start()
    until(lambda: haproxy.present() == {"first": "10.0.0.1", "b": "10.0.0.2"} and server.watches, lambda: found.log)
    return found


BOTH = {"first": "10.0.0.1", "b": "10.0.0.2"}
THREE = {**BOTH, "c": "10.0.0.3"}


def test_a_node_that_joins_becomes_a_server_and_one_that_leaves_goes(server, follow, haproxy):
    server.put(node("c", "10.0.0.3"))
    until(lambda: haproxy.present() == THREE)
    assert haproxy.written() == {name: f"{address}:6443" for name, address in THREE.items()}
    until(lambda: len(follow.lines("masters: c at 10.0.0.3 is added: 3 servers.")) == 1)
    server.remove("c")
    until(lambda: haproxy.present() == BOTH)
    until(lambda: len(follow.lines("masters: c at 10.0.0.3 leaves: 2 servers.")) == 1)
    server.remove("b")
    until(lambda: haproxy.present() == {"first": "10.0.0.1"})


def test_a_node_that_is_there_and_ready_stays_a_server_and_it_is_said_why(server, follow, haproxy):
    server.put(node("b", "10.0.0.2", labels=()))
    server.put(node("a", labels=()))
    until(lambda: follow.lines("a stays a server at 10.0.0.1: its node does not have the label"))
    assert len(follow.lines("b stays a server at 10.0.0.2: its node does not have the label")) == 1
    assert [each["name"] for each in follow.report()["kept"]] == ["a", "b"] and haproxy.present() == BOTH
    server.put(node("a", "10.0.0.1"), node("b", "10.0.0.2"))
    until(lambda: follow.lines("b is a server as the API has it."))
    assert follow.report()["kept"] == []


def test_the_first_list_moves_no_server_to_another_of_its_nodes_addresses(server, start, haproxy):
    server.put(node("a", "203.0.113.1", "10.0.0.1"), node("b", "10.0.0.2", "203.0.113.2"))
    start()
    until(lambda: haproxy.present() == BOTH)


def test_the_servers_of_the_file_stay_although_one_node_alone_has_the_label(server, start, haproxy):
    server.put(node("a", "10.0.0.1", labels=()), node("b", "10.0.0.2"))
    found = start()
    until(lambda: haproxy.present() == BOTH)
    assert [each["name"] for each in found.report()["kept"]] == ["a"]


def test_a_node_that_is_not_ready_for_long_goes_and_comes_back(server, follow, haproxy):
    server.put(node("b", "10.0.0.2", ready=False))
    until(lambda: haproxy.present() == {"first": "10.0.0.1"})
    server.put(node("b", "10.0.0.2"))
    until(lambda: haproxy.present() == BOTH)


def test_a_renamed_node_touches_nothing_and_a_changed_address_is_followed(server, follow, haproxy):
    server.put(node("renamed", "10.0.0.2"))
    server.remove("b")
    server.put(node("c", "10.0.0.3"))
    until(lambda: haproxy.present() == THREE)
    server.put(node("c", "10.0.0.4"))
    until(lambda: follow.lines("c stays a server at 10.0.0.3: the API has its node at 10.0.0.4, but no check says"))
    Runtime(haproxy.socket).ask("set server masters/c health down")
    until(lambda: haproxy.present() == {**THREE, "c": "10.0.0.4"})
    assert haproxy.written()["c"] == "10.0.0.4:6443"
    assert len(follow.lines("leaves")) == 0


def test_no_nodes_and_nodes_of_the_wrong_family_leave_the_last_list(server, follow, haproxy):
    server.remove("b")
    until(lambda: haproxy.present() == {"first": "10.0.0.1"})
    server.put(node("a", "fd00::1"))
    until(lambda: follow.lines("a stays a server at 10.0.0.1: no address of its node in the API can be a server's"))
    server.remove("a")
    until(lambda: follow.lines("All servers stay: the list has no node."))
    assert haproxy.present() == {"first": "10.0.0.1"}


def test_an_api_that_is_away_changes_nothing_even_after_a_restart(server, follow, haproxy):
    server.away()
    until(lambda: follow.report()["api"]["fault"] == f"{server.url}: connection refused. The last list stays in force.")
    assert haproxy.present() == BOTH
    until(lambda: len(follow.lines(f"{server.url}: connection refused. The last list stays in force.")) == 1)
    follow.stop()
    old = haproxy.config.read_text().replace("    server b 10.0.0.2:6443 weight 5\n", "")
    haproxy.config.write_text(old)
    os.utime(haproxy.config, (0, 0))  # as if somebody had put back a copy of it meanwhile
    follow.start()
    until(lambda: "b" in haproxy.written())
    assert follow.report()["api"]["server"] is None
    assert [each["name"] for each in follow.report()["servers"]] == ["a", "b"]
    server.back()
    server.put(node("c", "10.0.0.3"))
    until(lambda: haproxy.present() == THREE, lambda: follow.log)


def test_the_next_api_server_is_asked_when_the_first_is_away(server, start, api, haproxy):
    server.put(node("a", "10.0.0.1"), node("b", "10.0.0.2"))
    found = start(api={"servers": ["https://127.0.0.1:1", server.url], "ca": api.ca, "token": api.token, "timeout": 60})
    until(lambda: haproxy.present() == BOTH)
    assert found.report()["api"]["server"] == server.url
    assert len(found.lines("https://127.0.0.1:1: connection refused.")) == 1


def test_what_was_missed_while_a_watch_was_cut_is_made_good(server, follow, haproxy):
    server.cut()
    server.remove("b")
    server.put(node("c", "10.0.0.3"))
    until(lambda: haproxy.present() == {"first": "10.0.0.1", "c": "10.0.0.3"}, lambda: follow.log)
    assert len(server.lists()) == 1


def test_an_expired_version_is_a_new_list(server, follow, haproxy):
    server.away()
    server.remove("b")
    server.put(node("c", "10.0.0.3"))
    server.expire()
    server.back()
    until(lambda: haproxy.present() == {"first": "10.0.0.1", "c": "10.0.0.3"})
    assert len(server.lists()) == 2


def test_a_token_that_rotates_is_not_noticed(server, follow, haproxy, token):
    server.tokens = {"new"}
    token.write_text("new")
    server.cut()
    server.put(node("c", "10.0.0.3"))
    until(lambda: haproxy.present() == THREE)
    assert not follow.lines("(401)")


def test_a_token_that_is_not_renewed_is_a_sentence_with_the_mend(server, follow, haproxy, token):
    server.tokens = {"new"}
    server.cut()
    until(lambda: follow.lines(f"does not accept the credentials (401): renew the token in {token}; it is read again"))
    assert haproxy.present() == BOTH
    token.write_text("new")
    until(lambda: follow.lines(f"{server.url} answers."))


def test_a_forbidden_list_is_a_sentence_with_the_mend(server, start, haproxy):
    server.refusing = [(403, {})] * 3
    found = start()
    until(lambda: found.lines("does not allow reading the nodes (403: nodes is forbidden: User"))
    assert haproxy.present() == {"first": "10.0.0.1"}


def test_500_nodes_that_join_at_once_are_a_few_changes(server, follow, haproxy):
    server.put(*(node(f"n{at}", f"10.1.{at // 250}.{at % 250 + 1}") for at in range(500)))
    until(lambda: len(haproxy.present()) == 502)
    assert follow.report()["nodes"] == 502


def test_a_storm_of_events_that_change_nothing_changes_nothing(server, follow, haproxy):
    before = haproxy.config.stat().st_mtime_ns
    for _round in range(20):
        server.put(*(node(name, address) for name, address in (("a", "10.0.0.1"), ("b", "10.0.0.2"))))
    server.put(node("c", "10.0.0.3"))
    until(lambda: haproxy.present() == THREE)
    assert haproxy.config.stat().st_mtime_ns != before
    assert follow.report()["changes"] == 2


def test_nothing_is_asked_twice_while_nothing_is_wrong(server, follow):
    server.put(node("a", "10.0.0.1"))
    server.bookmark()
    stays(lambda: len(server.requests) == 2, 1)


def test_a_reload_takes_the_new_file_and_one_with_a_fault_changes_nothing(server, follow, haproxy):
    server.put(*(node(f"w{at}", f"10.0.0.3{at}", labels=("worker",)) for at in range(2)))
    follow.write({**follow.configuration, "nodes": {"label": 7}})
    follow.process.send_signal(signal.SIGHUP)
    until(lambda: follow.lines("The reload is refused, and nothing is changed: nodes.label is 7"))
    follow.write({**follow.configuration, "nodes": {"label": "worker"}})
    follow.process.send_signal(signal.SIGHUP)
    until(lambda: haproxy.present() == {"w0": "10.0.0.30", "w1": "10.0.0.31"})
    assert follow.report()["config_fault"] is None


def test_a_haproxy_that_is_away_is_a_sentence_and_gets_its_servers_later(server, follow, haproxy):
    haproxy.close()
    server.put(node("c", "10.0.0.3"))
    until(lambda: follow.lines("haproxy does not have the servers of the cluster: HAProxy cannot be reached"))
    assert "c" in haproxy.written()
    assert outputs(follow)["haproxy"] and not outputs(follow)["haproxy_file"]


def test_a_list_and_a_sign_of_life_that_say_nothing_new_are_no_change(server, follow):
    before = follow.report()
    server.put(node("a", "10.0.0.1"))
    server.expire()
    server.cut()
    until(lambda: len(server.lists()) == 2)
    until(lambda: follow.report()["api"]["heard"] > before["api"]["heard"])
    assert follow.report()["last_change"] == before["last_change"]
    server.put(node("c", "10.0.0.3"))
    until(lambda: follow.report()["last_change"] > before["last_change"])


def outputs(follow):
    return {each["name"]: each["fault"] for each in follow.report()["balancers"]}


def test_each_output_is_tried_again_until_it_agrees_and_says_so_in_the_status(server, start, haproxy, tmp_path):
    """A file is where a folder should be, as a disk that takes no file: the other outputs get their servers."""
    server.put(node("a", "10.0.0.1"), node("b", "10.0.0.2"))
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    names = {"domain": "lab.example.com", "file": str(blocked / "hosts"), "local": str(tmp_path / "local")}
    follow = start(state_file=str(blocked / "s"), hosts=names)
    until(lambda: haproxy.present() == BOTH, lambda: follow.log)
    until((tmp_path / "local").exists)
    wrong = until(lambda: {name for name, fault in outputs(follow).items() if fault} == {"names", "state_file"})
    assert wrong and outputs(follow).keys() == {"haproxy_file", "haproxy", "names", "state_file"}
    blocked.unlink()
    until(lambda: (blocked / "s").exists() and not outputs(follow)["state_file"], lambda: follow.log)
    assert len(follow.lines("The list survives a restart again.")) == 1


def test_at_a_start_a_balancers_file_that_is_newer_than_the_state_file_counts(server, follow, haproxy):
    """As after a disk took the one and not the other. With the API away nobody could say otherwise."""
    server.away()
    follow.stop()
    os.utime(follow.state, (0, 0))
    haproxy.config.write_text(haproxy.config.read_text() + "    server c 10.0.0.3:6443 weight 5\n")
    follow.start()
    until(lambda: haproxy.present() == THREE, lambda: follow.log)
    until(lambda: "10.0.0.3" in follow.state.read_text())


def test_masters_and_routers_are_followed_by_their_own_labels_even_after_a_restart(server, start, haproxy):
    text = haproxy.config.read_text()
    haproxy.close()
    haproxy.config.write_text(text + text[text.index("backend masters") :].replace("masters", "routers"))
    haproxy.start()
    server.put(node("a", "10.0.0.1"), node("w", "10.0.0.9", labels=("worker",)))
    backends = [{"name": "masters"}, {"name": "routers", "label": "worker"}]
    found = start(haproxy={"backends": backends, "config": str(haproxy.config), "socket": haproxy.socket})
    until(lambda: haproxy.present("routers") == {"first": "10.0.0.1", "w": "10.0.0.9"}, lambda: found.log)
    assert haproxy.present() == {"first": "10.0.0.1"} and found.report()["nodes"] == 2
    server.remove("w")
    server.put(node("v", "10.0.0.8", labels=("worker",)))
    until(lambda: haproxy.present("routers") == {"first": "10.0.0.1", "v": "10.0.0.8"}, lambda: found.log)
    server.away()
    found.stop()
    found.start()
    until(lambda: len(found.report()["servers"]) == 3)


def test_its_memory_is_small(server, start, haproxy):
    """1,000 nodes, each with some 10 kB of JSON."""
    padding = {"images": ["x" * 100] * 100}
    server.put(*(node(f"n{at}", f"10.1.{at // 250}.{at % 250 + 1}", annotations=padding) for at in range(1000)))
    server.put(node("a", "10.0.0.1"))
    found = start(haproxy={"backends": [{"name": "other"}], "config": str(haproxy.config), "socket": haproxy.socket})
    until(lambda: found.report()["nodes"] == 1001)
    with open(f"/proc/{found.process.pid}/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    assert peak < 40 * 1024, f"{peak} kB"


NAMED = ["10.0.0.1 a.lab.example.com a", "10.0.0.9 w.lab.example.com w"]


def test_every_node_has_its_name_whatever_its_labels_and_a_changed_address_is_written(server, start, tmp_path):
    written, local = tmp_path / "hosts", tmp_path / "local"
    server.put(node("a", "10.0.0.1"), node("w", "10.0.0.9", labels=(), ready=False))
    names = {"domain": "lab.example.com", "file": str(written), "local": str(local)}
    follow = start(hosts=names)
    until(written.exists, lambda: follow.log)
    assert written.read_text().splitlines()[1:] == NAMED
    assert local.read_text().splitlines()[1:] == ["server=/a.lab.example.com/", "server=/w.lab.example.com/"]
    assert written.stat().st_mode & 0o777 == 0o644  # the resolver is another user
    server.put(node("w", "10.0.0.8", "fd00::8", labels=()))
    moved = ["10.0.0.8 w.lab.example.com w", "fd00::8 w.lab.example.com w"]
    until(lambda: written.read_text().splitlines()[2:] == moved)
    server.put(node("w", labels=()), node("x", "10.0.0.7", labels=()))
    until(lambda: written.read_text().splitlines()[2:] == [*moved, "10.0.0.7 x.lab.example.com x"])
    server.remove("w")
    server.remove("x")
    until(lambda: written.read_text().splitlines()[1:] == NAMED[:1])
    server.remove("a")
    until(lambda: follow.lines("The names of the nodes stay as they are: no node has an address."))
    assert written.read_text().splitlines()[1:] == NAMED[:1]


def test_a_node_with_a_name_of_others_gets_none_and_the_last_names_stay(server, start, tmp_path):
    written = tmp_path / "hosts"
    server.put(node("a", "10.0.0.1"), node("registry.k8s.io", "10.0.0.66", labels=()))
    follow = start(hosts={"domain": "lab.example.com", "file": str(written), "local": ""})
    until(written.exists, lambda: follow.log)
    assert written.read_text().splitlines()[1:] == NAMED[:1]
    said = "The resolver gives no name to registry.k8s.io (it is not directly below lab.example.com)."
    assert len(follow.lines(said)) == 1
    server.remove("a")
    until(lambda: follow.lines("The names of the nodes stay as they are: no node has a name below lab.example.com."))
    assert written.read_text().splitlines()[1:] == NAMED[:1]


def test_the_names_outlive_an_api_that_is_away(server, start, tmp_path):
    written = tmp_path / "hosts"
    written.write_text("10.0.0.7 first\n")
    server.away()
    follow = start(hosts={"domain": "lab.example.com", "file": str(written), "local": ""})
    until(lambda: follow.report()["api"]["fault"])
    assert written.read_text() == "10.0.0.7 first\n"
    server.back()
    server.put(node("a", "10.0.0.1"))
    until(lambda: written.read_text().splitlines()[1:] == NAMED[:1], lambda: follow.log)


def test_with_names_one_watch_is_enough_and_those_with_the_label_alone_are_servers(server, start, haproxy, tmp_path):
    server.put(node("a", "10.0.0.1"), node("b", "10.0.0.2"), node("w", "10.0.0.9", labels=()))
    written = tmp_path / "hosts"
    follow = start(hosts={"domain": "lab.example.com", "file": str(written), "local": ""})
    until(lambda: haproxy.present() == {"first": "10.0.0.1", "b": "10.0.0.2"} and server.watches, lambda: follow.log)
    assert (server.watches, follow.report()["nodes"]) == (1, 2)
    server.put(node("w", "10.0.0.9"))
    server.remove("b")
    until(lambda: haproxy.present() == {"first": "10.0.0.1", "w": "10.0.0.9"}, lambda: follow.log)
    until(lambda: len(written.read_text().splitlines()[1:]) == 2)
    assert server.watches == 1
