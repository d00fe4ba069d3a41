# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A password counts with all its eight characters: on the wire, and where it is compared."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet

OURS = packet.Advertisement(2, 51, 100, packet.SECOND, ("192.0.2.100",), packet.PASSWORD, b"mellon78")
ENDS = ("192.0.2.1", packet.GROUP)


def test_all_eight_are_sent_and_read():
    assert packet.decode(packet.encode(OURS, *ENDS), *ENDS).auth_pass == b"mellon78"


@pytest.mark.parametrize("theirs", [b"mellon79", b"mellon7", b"nellon78", b""])
def test_one_that_differs_in_a_single_character_is_not_ours(theirs):
    received = packet.decode(packet.encode(OURS._replace(auth_pass=theirs), *ENDS), *ENDS)
    assert packet.mismatch(received, OURS).reason == packet.AUTHENTICATION
    assert packet.mismatch(OURS, OURS) is None
