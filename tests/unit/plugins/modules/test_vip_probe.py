# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module vip_probe: what is asked of it and said by it. How it probes: test_prober; on a link: tests/netns."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import prober
from ansible_collections.onprem.lb.plugins.module_utils._host.link import neighbours
from ansible_collections.onprem.lb.plugins.modules import vip_probe
from support.modules import refusal, run
from support.programs import Programs

VIP = "192.0.2.10"
GIVEN = {"address": VIP, "port": 443, "members": [{"name": "lb1", "macs": ["02:00:00:00:00:0A"]}]}
ROUTE = {"ip": '[{"dev": "eth0"}]'}
ROUTED = {"ip": '[{"dev": "eth0", "gateway": "192.0.2.254"}]'}

BEHIND = "it is not on a link of this host, but behind the router 192.0.2.254"


class Neighbours:
    def __init__(self, interface, version):
        self.interface, self.version, self.closed = interface, version, False

    def close(self):
        self.closed = True


@pytest.fixture
def world(monkeypatch):
    """Keeps what was probed, and by whom who holds the VIP was to be asked."""
    kept = {}

    def probe(settings, holders):
        kept.update(settings=settings, holders=holders)
        return {"tried": 7}

    monkeypatch.setattr(prober, "probe", probe)
    monkeypatch.setattr(neighbours, "NeighbourProber", Neighbours)
    return kept


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({}, "missing required arguments: address, port"),
        ({**GIVEN, "port": "https"}, "argument 'port' is of type str"),
        ({**GIVEN, "members": [{"name": "lb1"}]}, "missing required arguments: macs found in members"),
        ({**GIVEN, "address": "vip.example"}, "vip.example is not an IP address."),
        ({**GIVEN, "interval_ms": 0}, "interval_ms and timeout_ms must be at least 1."),
        ({**GIVEN, "until": {"holder": "lb9"}}, "lb9 is to hold the address, but it is not one of the members"),
        ({**GIVEN, "settle": {"for": 1}}, "module: settle.for. Supported parameters include"),
        ({**GIVEN, "send": "x", "tls": True}, "parameters are mutually exclusive: send|tls"),
        ({**GIVEN, "seconds": 1}, "module: seconds. Supported parameters include"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_probed(world, given, sentence):
    assert sentence in refusal(vip_probe, given) and world == {}


@pytest.mark.parametrize("check", [True, False])
def test_the_address_is_probed_and_its_holder_asked_for_in_both_modes(world, check):
    given = {**GIVEN, "duration": 2, "send": "x", "until": {"minimum": 1.5, "holder": "lb1", "path": "/run/done"}}
    found = run(vip_probe, given, Programs(ROUTE), check=check)
    assert (found["changed"], found["reason"], found["tried"]) == (False, "", 7)
    settings, holders = world["settings"], world["holders"]
    assert (settings.address, settings.port, settings.duration_ms, settings.send) == (VIP, 443, 2000, b"x")
    assert settings.names == {"02:00:00:00:00:0a": "lb1"} and settings.settle is None
    assert settings.until == prober.Goal(holder="lb1", quiet_ms=500, minimum_ms=1500, path="/run/done")
    assert (holders.interface, holders.version, holders.closed) == ("eth0", 4, True)


@pytest.mark.parametrize("name", ["", "api.example"])
def test_tls_begins_with_a_client_hello_that_names_the_server(world, name):
    run(vip_probe, {**GIVEN, "tls": True, **({"server_name": name} if name else {}), "gateway_errors_fail": True})
    sent = world["settings"].send
    assert (sent[0], name.encode() in sent, b"api.example" in sent) == (0x16, True, bool(name))
    assert world["settings"].gateway_errors_fail and world["settings"].tls


def test_by_default_nothing_is_sent_and_any_answer_counts(world):
    run(vip_probe, GIVEN)
    assert (world["settings"].send, world["settings"].tls, world["settings"].gateway_errors_fail) == (b"", False, False)


@pytest.mark.parametrize(
    "programs, reason, router",
    [
        ({}, f"Nobody can be asked who holds {VIP}: the command ip is missing (package iproute2).", ""),
        (ROUTED, f"Nobody can be asked who holds {VIP}: {BEHIND}.", "192.0.2.254"),
    ],
)
def test_without_neighbour_probes_the_reason_is_returned_and_the_address_still_probed(world, programs, reason, router):
    found = run(vip_probe, GIVEN, Programs(programs))
    assert found["router"] == router
    assert (found["reason"], found["tried"]) == (reason, 7) and world["holders"] is None


@pytest.mark.parametrize(
    "error, reason",
    [
        (PermissionError(), f"To ask who holds {VIP} takes root, or CAP_NET_RAW."),
        (OSError("no such device"), f"Nobody can be asked on eth9 who holds {VIP}: no such device."),
    ],
)
def test_without_raw_sockets_the_probe_says_so_and_does_not_wait_for_a_holder(world, monkeypatch, error, reason):
    def refuse(_interface, _version):
        raise error

    monkeypatch.setattr(neighbours, "NeighbourProber", refuse)
    assert run(vip_probe, {**GIVEN, "interface": "eth9"})["reason"] == reason
    world.clear()
    said = refusal(vip_probe, {**GIVEN, "interface": "eth9", "settle": {"holder": "lb1"}})
    assert said == f"{reason} So it cannot be waited for that lb1 does." and world == {}


def test_an_address_that_does_not_settle_fails_in_a_sentence_and_the_asker_is_closed(world, monkeypatch):
    def probe(settings, holders):
        world["holders"] = holders
        raise prober.NotSettled(f"{VIP} port 443 did not settle within {settings.settle_limit_ms / 1000:g} s.")

    monkeypatch.setattr(prober, "probe", probe)
    said = refusal(vip_probe, {**GIVEN, "settle": {"limit": 4}}, programs=Programs(ROUTE))
    assert said == f"{VIP} port 443 did not settle within 4 s." and world["holders"].closed
