# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Against fakes (firewalls.py) that answer as the real ones did."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall import core, firewalld, nftables
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.model import (
    PROTOCOLS,
    FirewallError,
    Opening,
    apply,
    wanted_openings,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import nft_guard
from hypothesis import given
from hypothesis import strategies as st
from support.firewalls import (
    DPORT,
    INPUT,
    LO,
    SADDR,
    STATE,
    FakeFirewalld,
    FakeHost,
    FakeNft,
    FakeUfw,
    accepting,
    dropping,
    match,
)

WANTED = wanted_openings([8443, "80/tcp"], ["10.88.0.9", "fd00::9"])
NETWORKS = ["10.0.0.0/8", "10.88.0.0/24", "2001:db8::/32", "fd00::/64"]
PORTS = st.integers(1, 65535)
OPENINGS = st.lists(
    st.one_of(
        st.builds(Opening, PORTS, st.just(""), st.sampled_from(PROTOCOLS)),
        st.builds(lambda ip: Opening(source=str(ip)), st.ip_addresses().filter(lambda ip: not ip.is_multicast)),
        st.builds(Opening, PORTS, st.ip_addresses().map(str), st.sampled_from(PROTOCOLS)),
        st.builds(Opening, PORTS, st.sampled_from(NETWORKS), st.sampled_from(PROTOCOLS)),
    ),
    max_size=6,
    unique=True,
)


HOSTS = {
    "firewalld": FakeFirewalld,
    "ufw": FakeUfw,
    "ufw 0.36.1": lambda: FakeUfw("0.36.1"),
    "nftables": dropping,
    "nftables, vrrp as a number": lambda: dropping(vrrp=112),
}
each_host = pytest.mark.parametrize("host", [pytest.param(make, id=name) for name, make in HOSTS.items()])


def converge(host, wanted, **options):
    plan = core.plan(host, "auto", wanted, **options)
    apply(plan.actions, host)
    return plan


@each_host
@given(first=OPENINGS, second=OPENINGS)
def test_what_an_earlier_call_has_opened_can_stay_until_a_later_one_closes_it(host, first, second):
    host = host()
    converge(host, first)
    kept = converge(host, second, keep=True)
    assert not any("delete" in str(action) or "--remove" in str(action) for action in kept.actions)
    assert core.plan(host, "auto", second, keep=True).actions == []
    assert core.plan(host, "auto", [*first, *second]).actions == []
    converge(host, second)
    assert core.plan(host, "auto", second, keep=True).actions == []


@each_host
@given(first=OPENINGS, second=OPENINGS)
def test_what_was_applied_needs_nothing_more_and_absent_restores_the_host(host, first, second):
    host = host()
    untouched = host.state()
    for wanted in (first, second):
        converge(host, wanted)
        again = core.plan(host, "auto", wanted)
        assert again.actions == []
        assert again.before == again.after
    converge(host, [])
    assert host.state() == untouched


@each_host
def test_a_plan_alone_changes_nothing(host):
    host = host()
    untouched = host.state()
    plan = core.plan(host, "auto", WANTED)
    assert plan.actions
    assert host.state() == untouched
    assert plan.openings == [
        "tcp 80 from anywhere",
        "tcp 8443 from anywhere",
        "vrrp from 10.88.0.9",
        "vrrp from fd00::9",
    ]


@each_host
@given(first=OPENINGS, second=OPENINGS)
def test_where_there_is_something_to_do_a_firewall_is_said_to_be_active(host, first, second):
    host = host()
    for wanted in (first, second, []):
        is_active = core.may_refuse(host)
        assert is_active or not converge(host, wanted).actions


def test_a_firewall_that_cannot_be_read_may_refuse_and_none_does_not():
    assert not core.may_refuse(FakeHost())
    unreadable = dropping()
    unreadable.run = lambda args, data="": (0, "no JSON", "") if args[0] == "nft" else (1, "", "")
    assert core.may_refuse(unreadable)


@pytest.mark.parametrize("manager", ["auto", "firewalld"])
def test_a_firewalld_that_runs_and_does_not_answer_is_refused(manager):
    mute = FakeHost()
    answers = {"firewall-cmd": (254, "", "Traceback\nError: no such action\n"), "systemctl": (0, "active\n", "")}
    mute.run = lambda args, data="": answers[args[0]]
    assert core.may_refuse(mute)
    with pytest.raises(FirewallError, match=r"^firewalld.service is active, .* \(Error: no such action\): restart it"):
        core.plan(mute, manager, WANTED)
    answers["systemctl"] = (3, "inactive\n", "")
    assert not firewalld.is_running(mute)


def test_without_an_active_firewall_nothing_is_done_and_said():
    plan = core.plan(FakeHost(), "auto", WANTED)
    assert (plan.manager, plan.actions) == ("none", [])
    assert plan.message == "No firewall is active; nothing to open."


@pytest.mark.parametrize("manager", core.MANAGERS)
def test_a_manager_asked_for_by_name_must_be_active(manager):
    with pytest.raises(FirewallError, match=f"^{manager} was asked for, but is not active on this host.$"):
        core.plan(FakeHost(), manager, WANTED)


def test_firewalld_opens_the_zone_of_the_interface_or_the_default_one():
    host = FakeFirewalld()
    converge(host, WANTED, interfaces=["eth0"])
    assert len(host.rules["permanent"]["internal"]) == len(host.rules["runtime"]["internal"]) == 5
    host.interface_zone = ""
    plan = converge(host, WANTED, interfaces=["eth0"])
    assert plan.before[0] == "tcp 80 from anywhere in zone internal"
    assert host.rules["runtime"]["internal"] == [host.ADMIN]
    assert host.rules["permanent"]["public"][1] == 'rule priority="1120" port port="8443" protocol="tcp" accept'


def test_firewalld_opens_the_zone_of_every_interface():
    host = FakeFirewalld()
    converge(host, WANTED, interfaces=["eth0"])
    plan = converge(host, WANTED, interfaces=["eth0", "eth1"])  # eth1 is in no zone
    assert plan.before[0] == "tcp 80 from anywhere in zone internal"
    assert plan.after[:2] == ["tcp 80 from anywhere in zone internal", "tcp 80 from anywhere in zone public"]
    assert len(host.rules["permanent"]["internal"]) == len(host.rules["permanent"]["public"]) + 1 == 5
    assert core.plan(host, "auto", WANTED, interfaces=["eth1", "eth0"]).actions == []


def test_firewalld_is_asked_seldom_and_never_reloaded():
    host = FakeFirewalld()
    converge(host, WANTED, interfaces=["eth0"])
    assert [re.sub(r"(=\S+rule).*", r"\1", call.partition(" --add")[0]) for call in host.calls] == [
        "firewall-cmd --state",
        "firewall-cmd --list-all-zones",
        "firewall-cmd --permanent --list-all-zones",
        "firewall-cmd --permanent --zone=internal",
        "firewall-cmd --zone=internal",
    ]


def test_firewalld_mends_what_is_only_permanent_or_only_at_run_time():
    host = FakeFirewalld()
    converge(host, WANTED[:2])
    host.rules["runtime"]["public"].pop(0)
    host.rules["permanent"]["public"].pop()
    plan = converge(host, WANTED[:2])
    assert plan.before == [
        "tcp 80 from anywhere from the next reload",
        "tcp 8443 from anywhere until the next reload",
    ]
    assert core.plan(host, "auto", WANTED[:2]).actions == []


def test_firewalld_2_marks_the_default_zone_in_its_list():
    zones = firewalld.parse_zones("public (default, active)\n  target: default\n  interfaces: eth0 eth1\n")
    assert (zones.default, zones.interfaces) == ("public", {"eth0": "public", "eth1": "public"})


def test_ufw_keeps_an_equal_rule_of_the_administrator_and_counts_it_as_the_opening():
    host = FakeUfw()
    untouched = host.state()
    plan = converge(host, wanted_openings([22, 2222], []))
    assert (plan.actions, plan.openings) == ([], ["tcp 22 from anywhere", "tcp 2222 from anywhere"])
    converge(host, [])
    assert host.state() == untouched


@pytest.mark.parametrize("logged", ["log", "log-all"])
def test_ufw_is_not_made_to_replace_a_denial(logged):
    host = FakeUfw()
    host.rules.append(f"ufw deny {logged} 80/tcp")
    with pytest.raises(FirewallError, match="ufw already has the rule 'deny 80/tcp'"):
        core.plan(host, "auto", WANTED)


def test_ufw_that_drops_all_ipv6_is_said_to():
    host = FakeUfw()
    host.files["/etc/default/ufw"] = "IPV6=no\n"
    with pytest.raises(FirewallError, match="drops all IPv6 here .* vrrp from fd00::9 cannot be opened"):
        core.plan(host, "auto", WANTED)


def test_ufw_before_0_36_2_gets_vrrp_into_the_filter_table_and_hands_it_over_when_upgraded():
    host = FakeUfw("0.36.1")
    before = host.files["/etc/ufw/before.rules"]
    converge(host, WANTED)
    head, _commit, table = host.files["/etc/ufw/before.rules"].partition("COMMIT\n")
    assert head == "*nat\n"
    assert table.endswith("-A ufw-before-input -s 10.88.0.9 -p 112 -j ACCEPT\n# END onprem.lb\nCOMMIT\n")
    assert host.calls[-1] == "ufw reload"
    host.version = "0.36.2"
    plan = converge(host, WANTED)
    assert plan.before == plan.after
    assert host.files["/etc/ufw/before.rules"] == before
    assert "ufw allow from 10.88.0.9 proto vrrp comment 'onprem.lb'" in host.rules


def test_nftables_puts_ours_on_top_of_the_chain_that_drops():
    host = dropping()
    converge(host, WANTED)
    assert host.show(*INPUT) == [*WANTED, "theirs", "theirs", "theirs"]


def test_nftables_takes_one_transaction():
    host = dropping()
    converge(host, WANTED)
    host.calls.clear()
    converge(host, WANTED[1:3])
    assert host.calls.count("nft -f -") == 1


def test_nftables_opens_only_chains_that_refuse_newcomers_at_large():
    reject = {"reject": {"type": "icmpx", "expr": "port-unreachable"}}
    host = accepting([match(DPORT, 8443), match(SADDR, "@a"), reject], [match(STATE, "invalid", "in"), {"drop": None}])
    plan = converge(host, WANTED)
    assert (plan.actions, plan.openings) == ([], [])
    assert plan.message == nftables.NOTHING_REFUSES


REJECT = {"reject": None}


@pytest.mark.parametrize(
    "rule",
    [
        [REJECT],
        [{"counter": {"packets": 0, "bytes": 0}}, {"xt": {"type": "target", "name": "REJECT"}}],
        [{"jump": {"target": "deny"}}],
        [match(DPORT, {"set": [22, {"range": [8000, 9000]}]}), REJECT],
        [match(DPORT, {"set": [22, 23]}, "!="), REJECT],
        [match(STATE, ["new", "untracked"], "in"), {"drop": None}],
        [match({"meta": {"key": "l4proto"}}, 112), {"drop": None}],
        [{"vmap": {"key": DPORT, "data": {"set": [[22, {"accept": None}], [80, {"goto": {"target": "deny"}}]]}}}],
    ],
)
def test_nftables_recognises_a_rule_that_refuses_at_large(rule):
    host = accepting([LO, {"accept": None}], rule, deny=[REJECT])
    converge(host, WANTED)
    assert host.show(*INPUT)[:4] == WANTED


@pytest.mark.parametrize(
    "rule",
    [
        [match({"meta": {"key": "l4proto"}}, "udp"), REJECT],
        [match(DPORT, {"set": [22, {"range": [1, 79]}]}), REJECT],
        [{"limit": {"rate": 5, "per": "second", "inv": True}}, {"drop": None}],
        [{"vmap": {"key": STATE, "data": {"set": [["invalid", {"drop": None}], ["new", {"accept": None}]]}}}],
        [{"xt": {"type": "match", "name": "conntrack"}}, {"drop": None}],
        [{"jump": {"target": "loop"}}],
    ],
)
def test_nftables_leaves_a_narrow_denial_alone(rule):
    host = accepting(rule, loop=[{"jump": {"target": "loop"}}])
    assert core.plan(host, "auto", WANTED).actions == []


def test_nftables_opens_each_family_in_its_own_table():
    host = FakeNft({(family, "filter"): {"INPUT": ("drop", [])} for family in ("ip", "ip6")}, service=False)
    plan = converge(host, WANTED)
    assert host.show("ip", "filter", "INPUT") == WANTED[:3]
    assert host.show("ip6", "filter", "INPUT") == [*WANTED[:2], WANTED[3]]
    assert plan.warnings == (nftables.NOT_LOADED,)


def test_nftables_moves_ours_above_a_refusing_rule():
    host = dropping()
    converge(host, WANTED)
    host.chains[INPUT][1].insert(0, {"expr": [match(DPORT, {"range": [8000, 9000]}), REJECT], "handle": 1})
    converge(host, WANTED)
    assert host.show(*INPUT) == [*WANTED, "theirs", "theirs", "theirs", "theirs"]


def test_nftables_keeps_one_of_each():
    host = dropping()
    converge(host, WANTED)
    rules = host.chains[INPUT][1]
    rules.insert(2, {**rules[0], "handle": 1})
    converge(host, WANTED)
    assert host.show(*INPUT) == [*WANTED, "theirs", "theirs", "theirs"]


def test_nftables_comes_back_with_the_service_and_goes_with_the_rules():
    host = dropping()
    converge(host, WANTED)
    assert host.calls[-1] == "systemctl daemon-reload"
    assert (
        "open_chain inet filter input 'insert rule inet filter input ip6 saddr fd00::9" in host.files[nftables.SCRIPT]
    )
    assert f"ExecReload=-/bin/sh {nftables.SCRIPT}\n" in host.files[nftables.DROP_IN]
    host.chains.clear()  # switched off by hand
    host.service = False
    assert core.plan(host, "auto", []).manager == "nftables"
    converge(host, [])
    assert host.files == {}


def test_nft_without_json_is_an_error_and_without_kernel_support_is_no_firewall():
    class Mute(FakeHost):
        said = "Error: JSON support not compiled-in"

        def _nft(self, _args, _data):
            return 1, "", self.said

    with pytest.raises(FirewallError, match="^nft -j -t list ruleset failed: Error: JSON support not compiled-in$"):
        core.plan(Mute(), "auto", WANTED)
    Mute.said = "Operation not supported"
    assert core.plan(Mute(), "auto", WANTED).manager == "none"


def test_a_failing_command_is_one_sentence():
    host = FakeUfw()
    actions = core.plan(host, "auto", WANTED).actions
    host._ufw = lambda *_: (1, "", "ERROR: problem\n running\n")
    with pytest.raises(FirewallError, match="^ufw allow 80/tcp comment onprem.lb failed: ERROR: problem running$"):
        apply(actions, host)


@pytest.mark.parametrize(
    ("ports", "peers", "sentence"),
    [
        ([0], [], "Port 0 is not a number from 1 to 65535."),
        (["65536/tcp"], [], "Port 65536/tcp is not a number from 1 to 65535."),
        (["-1"], [], "Port -1 is not a number from 1 to 65535."),
        (["53/icmp"], [], "Port 53/icmp has an unknown protocol: write 8443, or 8443/tcp or 8443/udp."),
        ([], ["lb2"], "VRRP peer lb2 is not an IPv4 or IPv6 address."),
        ([], ["10.0.0.0/24"], "VRRP peer 10.0.0.0/24 is not an IPv4 or IPv6 address."),
        ([], ["10.0.0.1/24"], "VRRP peer 10.0.0.1/24 is not an IPv4 or IPv6 address."),
        (
            [],
            ["224.0.0.18"],
            "VRRP peer 224.0.0.18 is not a unicast address: name the address that the peer sends from.",
        ),
    ],
)
def test_what_cannot_be_opened_is_refused_in_one_sentence(ports, peers, sentence):
    with pytest.raises(FirewallError) as refusal:
        wanted_openings(ports, peers)
    assert str(refusal.value) == sentence


def test_one_opening_in_several_spellings_is_one():
    assert wanted_openings(["80", "80/tcp", 80], ["FE80:0::1%eth0", "fe80::1"]) == [
        Opening(port=80),
        Opening(source="fe80::1"),
    ]


MACHINES = wanted_openings([6443], [], [{"port": 22623, "networks": ["10.88.0.0/24", "fd00::/64", "10.9.0.1/32"]}])


def test_a_port_may_be_for_some_networks_alone():
    assert [str(opening) for opening in MACHINES] == [
        "tcp 6443 from anywhere",
        "tcp 22623 from 10.9.0.1",
        "tcp 22623 from 10.88.0.0/24",
        "tcp 22623 from fd00::/64",
    ]
    for port in (22623, "22623/tcp"):
        assert wanted_openings([22623], [], [{"port": port, "networks": ["10.88.0.0/24"]}]) == [Opening(22623)]


def test_each_firewall_gets_the_networks_in_its_own_words():
    hosts = FakeFirewalld(), FakeUfw(), dropping()
    for host in hosts:
        converge(host, MACHINES)
    of_firewalld, of_ufw, nft = hosts
    rules = of_firewalld.rules["permanent"]["public"]
    six = 'rule priority="1120" family="ipv6" source address="fd00::/64" port port="22623" protocol="tcp" accept'
    assert six in rules and 'rule priority="1120" port port="22623" protocol="tcp" accept' not in rules
    assert "ufw allow from 10.88.0.0/24 to any port 22623 proto tcp comment 'onprem.lb'" in of_ufw.rules
    assert nft.show(*INPUT) == [*MACHINES, "theirs", "theirs", "theirs"]
    assert "inet filter input ip saddr 10.88.0.0/24 tcp dport 22623 accept" in nft.files[nftables.SCRIPT]


@each_host
def test_a_port_that_was_for_everybody_becomes_one_for_some_networks(host):
    host = host()
    converge(host, wanted_openings([6443, 22623], []))
    plan = converge(host, MACHINES)
    assert "tcp 22623 from anywhere" in plan.before
    again = core.plan(host, "auto", MACHINES)
    assert again.actions == [] and "tcp 22623 from anywhere" not in again.before


def guarded():
    """A host with the guard of the machine config server alone, as nft lists it."""
    family, table = nft_guard.TABLE.split()
    jump = [match(DPORT, nft_guard.PORT), {"jump": {"target": "machine_config"}}]
    allowed = [[match(SADDR, {"prefix": {"addr": "10.88.0.0", "len": 24}}), {"accept": None}], [{"drop": None}]]
    return FakeNft({(family, table): {"input": ("accept", [jump]), "machine_config": (None, allowed)}}, service=False)


def test_nftables_opens_nothing_in_the_guard_of_the_machine_config_server():
    """An accept there would let everybody pass, until the guard is loaded again."""
    host = guarded()
    untouched = host.state()
    for wanted in (MACHINES, wanted_openings([22623], [])):
        assert converge(host, wanted).actions == []
        assert host.state() == untouched
