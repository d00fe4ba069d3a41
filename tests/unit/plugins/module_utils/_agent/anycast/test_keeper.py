# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VIPs on lo: what becomes of them with each thing that is known, or not."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast.settings import Vip
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Result
from support.anycast.hosts import ANSWERS, DOWN, DOWN_FILE, MISSING, SIX, UP, VIP

HERE, HERE6 = "192.0.2.10/32", "2001:db8::10/128"
ADDED, DELETED = f"add {HERE} to lo", f"delete {HERE} from lo"


def test_a_vip_comes_once_every_check_is_known_to_succeed(host):
    host.start()
    assert host.on_lo == set() and host.vip()["reason"] == "not_known"
    host.take(UP["answers"])
    assert host.on_lo == set()
    host.take(UP["haproxy_down"])
    assert host.on_lo == {HERE} and host.vip()["held"]


def test_while_nothing_is_known_nothing_is_added_and_what_is_there_stays(host):
    host.netlink.put(HERE6, "lo")
    host.start(VIP, SIX).let(1000)
    assert host.on_lo == {HERE6}
    assert not [line for line in host.done() if line.startswith(("add", "delete"))]


def test_what_was_there_at_the_start_goes_once_a_check_is_known_to_fail(host):
    host.netlink.put(HERE, "lo")
    host.start().take(DOWN)
    assert host.on_lo == set()


def test_the_address_goes_before_anything_else_is_done(host):
    """A router sends connections to it until it has gone."""
    host.serving(VIP, SIX)
    host.keeper.take_result(DOWN)
    done = host.done()
    assert done[:2] == [DELETED, f"delete {HERE6} from lo"] and len(done) > 2, "and in the same turn of the loop"
    assert host.on_lo == set()


@pytest.mark.parametrize("result", [MISSING, MISSING._replace(detail="empty"), MISSING._replace(up=False)])
def test_a_down_file_that_says_nothing_changes_nothing(host, result):
    host.serving().take(result)
    assert host.on_lo == {HERE} and host.vip()["wanted"] is None
    assert host.journal == ["says front: 192.0.2.10/32 stays as it is: not known: haproxy_down"]
    host.take(DOWN, result)
    assert host.on_lo == set()
    host.take(UP["haproxy_down"])
    assert host.on_lo == {HERE}


def test_a_vip_depends_on_its_own_checks_alone(host):
    host.serving(VIP, SIX).take(Result("answers", False, 0, "no answer within 2 s"))
    assert host.on_lo == {HERE6}
    assert host.vip()["detail"] == "answers: no answer within 2 s"


def test_a_result_of_a_check_that_is_gone_counts_for_nothing(host):
    host.serving().take(Result("nobody", False, 0, ""))
    assert host.on_lo == {HERE} and not host.done()


def test_the_link_of_a_check_is_looked_at_here(host):
    vip = VIP._replace(track=("haproxy_down", "uplink"))
    host.start(vip).up()
    assert host.on_lo == {HERE}
    host.netlink.link("eth0", 2, up=False)
    host.let()
    assert host.on_lo == set() and "interface eth0 is down" in host.vip()["detail"]


# -- a host that is held back


def test_a_host_that_is_held_back_has_no_vip(host):
    host.serving().hold_back()
    assert host.on_lo == set() and host.vip()["detail"] == "held back since 2026-01-01 by anna"
    host.record.unlink()
    host.let(3)
    assert host.on_lo == {HERE}


def test_one_that_was_held_back_before_it_starts_never_has_it(host):
    host.hold_back()
    host.start().up()
    assert ADDED not in host.journal


# -- others


def test_an_address_that_somebody_removes_is_back_and_he_is_said(host):
    host.serving()
    host.netlink.take_away(HERE, "lo")
    host.let()
    assert host.on_lo == {HERE} and host.keeper.report()["restored"] == 1
    assert f"says front: {HERE} is as it was: another program had removed it" in host.done()


def test_an_address_that_somebody_adds_while_nothing_serves_goes(host):
    host.serving().take(DOWN).done()
    host.netlink.put(HERE, "lo")
    host.let()
    assert host.on_lo == set()
    assert f"says front: {HERE} is as it was: another program had added it" in host.done()


def test_what_somebody_does_while_nothing_is_known_stays(host):
    host.serving().take(MISSING)
    host.netlink.take_away(HERE, "lo")
    assert host.let().on_lo == set()
    host.netlink.put(HERE, "lo")
    assert host.let().on_lo == {HERE}


def test_what_it_does_itself_is_no_work_of_others(host):
    host.serving(VIP, SIX).take(DOWN, UP["haproxy_down"], DOWN).let(10)
    assert host.keeper.report()["restored"] == 0


def test_what_it_does_itself_is_no_work_of_others_however_many_events_there_are(host, monkeypatch):
    """The kernel tells of what the daemon has done after it has done more."""
    vips = [Vip(f"v{at}", f"198.51.100.{at}/32", ("haproxy_down",)) for at in range(100)]
    everything = host.netlink.events

    def some():
        found, host.netlink.pending = host.netlink.pending[:64], host.netlink.pending[64:]
        return found

    host.serving(*vips)
    monkeypatch.setattr(host.netlink, "events", some)
    for result in (DOWN, UP["haproxy_down"], DOWN):
        host.keeper.take_result(result)
    host.let()
    assert host.on_lo == set() and host.keeper.report()["restored"] == 0 and everything() == []


def test_events_that_were_lost_are_made_good(host):
    host.serving()
    host.netlink.take_away(HERE, "lo")
    host.netlink.overrun()
    assert host.let().on_lo == {HERE}


@pytest.mark.parametrize("vip, stray, left", [(VIP, "192.0.2.10/24", HERE), (SIX, "2001:db8::10/64", HERE6)])
def test_with_another_prefix_length_it_is_another_address(host, vip, stray, left):
    """Nothing announces it, but this host would keep packets that the VIP's other hosts should get."""
    host.netlink.put(stray, "lo")
    host.start(vip)
    assert host.on_lo == {stray}
    assert host.up().on_lo == {left}
    assert host.take(DOWN).on_lo == set()


def test_the_same_address_on_another_interface_is_said_and_stays(host):
    host.serving()
    host.netlink.put("192.0.2.10/24", "eth0")
    host.let()
    assert "says front: 192.0.2.10 is on eth0 as well" in host.done() and host.vip()["elsewhere"] == ["eth0"]
    host.take(DOWN)
    assert ("192.0.2.10", 24) in {key[1:] for key in host.netlink.there}
    host.netlink.take_away("192.0.2.10/24", "eth0")
    assert host.let().vip()["elsewhere"] == []


# -- the interface and the kernel


def test_an_interface_that_comes_later_gets_the_vip_then(host):
    host.start(interface="vips").up()
    assert "says interface vips is not there" in host.done() and not host.vip()["held"]
    host.netlink.link("vips", 7)
    host.let()
    assert (7, "192.0.2.10", 32) in host.netlink.there and host.vip()["held"]
    host.netlink.unlink("vips")
    assert not host.let().vip()["held"]


def test_on_an_interface_that_is_down_an_ipv6_address_cannot_be_used_and_is_left_alone(host):
    """The kernel does not say that it is usable before the interface is up: to add it again would have no end."""
    host.netlink.link("lo", 1, up=False)
    host.start(SIX).up()
    host.netlink.put(HERE6, "lo", usable=False)
    host.done()
    assert host.let(10).done() == [] and host.vip("six")["held"] and not host.keeper.report()["interface_up"]
    host.netlink.link("lo", 1)
    host.let()
    assert f"add {HERE6} to lo" in host.done(), "somebody else has it with duplicate address detection"


def test_what_the_kernel_refuses_is_tried_again(host):
    host.netlink.refused[HERE] = errno.EPERM
    host.start().up()
    assert host.on_lo == set() and host.vip()["wanted"] and not host.vip()["held"]
    host.netlink.refused.clear()
    assert host.let(2).on_lo == {HERE}
    host.netlink.kept.add(HERE)
    host.take(DOWN)
    assert host.vip()["held"] and f"says front: {HERE} cannot be taken off lo: Operation not permitted" in host.done()
    host.netlink.kept.clear()
    assert host.let(2).on_lo == set()


# -- settings


def test_a_reload_that_drops_a_vip_takes_it_away_and_leaves_the_others(host):
    host.serving(VIP, SIX).apply(SIX)
    assert host.on_lo == {HERE6} and host.done()[0] == DELETED


def test_a_vip_that_keeps_its_address_keeps_it_under_another_name(host):
    host.serving().apply(VIP._replace(name="renamed"))
    assert host.on_lo == {HERE} and not [line for line in host.done() if line.startswith(("add", "delete"))]


def test_a_new_vip_comes_at_once_by_what_is_known(host):
    host.serving().apply(VIP, SIX)
    assert host.on_lo == {HERE, HERE6}


def test_a_check_that_changes_is_not_known_and_takes_nothing_away(host):
    host.serving().apply(VIP, checks=(DOWN_FILE, ANSWERS._replace(port=8443)))
    assert host.on_lo == {HERE} and host.vip()["wanted"] is None


def test_another_interface_gets_the_vips_and_the_first_one_loses_them(host):
    host.netlink.link("vips", 7)
    host.serving().apply(interface="vips")
    assert host.on_lo == set() and (7, "192.0.2.10", 32) in host.netlink.there


@pytest.mark.parametrize("restarted", [False, True])
def test_a_vip_moves_to_another_interface_without_a_gap_whatever_is_known(host, restarted):
    host.netlink.link("vips", 7)
    host.serving().take(MISSING).done()
    if restarted:
        host.another_process()
        host.start(interface="vips")
    else:
        host.apply(interface="vips")
    assert [line for line in host.done() if " to " in line or " from " in line] == [f"add {HERE} to vips", DELETED]
    assert host.vip()["held"]


def test_a_vip_whose_new_interface_is_not_there_leaves_the_old_one(host):
    host.serving().apply(interface="vips")
    assert host.on_lo == set() and not host.vip()["held"]


# -- ends


def test_a_stop_takes_all_vips_away_first(host):
    host.serving(VIP, SIX)
    host.keeper.give_up()
    assert host.done() == [DELETED, f"delete {HERE6} from lo"]
    assert host.keeper.held() == [] and host.loop.watched == {}


def test_a_killed_one_that_starts_again_finds_them(host):
    host.serving()
    host.another_process()
    host.start().let(1000)
    assert host.on_lo == {HERE} and ADDED not in host.journal
    assert host.up().on_lo == {HERE} and ADDED not in host.journal
    assert host.take(DOWN).on_lo == set()


def test_a_killed_one_that_starts_again_removes_what_the_file_has_lost_meanwhile(host):
    host.serving(VIP, SIX)
    host.another_process()
    host.start(SIX)
    assert host.on_lo == {HERE6}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"vips": [{"name": "x", "address": "lo"}]}', "\xff"])
def test_what_an_earlier_one_had_is_not_known_from_a_damaged_file(host, text):
    host.serving(VIP, SIX)
    (host.folder / "vips.json").write_text(text, encoding="latin-1")
    host.another_process()
    host.start(SIX)
    assert host.on_lo == {HERE, HERE6}


def test_since_counts_from_the_change(host):
    host.serving().let(100)
    before = host.vip()["since"]
    host.take(UP["answers"]).let(50)
    assert host.vip()["since"] == before
    host.take(DOWN)
    assert host.vip()["since"] > before + 100


def test_many_vips_share_one_result(host):
    vips = [Vip(f"v{at}", f"198.51.100.{at}/32", ("haproxy_down",)) for at in range(64)]
    host.serving(*vips)
    assert len(host.on_lo) == 64
    host.keeper.take_result(DOWN)
    assert [line.partition(" ")[0] for line in host.done()[:64]] == ["delete"] * 64 and host.on_lo == set()
