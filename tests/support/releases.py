# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the last release rendered, as `make release` recorded it, and which differences from it the changelog tells of.

`changelogs/differences.yml` names them, by fragment: ``haproxy.cfg - defaults > timeout check`` is a file of
`rendered.render` and the beginning of a line in it. A ``*`` stands for anything.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

import yaml

from support import rendered, variable_tables
from support.paths import ROLES, ROOT

FOLDER = ROOT / "tests" / "released"
CHANGELOGS = ROOT / "changelogs"
TOLD = CHANGELOGS / "differences.yml"
PRODUCT = ("playbooks", "plugins", "roles")


class Release(NamedTuple):
    """A release.

    :ivar product: the checksum of what it consisted of
    :ivar variables: the default of each variable
    :ivar cases: what it rendered of each case
    """

    version: str
    product: str
    variables: Dict[str, Any]
    cases: List[Tuple[rendered.Case, rendered.Lines]]


class Difference(NamedTuple):
    """A line that one of two releases has in a file, and the other one not."""

    file: str
    line: str


def version() -> str:
    """Return the version of this tree."""
    found: str = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
    return found


def product(root: Path = ROOT) -> str:
    """Return a checksum of what users get that does something."""
    found = hashlib.sha256()
    for path in sorted(path for part in PRODUCT for path in (root / part).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            found.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def variables() -> Dict[str, Any]:
    """Return each variable of this tree's roles with its default."""
    roles = sorted(path.parents[1].name for path in ROLES.glob("*/meta/argument_specs.yml"))
    return {name: about.get("default") for role in roles for name, about in variable_tables.options(role).items()}


def record() -> None:
    """Record what this tree renders in place of what the last release did: there is no difference to tell of then."""
    write(Release(version(), product(), variables(), [(case, rendered.render(case)) for case in rendered.cases()]))
    comment = [line for line in TOLD.read_text().splitlines() if line.startswith(("---", "#"))]
    TOLD.write_text("\n".join([*comment, "{}", ""]))


def write(release: Release) -> None:
    text = json.dumps({**release._asdict(), "cases": [(case._asdict(), lines) for case, lines in release.cases]})
    for old in FOLDER.iterdir():
        old.unlink()
    (FOLDER / f"{release.version}.json.xz").write_bytes(lzma.compress(text.encode(), preset=9))


def last() -> Release:
    """Return the last release."""
    (path,) = FOLDER.iterdir()
    found = json.loads(lzma.decompress(path.read_bytes()))
    return Release(**{**found, "cases": [(rendered.Case(**case), lines) for case, lines in found["cases"]]})


def differences(release: Release) -> Dict[Difference, str]:
    """Return what this tree renders otherwise than a release, each with the first case in which it does."""
    found: Dict[Difference, str] = {}
    for case, then in release.cases:
        now = rendered.render(case)
        for name in {**then, **now}:
            for line in _changed(then.get(name, []), now.get(name, [])):
                found.setdefault(Difference(name.split()[-1], line), case.name)
    return found


def _changed(then: Iterable[str], now: Iterable[str]) -> Iterator[str]:
    was, is_now = Counter(then), Counter(now)
    yield from (was - is_now) + (is_now - was)


def told() -> Dict[str, List[str]]:
    """Return the differences that the changelog tells of, by fragment."""
    return yaml.safe_load(TOLD.read_text()) or {}


def names(entry: str, difference: Difference) -> bool:
    """Return whether an entry of that file names a difference."""
    return fnmatch.fnmatchcase(f"{difference.file} - {difference.line}", f"{entry}*")
