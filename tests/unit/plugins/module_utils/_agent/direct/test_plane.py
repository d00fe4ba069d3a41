# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which servers get new connections, from checks, orders and MACs that come from the test."""

from __future__ import annotations

from collections import Counter

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Result
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import (
    buckets,
    config,
    hashing,
    proofs,
    report,
    rulesets,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.attempts import FEW
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.packets import Packets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.plane import (
    JUDGEMENT,
    NO_SERVER,
    OTHER_LINK,
    Edge,
    Plane,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.second_chances import Chance, Way
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import Address, Link
from support.agent.loops import Time
from support.direct.configs import API, with_service, written

GOOD = with_service()
A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"
KEYS = {A: "api/a", B: "api/b", C: "api/192.0.2.3"}
MACS = {address: f"02:00:00:00:00:0{number}" for number, address in enumerate(KEYS, 1)}


class Macs:
    """Those of the servers, and the link."""

    def __init__(self):
        self.known, self.wanted = dict(MACS), None
        self.link = Link(2, "eth0", True, bytes.fromhex("020000000099"))
        self.addresses = [Address(2, "192.0.2.9", 24, True)]

    @property
    def unknown(self):
        return sorted(set(self.wanted) - set(self.known))

    def want(self, _interface, addresses):
        self.wanted = addresses


class Prober:
    """Proves each path at once, but for those of which the test knows another outcome."""

    def __init__(self):
        self.paths, self.outcomes, self.targets = {}, {}, {}
        self.chances = self
        self.mtu = lambda: 1500
        self.gives, self.astray = (
            {},
            set(),
        )  # by the server's address: whether it gives second chances; who hands on wrongly

    def of(self, key):
        return Chance(self.gives.get(key[2]), key[2] in self.astray)

    def want(self, _link, targets):
        self.targets = targets
        before, self.paths = self.paths, {}
        for key, target in targets.items():
            path, outcome = before.get(key, proofs.Path()), self.outcomes.get(key[2], proofs.ANSWERED)
            self.paths[key] = proofs.judge(path, target.mac, outcome) if target.alive and outcome else path


class Writer:
    """What is to be written."""

    def __init__(self):
        self.in_force, self.wanted, self.losses = None, [], []
        self.written_at, self.took, self.fault, self.counts = None, None, None, {}

    def want(self, table):
        self.wanted.append(table)

    def lost(self, why):
        self.losses.append(why)


class Case:
    """A plane without a kernel."""

    def __init__(self, text=GOOD):
        self.time, self.macs, self.writer, self.log, self.faults = Time(), Macs(), Writer(), Counter(), {}
        self.prober = Prober()
        self.plane = Plane(Edge(self.time, self, self, self.macs, self.writer, self.prober))
        self.configure(text)

    def configure(self, text):
        settings, faults = config.parse(text)
        assert faults == []
        self.plane.apply(settings)

    def found(self, **states):
        """Report results of checks, by the last number of the server's address."""
        for address, key in KEYS.items():
            if f"s{address[-1]}" in states:
                self.plane.health.take_result(Result(key, states[f"s{address[-1]}"], 0, "because"))
                self.plane.update()

    def owners(self):
        """Return who owns buckets in the table that was wanted last."""
        found = self.writer.wanted[-1].elements
        return {address for address, mac in MACS.items() if mac in found.get("servers_0_macs", {}).values()}

    def prove(self, **outcomes):
        """Have probes end otherwise from now on, by the last number of the server's address."""
        self.prober.outcomes.update({f"192.0.2.{number[1:]}": outcome for number, outcome in outcomes.items()})
        for _again in range(proofs.FALL):
            self.plane.update()

    # the checks, and the log

    def apply(self, *_checks):
        pass

    def info(self, text):
        self.log[text] += 1

    warning = info

    def fault(self, key, text):
        self.faults[key] = text

    def cured(self, key, _text):
        self.faults.pop(key, None)


@pytest.fixture
def case():
    return Case()


@pytest.fixture
def judged(case):
    """One whose servers are all up."""
    case.found(s1=True, s2=True, s3=True)
    return case


def test_the_first_table_waits_until_each_server_was_checked(case):
    case.found(s1=True, s2=False)
    assert case.writer.wanted == []
    case.found(s3=True)
    assert len(case.writer.wanted) == 1 and case.owners() == {A, C}


def test_but_not_for_long_and_a_server_that_was_not_checked_gets_nothing(case):
    case.found(s1=True, s2=True)
    case.time.advance(JUDGEMENT)
    assert case.owners() == {A, B}
    case.found(s3=True)
    assert case.owners() == {A, B, C}


def test_services_that_are_not_checked_are_served_at_once():
    assert Case(with_service(check={"type": "none"})).owners() == {A, B, C}


def test_it_waits_for_macs_as_well(case):
    del case.macs.known[C]
    case.found(s1=True, s2=True, s3=True)
    assert case.writer.wanted == []
    case.macs.known = dict(MACS)
    case.plane.changed_link(False)
    assert case.owners() == {A, B, C}


def test_a_server_whose_mac_is_not_known_gets_nothing_and_it_says_so(case):
    del case.macs.known[C]
    case.found(s1=True, s2=True, s3=True)
    case.time.advance(JUDGEMENT)
    assert case.owners() == {A, B}
    assert case.faults["mac"] == "Nobody answers for 192.0.2.3 on eth0: are these servers on its link?"


def test_what_goes_down_is_out_and_what_comes_up_is_in(judged):
    judged.found(s2=False)
    assert judged.owners() == {A, C}
    judged.found(s2=True)
    assert judged.owners() == {A, B, C}


def test_nothing_new_is_wanted_while_nothing_changes(judged):
    judged.found(s1=True)
    judged.plane.update()
    assert len(judged.writer.wanted) == 1


@pytest.mark.parametrize("order", ["drain", "maint"])
def test_a_server_that_is_ordered_out_gets_nothing_new(judged, order):
    judged.plane.health.command("api/a", order)
    assert judged.owners() == {B, C}
    judged.plane.health.command("api/a", "ready")
    assert judged.owners() == {A, B, C}


def test_a_weight_of_0_means_nothing_new():
    case = Case(with_service(servers=[*API["servers"][:2], {"address": C, "weight": 0}], check={"type": "none"}))
    assert case.owners() == {A, B}


def test_of_the_last_servers_only_those_stay_that_are_still_in_the_list(judged):
    judged.found(s1=False, s2=False, s3=False)
    assert judged.plane.owners == {"api": {C}}
    judged.configure(with_service(servers=API["servers"][:2]))
    judged.time.advance(JUDGEMENT)
    assert judged.plane.owners == {"api": frozenset()}


def test_the_last_servers_stay_when_all_are_down_and_it_says_so(judged):
    judged.found(s1=False, s2=False)
    assert judged.owners() == {C}
    judged.found(s3=False)
    assert judged.owners() == {C} and len(judged.writer.wanted) == 3
    assert judged.faults["api"] == "api has no server that is up: the last table stays."
    judged.found(s1=True)
    assert judged.owners() == {A} and "api" not in judged.faults


def test_a_service_whose_servers_were_never_up_is_not_in_the_table(case):
    case.found(s1=False, s2=False, s3=False)
    assert "goto" not in case.writer.wanted[-1].structure
    assert case.faults["api missing"] == f"api {NO_SERVER}"
    case.found(s2=True)
    assert case.owners() == {B} and "api missing" not in case.faults


def test_a_server_whose_path_is_not_proven_gets_nothing_and_it_says_why(case):
    case.prove(s2=proofs.SILENT)
    case.found(s1=True, s2=True, s3=True)
    assert case.owners() == {A, C} and case.plane.usable(case.plane.settings.services[0].balanced) == 2
    assert set(case.faults) == {"api/b path"}
    assert case.faults["api/b path"].startswith("api/b does not answer for 192.0.2.100:6443 in direct return: run the ")
    case.prove(s2=proofs.ANSWERED)
    assert case.owners() == {A, B, C} and case.faults == {}


def test_the_first_table_waits_for_the_proofs_as_well_but_not_for_those_of_dead_servers(case):
    case.prober.paths.clear()
    case.prove(s1="", s2="")
    case.found(s1=True, s2=False, s3=True)
    assert case.writer.wanted == []
    case.prove(s1=proofs.SILENT)
    assert case.owners() == {C}


def test_a_server_answers_for_each_vip_of_its_service(case):
    case.configure(with_service(bind=["192.0.2.100", "192.0.2.101"], check={"type": "none"}))
    assert set(case.prober.paths) == {(f"192.0.2.{vip}", 6443, server) for vip in (100, 101) for server in KEYS}
    case.prober.paths["192.0.2.101", 6443, B] = proofs.Path(MACS[B], proofs.SILENT, 5)
    case.prober.outcomes[B] = ""
    case.plane.update()
    assert case.owners() == {A, C} and "192.0.2.101:6443" in case.faults["api/b path"]


def test_a_path_that_is_lost_takes_a_server_out_but_never_the_last_ones(judged):
    judged.prove(s1=proofs.SILENT, s2=proofs.REFUSED)
    assert judged.owners() == {C} and "api paths" not in judged.faults
    judged.prove(s3=proofs.ELSEWHERE)
    assert judged.owners() == {C}
    assert judged.faults["api paths"] == "api has no path to a server: the last table stays."
    judged.prove(s1=proofs.ANSWERED)
    assert judged.owners() == {A} and "api paths" not in judged.faults


def test_a_service_to_whose_servers_no_path_was_ever_proven_is_not_in_the_table(case):
    case.prove(s1=proofs.SILENT, s2=proofs.SILENT, s3=proofs.SILENT)
    case.found(s1=True, s2=True, s3=True)
    assert "goto" not in case.writer.wanted[-1].structure
    assert case.faults["api missing"] == f"api {NO_SERVER}"


def test_this_host_needs_no_proof_of_itself(case):
    case.macs.known[A] = "02:00:00:00:00:99"
    case.prove(s1=proofs.SILENT)
    case.found(s1=True, s2=True, s3=True)
    assert {key[2] for key in case.prober.targets} == {B, C}
    assert "02:00:00:00:00:99" not in case.owners()
    assert case.plane.owners["api"] == {A, B, C}


def test_a_server_without_second_chances_is_named_until_it_gives_them_and_serves_all_the_while(judged):
    judged.prober.gives = {A: True, B: False}
    judged.plane.update()
    services = {each["name"]: each for each in report.build(judged.plane, Packets(), True)["services"]}
    assert [each["second_chances"] for each in services["api"]["servers"]] == [True, False, None]
    assert judged.faults["api/b second chances"].startswith("api/b hands nothing on for 192.0.2.100:6443, so ")
    assert judged.owners() == {A, B, C}
    judged.prober.astray.add(B)
    judged.plane.update()
    assert judged.faults["api/b second chances"].startswith(
        "api/b hands on what is for 192.0.2.100:6443 by another list"
    )
    judged.prober.gives[B] = None  # which is no cure
    judged.plane.update()
    assert "api/b second chances" in judged.faults
    judged.prober.gives[B] = True
    judged.plane.update()
    assert "api/b second chances" not in judged.faults


def test_a_server_of_which_clients_hear_nothing_is_named_until_they_do_and_stays(judged):
    packets, key = Packets(), ("192.0.2.100", 6443, B)
    for _count in range(2):
        packets.attempts.count(key, FEW, 0)
    judged.plane.report_clients(packets)
    services = {each["name"]: each for each in report.build(judged.plane, packets, True)["services"]}
    said = f"b answers balancers for 192.0.2.100:6443, and none of {FEW} attempts of clients has led to a connection"
    assert services["api"]["servers"][1]["path_fault"].startswith(said)
    assert judged.faults["api/b clients"].startswith(f"api/{said}") and judged.owners() == {A, B, C}
    packets.attempts.count(key, 1, 1)
    judged.plane.report_clients(packets)
    assert "api/b clients" not in judged.faults


def test_an_interface_with_a_smaller_mtu_than_the_servers_is_named_until_it_has_theirs(judged):
    path = judged.prober.paths["192.0.2.100", 6443, B]
    judged.prober.paths["192.0.2.100", 6443, B] = path._replace(mss=1460)
    judged.prober.outcomes[B] = ""
    judged.prober.mtu = lambda: 1400
    judged.plane.update()
    said = "eth0 has an MTU of 1400, and servers take packets of 1500 bytes: uploads of clients "
    assert judged.faults["mtu"].startswith(said) and judged.owners() == {A, B, C}
    assert report.build(judged.plane, Packets(), True)["mtu_fault"].startswith(said)
    judged.prober.mtu = lambda: 1500
    judged.plane.update()
    assert "mtu" not in judged.faults


def test_who_is_asked_and_from_where(judged):
    judged.found(s3=False)
    targets = {key[2]: target for key, target in judged.prober.targets.items()}
    assert targets[A] == proofs.Target(MACS[A], "192.0.2.9", True)
    assert targets[C] == proofs.Target(MACS[C], "192.0.2.9", False)


def test_the_path_to_a_server_in_maintenance_is_no_fault(judged):
    judged.plane.health.command("api/b", "maint")
    judged.prove(s2=proofs.SILENT)
    assert judged.faults == {}


def test_a_new_mac_is_in_no_table_before_its_proof(judged):
    judged.prober.outcomes[A] = ""
    judged.macs.known = {**MACS, A: "02:00:00:00:00:55"}
    judged.plane.changed_link(False)
    assert judged.owners() == {A, B, C}
    judged.prove(s1=proofs.ANSWERED)
    assert judged.owners() == {B, C} and judged.plane.owners["api"] == {A, B, C}


def test_a_mac_that_changes_is_in_the_next_table(judged):
    judged.macs.known = {**MACS, A: "02:00:00:00:00:55"}
    judged.plane.changed_link(False)
    assert "02:00:00:00:00:55" in judged.writer.wanted[-1].elements["servers_0_macs"].values()


def test_another_link_needs_the_whole_table(judged):
    judged.macs.link = judged.macs.link._replace(index=3)
    judged.plane.changed_link(True)
    assert judged.writer.losses == [OTHER_LINK] and judged.writer.wanted[-1] == judged.writer.wanted[0]


def test_without_the_interface_there_is_no_table_in_force(judged):
    judged.writer.in_force = judged.writer.wanted[-1]
    assert judged.plane.in_force
    judged.macs.link = None
    judged.plane.changed_link(True)
    assert judged.plane.in_force is None and len(judged.writer.wanted) == 1
    assert judged.faults["link"] == "There is no interface eth0, and so no table."


def test_a_reload_that_changes_the_checks_keeps_the_table_until_they_have_results(judged):
    judged.configure(with_service(check={"type": "tcp"}))
    judged.found(s1=True)
    assert len(judged.writer.wanted) == 1, "or all connections would be those of the first server"
    judged.found(s2=True, s3=False)
    assert judged.owners() == {A, B}


def test_a_reload_forgets_servers_that_are_no_more(judged):
    judged.found(s1=False, s2=False)
    judged.configure(with_service(servers=API["servers"][:2], check=API["check"]))
    assert "goto" not in judged.writer.wanted[-1].structure


def test_services_share_maps_only_when_there_are_many_of_them():
    several = [{**API, "name": f"api{number}", "port": number, "check": {"type": "none"}} for number in range(1, 19)]
    few, many = (Case(written(services=several[:count])).writer.wanted[-1].elements for count in (16, 17))
    assert (len(few), len(many)) == (80, 5)


def test_who_gets_new_connections_and_where_a_redirect_leads_are_in_the_table(judged):
    before = judged.writer.wanted[-1]
    judged.configure(with_service(new_connections="host", proxy_port=9445))
    found = judged.writer.wanted[-1]
    assert (before.leaves, found.leaves) == (False, True) and found.structure == before.structure
    assert found.sockets["192.0.2.100", 9445] == [("192.0.2.100", 6443)]
    assert judged.owners() == {A, B, C}, "the connections that there are stay with them"


def test_after_a_stop_no_other_table_is_wanted(judged):
    judged.plane.stop()
    judged.found(s1=False)
    assert len(judged.writer.wanted) == 1


def test_the_names_of_counters_lead_to_the_servers(judged):
    counters = judged.writer.wanted[-1].counters
    assert {places[0] for places in counters.values()} == {("192.0.2.100", 6443, address) for address in KEYS}
    assert set(counters) == {f"servers_0_{address.replace('.', '_')}" for address in KEYS}
    assert rulesets.BALANCER in judged.writer.wanted[-1].structure


def test_a_report_says_who_gets_new_connections_in_the_table_that_the_kernel_has(judged):
    def owners():
        [service] = report.build(judged.plane, Packets(), True)["services"]
        return {server["address"] for server in service["servers"] if server["owner"]}

    assert judged.owners() == {A, B, C} and owners() == set()
    judged.writer.in_force = judged.writer.wanted[-1]
    assert owners() == {A, B, C}
    judged.found(s3=False)
    assert judged.owners() == {A, B} and owners() == {A, B, C}
    judged.writer.in_force = judged.writer.wanted[-1]
    assert owners() == {A, B}


def test_who_should_answer_what_is_handed_on_is_known_by_this_hosts_list_but_of_this_host(judged):
    (service,) = [each for each in judged.plane.settings.services if each.balanced.name == "api"]
    table = buckets.table(service.servers, service.buckets)

    def answering(asked, port):
        return judged.prober.way(("192.0.2.100", 6443, asked), "192.0.2.9", port).answering

    for port in range(40000, 40064):
        bucket = table[hashing.bucket("192.0.2.9", port, service.buckets, rulesets.SEED)]
        assert [answering(each, port) for each in bucket] == [MACS[each] for each in bucket]
        assert answering("192.0.2.77", port) == MACS[bucket.second]
    assert judged.prober.way(("192.0.2.100", 6444, A), "192.0.2.9", 40000) == Way()
    judged.macs.known[A] = "02:00:00:00:00:99"
    judged.plane.update()
    assert {answering(A, port) for port in range(40000, 40064)} >= {""}
    assert "02:00:00:00:00:99" not in {answering(each, port) for each in (A, B, C) for port in range(40000, 40064)}
