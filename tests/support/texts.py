# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random texts, many of them with what some program takes for more than a character."""

from __future__ import annotations

from hypothesis import strategies as st

ODD = (
    *("\n", "\r", "\r\n", "\0", "\t", "\v", "\x1b", "\x85", "\u2028", "\u200b", "\u00a0", " ", "  ", "\\", "\\n"),
    *("#", "!", ";", " ; ", "'", '"', "`", "$", "$$", "$HOME", "${HOME}", "$_PWD", "${_INSTANCE}", "%", "%%", "%n"),
    *("%[src]", "{", "}", "[", "]", "(", ")", "<", ">", "|", "&", "*", "~", "@", "=", ",", "..", "-", "--", "\u0665"),
    *("\u00e9", "\u65e5\u672c", "\U0001f600", "x" * 300),
)
ORDINARY = tuple("abz019._-/:")


def texts(odd=ODD):
    parts = st.one_of(st.sampled_from(ORDINARY), st.sampled_from(odd), st.characters())
    return st.lists(parts, max_size=6).map("".join)


TEXT = texts()
NAME = TEXT.map(lambda text: text.replace("/", "_")[:60])  # of a file
