# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which packages of a member a maintenance updates, in the words of the host's package manager. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ..._agent.config.schema import Faults

APT = "apt"
ABSENT = "package {} is not installed"  # of rpm, without a translation
UNKNOWN = (
    "rpm does not say whether {names} is installed, so its version cannot be chosen: {why}. Try rpm --query {names} "
    "there, mend what it says, and run this again."
)


class Updates(NamedTuple):
    """What to update.

    :ivar newest: packages that get their newest version
    :ivar exact: those that get another, with it
    :ivar asked: those of which rpm has to say first whether they are installed: dnf would install them
    """

    faults: Faults
    newest: List[str]
    exact: List[str]
    asked: List[str]


def of(packages: Sequence[str], manager: str, answer: Mapping[str, Any]) -> Updates:
    """Return what to update.

    :param packages: each as ``NAME`` or ``NAME=VERSION``
    :param answer: what the command that asks rpm has returned; nothing before that
    """
    newest = [each for each in packages if "=" not in each]
    versions: Dict[str, str] = dict(each.split("=", 1) for each in packages if "=" in each)
    if manager == APT:
        return Updates([], newest, [f"{name}={version}" for name, version in versions.items()], [])
    said = answer.get("stdout_lines", [])
    wrong = _wrong(versions, answer) if answer else ""
    exact = [f"{name}-{version}" for name, version in versions.items() if name in said]
    return Updates([wrong] if wrong else [], newest, [] if wrong else exact, list(versions))


def _wrong(names: Mapping[str, str], answer: Mapping[str, Any]) -> str:
    """Return why an answer of rpm does not count; '' if it does. Its exit code is how many packages are missing."""
    said, errors = answer.get("stdout_lines", []), answer.get("stderr_lines", [])
    open_ones = [name for name in names if not {name, ABSENT.format(name)} & {*said}]
    if any(line.startswith("error:") for line in errors):
        open_ones = list(names)  # of a database that it cannot read it says that nothing is installed
    why = next(iter([*errors, *said]), str(answer.get("msg", "no answer")))
    return UNKNOWN.format(names=" ".join(open_ones), why=why.rstrip(".")) if open_ones else ""
