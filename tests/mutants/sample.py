# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which breaks are tried: a sample that a seed determines, of Python, of task lists and of playbooks."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

from support import mirrors
from support.paths import ROOT

from . import python_breaks, yaml_breaks

YAML_SHARE = 0.25  # of the breaks: there is less of it, and it is guarded less
UNIT = Path("tests/unit")
SHOWN = 150  # characters of what was, and of what is instead


class Mutant(NamedTuple):
    """One break of one file."""

    path: str  # below the checkout
    line: int
    text: str  # what the file has then
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


def draw(count: int, seed: int, root: Path = ROOT) -> List[Mutant]:
    """Return so many different breaks. A file is drawn as often as it is long."""
    dice = random.Random(seed)
    kinds = {is_yaml: _weighted(root, files(root, is_yaml)) for is_yaml in (True, False)}
    breaks = functools.lru_cache(maxsize=None)(functools.partial(_breaks_of, root))
    found: Dict[Tuple[str, str], Mutant] = {}
    for _try in range(100 * count):
        if len(found) == count:
            break
        paths, sizes = kinds[dice.random() < YAML_SHARE]
        (path,) = dice.choices(paths, sizes)
        known = breaks(path)
        if known:
            mutant = _mutant(root, path, dice.choice(known[dice.choice(sorted(known))]))
            if mutant.what:
                found.setdefault((path, mutant.text), mutant)
    return list(found.values())


def files(root: Path, is_yaml: bool) -> List[str]:
    """Return the files that may be broken, as paths below the checkout."""
    if is_yaml:
        return mirrors.mirrored()
    return sorted(
        str(file.relative_to(root)) for file in (root / "plugins").rglob("*.py") if file.name != "__init__.py"
    )


def _weighted(root: Path, paths: List[str]) -> Tuple[List[str], List[int]]:
    return paths, [(root / path).stat().st_size for path in paths]


def _module(path: str) -> Any:
    return python_breaks if path.endswith(".py") else yaml_breaks


def _breaks_of(root: Path, path: str) -> Dict[str, List[Any]]:
    found: Dict[str, List[Any]] = _module(path).breaks_of((root / path).read_text())
    return found


def _mutant(root: Path, path: str, one: Any) -> Mutant:
    before = (root / path).read_text()
    after = _module(path).broken(before, one)
    line, what = difference(before, after)
    return Mutant(path, line, after, what)


def difference(before: str, after: str) -> Tuple[int, str]:
    """Return the number of the first line that differs, and what became of it; '' if none differs."""
    old, new = before.splitlines(), after.splitlines()
    at = next((at for at, (one, other) in enumerate(zip([*old, None], [*new, None])) if one != other), None)
    if at is None or old == new:
        return 0, ""
    rest = len(old) - at
    kept = next(
        kept for kept in range(rest + 1) if kept == rest or old[len(old) - 1 - kept :] != new[len(new) - 1 - kept :]
    )
    gone, came = (" ".join(" ".join(lines[at : len(lines) - kept]).split()) for lines in (old, new))
    return at + 1, f"{_shortened(gone)} -> {_shortened(came or 'nothing')}"


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def stages(path: str, root: Path = ROOT) -> List[List[str]]:
    """Return the tests that mirror a file, in the order in which they run: those of its name, then their folder."""
    if path.endswith(".yml"):
        tests = mirrors.tests_of(path)
        return [tests] if tests else []
    mirror = UNIT / Path(path).with_suffix("")
    folder = mirror.parent
    while not any((root / folder).glob("test_*.py")):
        folder = folder.parent
    name = mirror.name.strip("_")
    own = sorted((root / mirror.parent).glob(f"test_{name}.py")) + sorted(
        (root / mirror.parent).glob(f"test_{name}_*.py")
    )
    return [[str(file.relative_to(root)) for file in own], [str(folder)]] if own else [[str(folder)]]
