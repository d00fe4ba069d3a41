"""The redirect's ruleset says what it is to say and nothing else. What it does is in tests/netns/test_redirect.py."""

from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.filter.nftables import api_redirect
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import redirect as nft_redirect
from support.paths import FILTERS

VIPS = ["192.0.2.10", "2001:db8::10"]


def rules(*arguments):
    return [
        line.strip() for line in nft_redirect.ruleset(*arguments).splitlines() if "dnat" in line and "type" not in line
    ]


def test_each_vip_goes_to_itself_with_another_port():
    assert rules(VIPS, {6443: 9445}) == [
        "ip daddr 192.0.2.10 tcp dport 6443 dnat ip to 192.0.2.10:9445",
        "ip6 daddr 2001:db8::10 tcp dport 6443 dnat ip6 to [2001:db8::10]:9445",
    ]


def test_each_of_several_ports_has_its_own():
    assert rules(["192.0.2.10"], {6443: 9445, 22623: 9446}) == [
        "ip daddr 192.0.2.10 tcp dport 6443 dnat ip to 192.0.2.10:9445",
        "ip daddr 192.0.2.10 tcp dport 22623 dnat ip to 192.0.2.10:9446",
    ]


def test_the_same_vips_give_the_same_file_however_they_are_written():
    written = nft_redirect.ruleset(VIPS, {6443: 9445})
    assert nft_redirect.ruleset(["2001:DB8:0::10/64", "192.0.2.10/24", "192.0.2.10"], {"6443": "9445"}) == written


def test_what_comes_in_for_direct_return_is_left_alone_and_what_the_host_sends_is_not():
    text = nft_redirect.ruleset(VIPS, {6443: 9445}, "br-ex")
    inside, _chain, outside = text.partition("chain output")
    assert inside.count('iifname "br-ex" return') == 1 and "iifname" not in outside
    assert "iifname" not in nft_redirect.ruleset(VIPS, {6443: 9445})


def test_a_file_takes_the_old_table_away_before_it_defines_the_new_one():
    text = nft_redirect.ruleset(VIPS, {6443: 9445})
    order = [text.index(f"\n{what} {nft_redirect.TABLE}") for what in ("add table", "delete table", "table")]
    assert order == sorted(order)


def test_the_command_that_removes_it_is_told_where_one_looks_for_it():
    told = f"nft '{nft_redirect.DELETE}'"
    assert told in nft_redirect.ruleset(VIPS, {6443: 9445})
    assert told in str(yaml.safe_load((FILTERS / "api_redirect.yml").read_text()))


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((VIPS, 6443, 6443), "both 6443"),
        ((VIPS, 6443, "6443"), "both 6443"),
        ((VIPS, 0, 9445), "port is 0: a port from 1 to 65535"),
        ((VIPS, 6443, "lb"), "port is 'lb'"),
        ((VIPS, True, 9445), "port is true"),
        (([], 6443, 9445), "list of at least one address"),
        (("192.0.2.10", 6443, 9445), "list of at least one address"),
        ((None, 6443, 9445), "list of at least one address"),
        ((["192.0.2.10", "192.0.2.300"], 6443, 9445), "'192.0.2.300' is not an address"),
        ((["api.example.org"], 6443, 9445), "'api.example.org' is not an address"),
        ((["192.0.2.10; flush ruleset"], 6443, 9445), "is not an address"),
        ((["127.0.0.1"], 6443, 9445), "127.0.0.1 is not an address that a client can use"),
        ((["::"], 6443, 9445), ":: is not an address that a client can use"),
        ((["ff02::12"], 6443, 9445), "ff02::12 is not an address that a client can use"),
        ((["fe80::1%eth0"], 6443, 9445), "is not an address"),
        ((["2001:db8::1%eth0"], 6443, 9445), "is not an address"),
    ],
)
def test_what_cannot_be_redirected_is_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(AnsibleFilterError, match="^The redirect's ") as refused:
        api_redirect(*arguments)
    assert sentence in str(refused.value)


def test_the_filter_returns_the_file():
    assert (
        api_redirect(VIPS, 6443, 9445) == api_redirect(VIPS, {6443: 9445}) == nft_redirect.ruleset(VIPS, {6443: 9445})
    )
