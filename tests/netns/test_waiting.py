# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What waits and records leaves the processors to what is tested."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from support import bpf_machine, waiting
from support.netns import recorder

MACS = bytes(6) + bytes.fromhex("020000000001")


def frame(kind, protocol):
    """A frame with an IP packet of a protocol: the rest of it is zeros."""
    head = bytearray(40 if kind == recorder.IPV6 else 20)
    head[6 if kind == recorder.IPV6 else 9] = protocol
    return MACS + kind.to_bytes(2, "big") + bytes(head) + bytes(40)


FRAMES = {
    "VRRP": frame(recorder.IPV4, 112),
    "VRRP of IPv6": frame(recorder.IPV6, 112),
    "ICMPv6": frame(recorder.IPV6, 58),
    "ARP": MACS + b"\x08\x06" + bytes(28),
    "TCP": frame(recorder.IPV4, 6),
    "TCP of IPv6": frame(recorder.IPV6, 6),
    "a short one": MACS + b"\x08\x00",
}
CLAIMING = ("ICMPv6", "ARP")


@pytest.mark.parametrize("name", FRAMES)
def test_the_kernel_gives_a_recorder_what_it_reads_and_nothing_else(name):
    given = {each: bool(bpf_machine.run(each, FRAMES[name])) for each in (recorder.VRRP, recorder.CLAIMS)}
    assert given == {recorder.VRRP: recorder.carries_vrrp(FRAMES[name]), recorder.CLAIMS: name in CLAIMING}


@pytest.mark.parametrize("took", [0, 0.001, 0.01, 0.02, 1])
def test_a_wait_rests_for_longer_than_it_looks_and_sees_what_it_waits_for_soon(took, monkeypatch):
    now, rests = [0.0], []
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=rests.append))

    def looks():
        now[0] += took
        return len(rests) == 2

    assert waiting.until(looks) is True
    assert rests == [min(max(4 * took, 0.005), 0.1)] * 2
