# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a member of a play could take over, as keepalived's log says it."""

from __future__ import annotations

from chaos.members import keepalived_in_fault

LOG = """\
[NOTICE]   (17) : New worker (19) forked
Tue Nov 24 10:20:01 2026: Starting VRRP child process, pid=27
Tue Nov  3 10:20:01 2026: (VI_1) Entering BACKUP STATE (init)
Tue Nov 24 10:20:05 2026: (VI_1) Entering FAULT STATE
"""


def test_a_member_whose_instance_is_in_fault_could_not_take_over():
    assert keepalived_in_fault(LOG) == ["VI_1 is in FAULT"]


def test_a_member_whose_instance_has_come_back_could():
    assert keepalived_in_fault(LOG + "Tue Nov 24 10:20:07 2026: (VI_1) Entering BACKUP STATE\n") == []
