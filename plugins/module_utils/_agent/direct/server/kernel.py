# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The part of the kernel that a server of direct return uses, in the current network namespace."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from typing import Dict, Iterable, List, Set

from ...net.netlink import Netlink
from .. import rulesets
from .setup import Found, sha256

LOOPBACK = "lo"
SETTINGS = "/proc/sys"
TIMEOUT = 60  # seconds; a million elements take 6


class Refused(Exception):
    """It cannot be as wanted; with a sentence."""


class Kernel:
    """Raises OSError where a privilege is missing."""

    def __init__(self, nft: str) -> None:
        self._nft, self._netlink = nft, Netlink()
        self._loopback = next(link.index for link in self._netlink.links() if link.name == LOOPBACK)

    def close(self) -> None:
        self._netlink.close()

    def own(self) -> Set[str]:
        """Return the addresses of this host's other interfaces."""
        return {each.address for each in self._netlink.addresses() if each.index != self._loopback}

    def found(self, settings: Iterable[str]) -> Found:
        """Return what there is."""
        on_loopback = [each for each in self._netlink.addresses() if each.index == self._loopback]
        values = {name: self._setting(name) for name in settings}
        return Found(
            {f"{each.address}/{each.prefix}" for each in on_loopback},
            {name: value for name, value in values.items() if value},
            self.tables(),
        )

    def tables(self) -> Dict[str, str]:
        listed = {family: self._list(family) for family in rulesets.FAMILIES.values()}
        return {family: sha256(text) for family, text in listed.items() if text}

    def set(self, settings: Dict[str, str]) -> None:
        for name, value in settings.items():
            with contextlib.suppress(FileNotFoundError), open(_path(name), "w", encoding="ascii") as file:
                file.write(value)

    def check(self, ruleset: str) -> None:
        """Have nft check a file, and ask the kernel. Raises Refused."""
        self._carry_out(ruleset, "--check")

    def load(self, ruleset: str) -> None:
        """Have nft carry out a file, in one transaction. Raises Refused."""
        self._carry_out(ruleset)

    def add(self, addresses: List[str]) -> None:
        for address in addresses:
            self._netlink.adding(self._loopback, address)()

    def delete(self, addresses: List[str]) -> None:
        """Delete addresses; one that is not there is no fault."""
        for address in addresses:
            try:
                self._netlink.delete(self._loopback, address)
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:
                    raise

    def _carry_out(self, ruleset: str, *options: str) -> None:
        done = self._run(*options, "--file", "-", text=ruleset)
        if done.returncode:
            said = next(iter(done.stderr.splitlines()), f"exit code {done.returncode}")  # then it quotes the file
            raise Refused(f"{self._nft} refuses the table of second chances: {said.rstrip('.')}.")

    def _list(self, family: str) -> str:
        """Return a table as nft lists it, '' if it is not there."""
        return self._run("--stateless", "list", "table", family, rulesets.SERVER).stdout

    def _run(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [self._nft, *arguments]
        try:
            return subprocess.run(command, input=text, text=True, capture_output=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            raise Refused(f"{self._nft} has not ended within {TIMEOUT} s.") from None

    @staticmethod
    def _setting(name: str) -> str:
        try:
            with open(_path(name), encoding="ascii") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""


def _path(name: str) -> str:
    return os.path.join(SETTINGS, name)
