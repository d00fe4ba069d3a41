# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The states of packages in dpkg's terms, and what apt makes of them. Pure.

To rpm a package is installed or not. dnf's excludes and version locks never concern an installed package; of a missing
one dnf is asked (`dnf`).
"""

from __future__ import annotations

from typing import Collection, Dict, Iterable, List, NamedTuple

# Each prints "NAME SELECTION FLAG STATUS" of a package that it knows, and another line, or none, of any other.
QUERIES = {
    "dpkg-query": ["--show", "--showformat", "${Package} ${Status}\\n"],
    "rpm": ["--query", "--queryformat", "%{NAME} install ok installed\\n"],
}
FLAGS = ("ok", "reinstreq")
# With triggers awaited or pending a package is configured; the next transaction of apt processes the triggers.
CONFIGURED = ("installed", "triggers-awaited", "triggers-pending")
# apt configures these in its next transaction, whatever that installs, and fetches nothing for them.
UNPACKED = ("unpacked", "half-configured")
GONE = ("not-installed", "config-files")


class Package(NamedTuple):
    """A package's selection, flag and status, see dpkg(1)."""

    selection: str = "unknown"  # what is wanted: install, hold, deinstall or purge
    flag: str = "ok"
    status: str = "not-installed"

    @property
    def is_installed(self) -> bool:
        return self.status in CONFIGURED

    @property
    def is_held(self) -> bool:
        return self.selection == "hold"

    @property
    def must_be_fetched(self) -> bool:
        return not self.is_installed and self.status not in UNPACKED

    @property
    def must_be_reinstalled(self) -> bool:
        """Whether dpkg was interrupted while it unpacked the package, which it does not repair by itself."""
        return self.status == "half-installed"


class Packages(NamedTuple):
    """Some packages, by their names."""

    states: Dict[str, Package]
    hindrance: str = ""  # why apt would refuse to install or remove anything; see `dpkg`

    def of(self, names: Collection[str]) -> Packages:
        """Return some of them."""
        return self._replace(states={name: package for name, package in self.states.items() if name in names})

    @property
    def missing(self) -> List[str]:
        return [name for name, package in self.states.items() if not package.is_installed]

    @property
    def to_fetch(self) -> List[str]:
        return [name for name, package in self.states.items() if package.must_be_fetched]

    @property
    def uninstallable(self) -> Dict[str, str]:
        """For each missing package that apt would not install, a sentence with the reason and the mend."""
        found = {name: self._why_not_installed(name) for name in self.missing}
        return {name: sentence for name, sentence in found.items() if sentence}

    @property
    def unremovable(self) -> Dict[str, str]:
        """For each package that is there and apt would not remove, a sentence with the reason and the mend."""
        there = [name for name, package in self.states.items() if package.status not in GONE]
        found = {name: self._why_not_removed(name) for name in there}
        return {name: sentence for name, sentence in found.items() if sentence}

    def _why_not_installed(self, name: str) -> str:
        package = self.states[name]
        if self.hindrance:
            return self.hindrance
        if package.must_be_reinstalled:
            return f"{name} is half-installed, because dpkg was interrupted: run `apt-get install --reinstall {name}`."
        if package.is_held and package.must_be_fetched:
            return f"{name} is not installed and on hold, so that apt refuses it: run `apt-mark unhold {name}`."
        return ""

    def _why_not_removed(self, name: str) -> str:
        if self.hindrance:
            return self.hindrance
        if self.states[name].is_held:
            return f"{name} is on hold, so that apt refuses to remove it: run `apt-mark unhold {name}`."
        return ""


def read(wanted: Iterable[str], outputs: Iterable[str]) -> Packages:
    """Read what the programs of QUERIES print.

    A package that is there for several architectures has a line for each of them: it is installed if one of them is.
    """
    states = {name: Package() for name in wanted}
    for output in outputs:
        for words in map(str.split, output.splitlines()):
            if len(words) == 4 and words[2] in FLAGS and not states.get(words[0], Package()).is_installed:
                states[words[0]] = Package(*words[1:])
    return Packages(states)
