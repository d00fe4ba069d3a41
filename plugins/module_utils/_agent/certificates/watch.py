# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Decides when haproxy is to load its certificates again. Pure: what a host has is asked of ``Host``.

It knows what haproxy has loaded from the record that haproxy's unit writes. So it does nothing where haproxy has the
files as they are, as after a run, and nothing where it cannot tell, or where haproxy's configuration has changed as
well: whoever has changed that has it loaded.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

CHANGED = "Nothing is reloaded: haproxy has not loaded its configuration as it is, or nobody knows what it has loaded."
NOT_LOADED = "A reload was tried, and haproxy has not loaded the certificates as they are."
REFUSED = "haproxy refuses its configuration with the changed certificates, and goes on with those of before:"
NOT_RELOADED = "haproxy has not been reloaded with the changed certificates:"
RELOADED = "haproxy has loaded the certificates that have changed."

Files = Mapping[str, str]  # the SHA-256 of each, by path


class Loaded(NamedTuple):
    """What haproxy has loaded.

    :ivar config: the SHA-256 of its configuration
    :ivar files: the certificates' files
    """

    config: str
    files: Files


class Host:
    """What is asked of a host, and what it is told."""

    def files(self) -> Files:
        """Return the certificates' files, those beside them, and those in folders."""
        raise NotImplementedError

    def loaded(self) -> Optional[Loaded]:
        """Return what haproxy has loaded; None where nobody knows."""
        raise NotImplementedError

    def config(self) -> str:
        """Return the SHA-256 of haproxy's configuration."""
        raise NotImplementedError

    def serves(self) -> bool:
        """Return whether haproxy runs."""
        raise NotImplementedError

    def refusal(self) -> str:
        """Return why haproxy would not load its configuration; '' if it would."""
        raise NotImplementedError

    def reload(self) -> str:
        """Reload haproxy; return why that was not possible, '' if it was."""
        raise NotImplementedError

    def says(self, sentence: str) -> None:
        """Log that haproxy has been reloaded."""
        raise NotImplementedError

    def warns(self, sentence: str) -> None:
        """Log what is wrong."""
        raise NotImplementedError


class Watch:
    """Looks again and again. It acts once nothing has changed since the last look: a renewal may write several files.

    What is wrong is said once, until the files change again. A reload that had no effect is not repeated.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._seen: Optional[Files] = None
        self._tried: Optional[Files] = None
        self._said = ""

    def look(self) -> None:
        before, self._seen = self._seen, self._host.files()
        loaded = self._host.loaded()
        if self._seen != before:
            self._said = ""
        elif loaded and loaded.files == self._seen:
            self._tried, self._said = None, ""
        elif self._host.serves():
            self._load(loaded)

    def _load(self, loaded: Optional[Loaded]) -> None:
        if not loaded or loaded.config != self._host.config():
            return self._warn(CHANGED)
        if self._seen == self._tried:
            return self._warn(NOT_LOADED)
        refusal = self._host.refusal()
        if refusal:
            return self._warn(REFUSED, refusal)
        self._tried = self._seen
        fault = self._host.reload()
        return self._warn(NOT_RELOADED, fault) if fault else self._host.says(RELOADED)

    def _warn(self, sentence: str, why: str = "") -> None:
        """Say what is wrong once: the reason has numbers of processes, which differ."""
        if sentence != self._said:
            self._said = sentence
            self._host.warns(f"{sentence} {why}".rstrip())
