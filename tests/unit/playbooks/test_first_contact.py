# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that Ansible cannot use are named with the cause, in a sentence each, although what is read there is secret."""

from __future__ import annotations

import json

import pytest
import yaml
from support.paths import PLAYBOOKS
from support.playbooks import play, play_anew

PAIR = """
[pair]
lb1 ansible_host=127.0.0.1 ansible_port=1 ansible_ssh_executable=ssh ansible_ssh_pipelining=false
lb2 ansible_connection=local ansible_become=false ansible_python_interpreter=/nonexistent/python3
lb3 ansible_connection=local ansible_python_interpreter=/usr/bin/python3

[pair:vars]
pair_vips=["192.0.2.10"]
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
"""
CONNECT = "Failed to connect to the host via ssh: ssh: connect to host 127.0.0.1 port 1: Connection refused"


def test_a_deployment_names_every_host_that_cannot_be_used(tmp_path):
    code, said = play(tmp_path, PAIR, "onprem.lb.site")
    assert code == 2 and "censored" not in said and "Could not match" not in said
    assert f"lb1 cannot be reached as root: {CONNECT}" in said
    assert "lb2: Ansible finds no Python: install python3 there, or name one in ansible_python_interpreter." in said
    assert "lb3 cannot be reached as root: " in said and "there_is_none: not found" in said


def test_a_drill_does_so_too(tmp_path):
    code, said = play(tmp_path, f"{PAIR}[probe]\nclient\n", "onprem.lb.drill")
    assert code != 0 and "censored" not in said and "HostVars" not in said
    assert f"lb1 cannot be reached as root: {CONNECT}" in said and "lb2: Ansible finds no Python: " in said


@pytest.mark.parametrize(
    "keyword, sentence", [({"serial": 1}, "remove serial"), ({"strategy": "free"}, "set strategy: linear")], ids=str
)
def test_a_play_of_the_users_that_does_not_keep_the_members_together_is_refused(tmp_path, keyword, sentence):
    playbook = tmp_path / "own.yml"
    playbook.write_text(json.dumps([{"hosts": "pair", "gather_facts": False, "roles": ["onprem.lb.pair"], **keyword}]))
    code, said = play(tmp_path, PAIR, str(playbook), "--check")
    assert code != 0 and sentence in said and "HostVars" not in said


@pytest.mark.parametrize("recorded", [{}, {"members": ["lb1", "lb2"]}], ids=["first", "again"])
def test_a_member_that_has_failed_earlier_in_the_run_is_named_as_that(tmp_path, recorded):
    """What an earlier play of the same run has recorded of it is no more what it has."""
    tasks = [
        {"ansible.builtin.set_fact": {"__layout_member": recorded}, "when": bool(recorded)},
        {"ansible.builtin.fail": {"msg": "on purpose"}, "when": "inventory_hostname == 'lb2'"},
    ]
    first = {"hosts": "pair", "gather_facts": False, "become": False, "tasks": tasks}
    playbook = tmp_path / "own.yml"
    playbook.write_text(json.dumps([first, {"import_playbook": "onprem.lb.site"}]))
    inventory = "[pair]\nlb[1:2] ansible_connection=local\n\n[pair:vars]" + PAIR.partition("[pair:vars]")[2]
    code, said = play(tmp_path, inventory, str(playbook), "--check")
    sentence = "lb2 failed earlier in this run, so lb1 cannot be planned together with it: mend what failed there"
    assert code != 0 and sentence in said and "remove serial" not in said


def test_a_play_of_more_hosts_than_the_members_is_told_that_the_group_may_be_right(tmp_path):
    playbook = tmp_path / "own.yml"
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "roles": ["onprem.lb.pair"]}]))
    code, said = play(tmp_path, f"{PAIR}[probe]\nclient ansible_connection=local\n", str(playbook), "--check")
    assert code != 0 and "client, which this run is for: add it" in said and "or of the play's hosts" in said


def test_the_collections_playbooks_keep_the_members_together_whatever_strategy_is_configured(tmp_path):
    code, said = play_anew(tmp_path, PAIR, "onprem.lb.forecast", ANSIBLE_STRATEGY="free")
    assert code == 0, said


def test_every_play_of_the_collection_is_linear_whatever_strategy_is_configured():
    """With another one each host runs the tasks that are for one alone, some before the others have got that far."""
    plays = every_play()
    assert plays
    assert [(file, play["name"]) for file, play in plays if play.get("strategy") != "linear"] == []


def test_whether_a_failure_ends_a_play_on_all_hosts_is_no_template():
    """Ansible takes each text as true there."""
    assert [(file, play["name"]) for file, play in every_play() if isinstance(play.get("any_errors_fatal"), str)] == []


def every_play():
    """Return each play of the collection with its file."""
    files = [file for file in PLAYBOOKS.rglob("*.yml") if file.parent.name not in ("tasks", "vars")]
    return [(file.name, play) for file in files for play in yaml.safe_load(file.read_text()) if "hosts" in play]


def test_a_controller_without_netaddr_is_told_so(tmp_path):
    (tmp_path / "netaddr.py").write_text("raise ImportError\n")
    code, said = play_anew(tmp_path, PAIR, "onprem.lb.site", PYTHONPATH=str(tmp_path))
    assert code != 0 and "The controller lacks the Python package netaddr: install it for " in said
    assert "UNREACHABLE" not in said and "rror rendering" not in said


def test_a_removal_goes_on_without_the_hosts_that_cannot_be_reached(tmp_path):
    code, said = play(tmp_path, PAIR, "onprem.lb.remove", "-e", "confirm=true")
    assert code != 0 and "cannot be reached as root" not in said and "Could not match" not in said
    removed = said.partition("Remove | Read the host")[2]
    assert all(f"fatal: [{ending}" in removed for ending in ("lb1]: UNREACHABLE!", "lb2]: FAILED!", "lb3]: FAILED!"))


def test_a_removal_asks_for_a_confirmation_before_it_connects_to_a_host(tmp_path):
    for arguments in ([], ["--limit", "lb1"], ["-e", "confirm=false"]):
        code, said = play(tmp_path, PAIR, "onprem.lb.remove", *arguments)
        assert code == 2 and "UNREACHABLE" not in said
        assert "confirm that with -e confirm=true, or add --check to see first what would go." in " ".join(said.split())


def test_a_dry_run_of_a_removal_needs_no_confirmation(tmp_path):
    code, said = play(tmp_path, PAIR, "onprem.lb.remove", "--check")
    assert code != 0 and "-e confirm=true" not in said and "lb1]: UNREACHABLE!" in said


ALONE = """
[pair]
lb1 ansible_connection=local ansible_become=false ansible_python_interpreter=/nonexistent/python3
lb2 ansible_host=127.0.0.1 ansible_port=1 ansible_ssh_executable=ssh ansible_ssh_pipelining=false

[pair:vars]
pair_vips=["192.0.2.10"]
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
"""


def test_a_member_that_does_not_answer_is_named_with_the_command_for_the_others(tmp_path):
    _code, said = play(tmp_path, ALONE, "onprem.lb.site")
    assert "lb2 cannot be reached as root" in said
    assert "To change the members that answer, repeat the same command with --limit '!lb2'." in said


def test_with_limit_it_is_not_asked_for(tmp_path):
    """lb1 alone is then in the way, for its Python."""
    _code, said = play(tmp_path, ALONE, "onprem.lb.site", "--limit", "!lb2")
    assert "lb1: Ansible finds no Python" in said and "lb2 cannot be reached" not in said


ONE_PAIR, CLUSTER = "[pair]\nlb1\n", "[ipi_masters]\nm1\n"
NAMED = "[balancers]\nlb1\n[balancers:vars]\npair_hosts=balancers\n"
FOR_ONE = {"pair", "ipi", "pods"}  # the playbooks that say what they need where the inventory has the other layout
FOR_EACH = sorted({file.stem for file in PLAYBOOKS.glob("*.yml")} - FOR_ONE)
HELD = {"lb1": ("pair", "both"), "m1": ("ipi", "an empty pair", "both")}


def hosts_of(tmp_path, groups, playbook, *arguments):
    """Return the plays of a playbook with their hosts, as Ansible lists them."""
    code, said = play(tmp_path, f"{groups}[probe]\nclient\n", f"onprem.lb.{playbook}", "--list-hosts", *arguments)
    assert code == 0 and "Could not match" not in said
    return said.split("play #")[1:]


@pytest.mark.parametrize("playbook", sorted(FOR_ONE))
@pytest.mark.parametrize("groups", [ONE_PAIR, CLUSTER], ids=["pair", "ipi"])
def test_no_playbook_warns_of_a_group_that_the_inventory_does_not_have(tmp_path, playbook, groups):
    assert hosts_of(tmp_path, groups, playbook)


@pytest.mark.parametrize("playbook", ["pair", "ipi", "forecast", "status", "backup"])
def test_nor_of_the_layouts_groups_where_they_are_named_otherwise(tmp_path, playbook):
    assert hosts_of(tmp_path, NAMED, playbook)


@pytest.mark.parametrize(
    "groups, layout, playbook",
    [(groups, layout, playbook) for groups, layout in ((ONE_PAIR, "pair"), (CLUSTER, "ipi")) for playbook in FOR_EACH]
    + [(f"{ONE_PAIR}{CLUSTER}", "both", playbook) for playbook in ("site", "forecast", "remove")]
    + [(f"[pair]\n{CLUSTER}", "an empty pair", playbook) for playbook in ("site", "forecast")],
)
def test_no_playbook_has_a_play_of_a_layout_that_the_inventory_does_not_have(tmp_path, groups, layout, playbook):
    plays = hosts_of(tmp_path, groups, playbook)
    assert not any("hosts (0)" in each for each in plays)
    assert all(any(member in each for each in plays) == (layout in held) for member, held in HELD.items())


def test_a_layout_whose_groups_are_named_on_the_command_line_is_found(tmp_path):
    for given, member in (("pair_hosts=balancers", "lb1"), ("ipi_hosts=absent:owners", "m1")):
        plays = hosts_of(tmp_path, "[balancers]\nlb1\n[owners]\nm1\n", "site", "-e", given)
        assert len(plays) == 2 and member in plays[1]


def test_members_that_an_earlier_play_adds_are_set_up(tmp_path):
    added = {"ansible.builtin.add_host": {"name": "m1", "groups": "ipi_masters", "ansible_connection": "local"}}
    first = {"hosts": "localhost", "gather_facts": False, "become": False, "tasks": [added]}
    (tmp_path / "own.yml").write_text(json.dumps([first, {"import_playbook": "onprem.lb.site"}]))
    code, said = play(tmp_path, "localhost ansible_connection=local\n", str(tmp_path / "own.yml"))
    assert code != 0 and "fatal: [m1]" in said.partition("PLAY [Set up a cluster with its own VIPs]")[2]


def test_groups_that_a_playbook_of_the_users_names_in_its_import_are_found_beside_those_of_the_other_layout(tmp_path):
    imported = {"import_playbook": "onprem.lb.site", "vars": {"ipi_hosts": "owners"}}
    (tmp_path / "own.yml").write_text(json.dumps([imported]))
    code, said = play(tmp_path, f"{ONE_PAIR}[owners]\nm1\n", str(tmp_path / "own.yml"), "--list-hosts")
    assert code == 0 and "m1" in said.partition("Set up a cluster with its own VIPs")[2]
