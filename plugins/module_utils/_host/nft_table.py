# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compares a table of nftables that is in force with a ruleset.

nft lists rules in other words than those in which they were written, and differently from version to version. So the
ruleset is loaded into a network namespace of its own as well, where nft lists it in the same words.
"""

from __future__ import annotations

from typing import Callable, List, Tuple

Run = Callable[..., Tuple[int, str, str]]  # as AnsibleModule.run_command

LIST = ("nft", "--stateless", "list", "table", "inet")
# $0 is the table's name.
LIST_ELSEWHERE = ("unshare", "--net", "sh", "-c", 'nft --file - && exec nft --stateless list table inet "$0"')


class Refused(Exception):
    """A ruleset that cannot be loaded; with a sentence."""


def in_force(run: Run, name: str) -> str:
    """Return the table as nft lists it; '' if there is none."""
    code, out, _err = run([*LIST, name])
    return out if code == 0 else ""


def wanted(run: Run, name: str, ruleset: str) -> str:
    """Return the table of a ruleset as nft would list it.

    :raises Refused: if nft refuses the ruleset, or it has no such table
    """
    return _succeed(run, [*LIST_ELSEWHERE, name], ruleset)


def load(run: Run, ruleset: str) -> None:
    """Load a ruleset, in one transaction.

    :raises Refused: if nft refuses it
    """
    _succeed(run, ["nft", "--file", "-"], ruleset)


def delete(run: Run, name: str) -> None:
    """Delete a table that is in force."""
    _succeed(run, ["nft", "delete", "table", "inet", name])


def _succeed(run: Run, command: List[str], ruleset: str = "") -> str:
    code, out, err = run(command, data=ruleset)
    if code:
        raise Refused(f"`{' '.join(command)}` failed: {err.strip() or f'exit code {code}'}")
    return out
