# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a member that a switchover holds back starts its router by itself, and when it does not."""

from __future__ import annotations

import json
import math

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import records
from ansible_collections.onprem.lb.plugins.module_utils._host.link import sniffer
from ansible_collections.onprem.lb.plugins.module_utils._host.read import held_back
from ansible_collections.onprem.lb.plugins.module_utils._host.states import fallback, snapshot, undo, undoing
from ansible_collections.onprem.lb.plugins.module_utils._shared.held_back import MAINTENANCE, PATHS, SWITCHOVER
from support.states import CONFIGS, INSTANCE, Systemd, native

ROUTERS = {"keepalived": "keepalived.service", "agent": "onprem-lb-vrrp.service"}
ELSEWHERE = {**INSTANCE, "name": "other", "interface": "eth1", "vrid": 52, "addresses": ["192.0.2.20/24"]}
SECOND = {**INSTANCE, "name": "second", "vrid": 53, "addresses": ["192.0.2.30/24"]}
LOOK_S = 3.0
FREE = undoing.Seen([], {})
STEPS = math.ceil(
    2 * undoing.settle([INSTANCE]) / 1.5
)  # looks after which nobody can have held it: each listens for 1.5 s
NEVER = 5 * STEPS


def advertised(*instances, source="192.0.2.12"):
    return undoing.Seen(
        [
            {
                **{key: each[key] for key in ("interface", "vrid")},
                "family": 4,
                "source": source,
                "addresses": [each["addresses"][0].partition("/")[0]],
            }
            for each in instances
        ],
        {},
    )


ANSWERED = undoing.Seen([], {"192.0.2.10": ["02:00:00:00:00:09"]})


class Member:
    """A member that is held back; it is looked at with what the test shows, one look every 3 s."""

    def __init__(self, monkeypatch, instances=(INSTANCE,), router="keepalived.service", enabled=True):
        self.systemd, self.router, self.enabled = Systemd(), router, enabled
        self.instances, self.now, self.said, self.forgotten = list(instances), 0.0, [], []
        self.record, self.armed = {"during": SWITCHOVER}, False
        self.after = {}  # by the number of a look: what happens after it
        self.looked = 0
        monkeypatch.setattr(snapshot, "take", lambda *_given: self._taken())
        monkeypatch.setattr(held_back, "in_force", lambda _reader: self.record)
        monkeypatch.setattr(records, "is_armed", lambda: self.armed)
        monkeypatch.setattr(records, "forget", self.forgotten.append)
        monkeypatch.setattr(fallback.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(fallback.time, "sleep", lambda _seconds: self._passes())

    def _taken(self):
        units = {self.router: snapshot.Unit(self.systemd.active.get(self.router, False), self.enabled)}
        return native()._replace(units=units, instances=self.instances)

    def _passes(self):
        self.now += LOOK_S
        self.looked += 1
        self.after.get(self.looked, lambda: None)()
        if self.looked >= NEVER:
            self.program.ends = True

    def run_command(self, command, **options):
        return self.systemd.run_command(command, **options)

    def get_bin_path(self, _name):
        return ""

    def waits(self, *shown):
        """Let it look; the last thing that is shown stays. Return after how many looks its router has started."""

        def look(_instances):
            found = shown[min(self.looked, len(shown) - 1)]
            self._passes()
            if isinstance(found, Exception):
                raise found
            return found

        self.program = fallback.Fallback(self, CONFIGS, look, self.said.append)
        self.program.go()
        return self.looked if self.systemd.asked == [f"systemctl start {self.router}"] else None


@pytest.fixture
def member(monkeypatch):
    return lambda **given: Member(monkeypatch, **given)


@pytest.mark.parametrize("router", ROUTERS.values(), ids=ROUTERS)
def test_it_starts_once_nobody_has_held_a_vip_for_longer_than_any_router_waits(member, router):
    one = member(router=router)
    assert one.waits(FREE) == STEPS and one.forgotten == [PATHS[SWITCHOVER]]
    assert one.said[-1] == "Nobody holds its VIPs: it starts."


@pytest.mark.parametrize("seen", [advertised(INSTANCE), ANSWERED], ids=["advertised", "answered"])
def test_it_never_starts_while_another_one_advertises_or_answers(member, seen):
    assert member().waits(seen) is None


@pytest.mark.parametrize(
    ("router", "looks"),
    [({}, None), ({"vrid": 99}, STEPS), ({"interface": "eth9"}, STEPS)],
    ids=["its_virtual_router", "another_vrid", "another_link"],
)
def test_it_never_starts_beside_its_own_virtual_router_whose_vips_have_changed(member, router, looks):
    one = member()
    assert one.waits(advertised({**INSTANCE, "addresses": ["192.0.2.99/24"], **router})) == looks
    if looks is None:
        assert one.said == [
            f"The router stays stopped: VRID {INSTANCE['vrid']} is used by 192.0.2.12, with other VIPs."
        ]


def test_it_never_starts_with_settings_that_a_run_without_an_undo_has_written(member):
    one = member()
    one.after[2] = lambda: setattr(one, "instances", [{**INSTANCE, "auth_pass": "another"}])
    assert one.waits(FREE) is None and "has changed its settings" in one.said[-1]


def test_settings_that_an_undo_or_a_proved_run_has_left_count_from_then_on(member):
    one = member()
    one.after = {
        2: lambda: (setattr(one, "armed", True), setattr(one, "instances", [{**INSTANCE, "auth_pass": "another"}])),
        3: lambda: setattr(one, "armed", False),
    }
    assert one.waits(FREE) == 3 + STEPS


def test_a_host_that_is_late_counts_as_silence_what_it_has_listened_to(member):
    one = member()
    one.after = dict.fromkeys(range(1, STEPS), lambda: setattr(one, "now", one.now + 1000))
    assert one.waits(FREE) == STEPS


@pytest.mark.parametrize("seen", [advertised(INSTANCE), ANSWERED], ids=["advertised", "answered"])
def test_whoever_is_heard_begins_the_wait_anew(member, seen):
    silent = [FREE] * (STEPS - 1)
    assert member().waits(*silent, seen, FREE) == len(silent) + 1 + STEPS


@pytest.mark.parametrize("instances", [(INSTANCE, SECOND), (SECOND, INSTANCE)])
def test_of_several_vips_on_a_link_one_without_a_holder_is_enough(member, instances):
    assert member(instances=instances).waits(advertised(SECOND)) == STEPS
    assert member(instances=instances).waits(advertised(*instances)) is None


def test_a_link_that_alone_is_silent_may_be_this_hosts_own_fault(member):
    one = member(instances=[ELSEWHERE, INSTANCE])
    assert one.waits(advertised(INSTANCE)) is None and "eth1 alone is silent" in one.said[-1]
    assert member(instances=[INSTANCE, ELSEWHERE]).waits(FREE) == STEPS


@pytest.mark.parametrize("error", [OSError("no such device"), sniffer.CannotListen("Interface eth0 is down.")])
def test_a_link_that_cannot_be_watched_keeps_it_stopped_and_is_said(member, error):
    one = member()
    assert one.waits(error) is None and "the link cannot be watched" in one.said[-1]
    assert member().waits(*[FREE] * (STEPS - 1), error, FREE) == STEPS - 1 + 2 + STEPS


def test_an_interface_without_a_carrier_is_not_watched(monkeypatch):
    monkeypatch.setattr(undo, "look", lambda _instances: FREE)
    for flags, good in ((0x41, True), (0x1, False), (0x40, False), (0, False)):
        monkeypatch.setattr(sniffer.has_carrier, "__defaults__", (lambda _interface, found=flags: found,))
        if good:
            assert fallback.look([INSTANCE]) == FREE
        else:
            with pytest.raises(sniffer.CannotListen):
                fallback.look([INSTANCE])


def test_the_carrier_of_a_link_that_only_vrrp_has_is_not_needed(monkeypatch):
    """It is a cable, and the other host is off: otherwise nobody would ever hold the VIPs again."""
    monkeypatch.setattr(undo, "look", lambda _instances: FREE)
    flags = {"eth0": 0x41, "eth1": 0x1}
    monkeypatch.setattr(sniffer.has_carrier, "__defaults__", (flags.__getitem__,))
    apart = {**INSTANCE, "interface": "eth1", "addresses": ["192.0.2.10/32 dev eth0"]}
    assert fallback.look([apart]) == FREE
    with pytest.raises(sniffer.CannotListen):
        fallback.look([{**apart, "addresses": ["192.0.2.10/32"]}])


@pytest.mark.parametrize("record", [{}, {"during": MAINTENANCE}], ids=["none", "maintenance"])
def test_it_ends_when_the_switchover_does_and_a_maintenance_starts_nothing(member, record):
    one = member()
    one.after[STEPS - 1] = lambda: setattr(one, "record", record)
    assert one.waits(FREE) is None and one.looked == STEPS - 1


def test_while_a_run_changes_this_member_or_it_returns_nothing_starts(member):
    one = member()
    one.armed = True
    assert one.waits(FREE) is None
    other = member()
    other.after = {2: lambda: setattr(other, "armed", True), 3: lambda: setattr(other, "armed", False)}
    assert other.waits(FREE) == 3 + STEPS


@pytest.mark.parametrize("given", [{"enabled": False}, {"instances": []}])
def test_a_router_that_is_disabled_or_whose_vips_are_not_known_stays_stopped(member, given):
    one = member(**given)
    assert one.waits(FREE) is None and one.forgotten == [] and one.looked == NEVER


def test_a_router_that_does_not_start_is_said_and_tried_again(member):
    one = member()
    one.systemd.fails = {"systemctl start": "no"}
    one.waits(FREE)
    assert len(one.systemd.asked) > 1 and "keepalived.service does not start." in one.said and one.forgotten == []


def test_it_begins_before_the_router_stops_and_ends_when_that_runs_again(member):
    one = member()
    one.systemd.active[one.router] = True
    one.after[4] = lambda: one.systemd.active.update({one.router: False})
    assert one.waits(FREE) == 4 + STEPS
    again = member()
    again.after[2] = lambda: again.systemd.active.update({again.router: True})
    assert again.waits(FREE) is None and again.looked == 2


def test_a_switchover_that_has_not_stopped_the_router_leaves_nothing_behind(member):
    one = member()
    one.systemd.active[one.router] = True
    assert one.waits(FREE) is None and one.looked == fallback.STOPS_S / LOOK_S


def test_the_program_reads_where_the_configurations_are(monkeypatch):
    found = []
    monkeypatch.setattr(fallback.sys, "argv", ["fallback.pyz", json.dumps(CONFIGS)])
    monkeypatch.setattr(fallback.signal, "signal", lambda *_given: None)
    monkeypatch.setattr(fallback.Fallback, "go", lambda program: found.append(program._configs))
    assert fallback.main() == 0 and found == [CONFIGS]
