# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which certificates haproxy serves, as it says itself: a file that was replaced is not served before a reload."""

from __future__ import annotations

import calendar
import re
import time
from typing import Callable, Dict, Iterable, NamedTuple, Optional

from ..config import certificates
from ..follow.changes import Refused
from ..follow.runtime_api import Runtime

Ask = Callable[[str], str]  # a command of haproxy's runtime API; raises Refused
LIST = "show ssl cert"
NAME = re.compile(r"^(/.+)$", re.MULTILINE)
NOT_AFTER = re.compile(r"^notAfter: (.+) GMT$", re.MULTILINE)
FINGERPRINT = re.compile(r"^SHA1 FingerPrint: ([0-9A-F]+)$", re.MULTILINE)
TIME = "%b %d %H:%M:%S %Y"
OLD = "Unknown command"  # before haproxy 2.2
TIMEOUT = 1.0  # seconds: what else there is to report does not wait for a haproxy that hangs


class Served(NamedTuple):
    """A certificate.

    :ivar expires: the one that is served, in seconds since 1970; None if none is, or that is not known
    :ivar loaded: whether its file has the one that is served; None if that is not known
    """

    expires: Optional[int] = None
    loaded: Optional[bool] = None


def ask_at(path: str) -> Ask:
    """Return what asks haproxy; one that cannot say which certificates it serves if there is no socket."""
    return Runtime(path, TIMEOUT).ask if path else lambda _command: OLD


def read(files: Iterable[str], ask: Ask, text: Callable[[str], str]) -> Dict[str, Served]:
    """Return each of some files, and of those that haproxy has loaded. While it does not answer, nothing is known.

    Of a haproxy that cannot say it, a certificate expires as its file does.

    :param text: returns what is in a file, '' if it cannot be read
    """
    try:
        listed = ask(LIST)
        if listed.startswith(OLD):
            return {path: Served(certificates.expires(text(path))) for path in files}
        names = dict.fromkeys([*files, *NAME.findall(listed)])
        answers = {path: ask(f"{LIST} {_escaped(path)}") for path in names}
    except Refused:
        return {path: Served() for path in files}
    return {path: _of(answer, text(path)) for path, answer in answers.items() if "\nStatus: Unused" not in answer}


def _of(answer: str, text: str) -> Served:
    expires, shown = NOT_AFTER.search(answer), FINGERPRINT.search(answer)
    if not expires or not shown:
        return Served(loaded=False)
    at = calendar.timegm(time.strptime(" ".join(expires[1].split()), TIME))
    return Served(at, certificates.fingerprint(text) == shown[1])


def _escaped(path: str) -> str:
    """Return a path as a word of a command."""
    return re.sub(r"([\\ ;])", r"\\\1", path)
