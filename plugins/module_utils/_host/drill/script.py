# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failure is made of."""

from __future__ import annotations

from typing import NamedTuple, Sequence


class Refused(Exception):
    """The event cannot be injected here; the text is one sentence that says why."""


class Script(NamedTuple):
    """A failure: the units that it needs, the command that injects it, and the one that reverts it (or nothing)."""

    units: Sequence[str]
    inject: str
    revert: str
    rules: str = ""  # of nft, which the injection loads
    needs: str = "Linux with the netdev egress hook (5.16 or later)"  # what the rules need
    boots: bool = False  # whether it boots the host, which then has to start the units


def first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else "nothing"
