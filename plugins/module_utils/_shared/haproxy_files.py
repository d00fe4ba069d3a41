# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which files a haproxy.cfg names: haproxy reads them at its start and at a reload, and keeps what it has read. Pure.

Not among them are those that are read otherwise: programs of checks, what Lua requires, the name servers of
resolv.conf, a saved state of servers. A name that depends on an environment variable is not known.
"""

from __future__ import annotations

import posixpath
import re
from typing import Dict, Iterator, List

from .loaded_files import CERTIFICATE, LIST, PLAIN, Named

# A comment, or a word: haproxy knows both kinds of quotes, and a backslash before any sign but in single quotes.
TOKEN = re.compile(r"""(#.*)|((?:[^\s'"\\#]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)""")
PART = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|((?:[^'"\\]|\\.)+)""")
VARIABLE = re.compile(r'(?<!\\)"[^"]*(?<!\\)\$')
# The word before a name. `file` and its like are those of http-request return, `config` that of a SPOE filter.
CRT_BASE, CA_BASE = "crt-base", "ca-base"
KEYWORDS = {
    "crt": (CERTIFICATE, CRT_BASE),
    "crt-list": (LIST, ""),
    **dict.fromkeys(("ca-file", "ca-verify-file", "crl-file", "ca-sign-file"), (PLAIN, CA_BASE)),
    **dict.fromkeys(("errorfile", "file", "lf-file", "config", "-f"), (PLAIN, "")),
    **dict.fromkeys(("lua-load", "lua-load-per-thread", "h1-case-adjust-file"), (PLAIN, "")),
    **dict.fromkeys(
        ("ssl-dh-param-file", "tls-ticket-keys", "issuers-chain-path", "httpclient.ssl.ca-file"), (PLAIN, "")
    ),
}
# What a crt-store loads beside a certificate.
OF_A_STORE = {"key": (PLAIN, "key-base"), **dict.fromkeys(("ocsp", "issuer", "sctl"), (PLAIN, CRT_BASE))}
BASES = (CRT_BASE, CA_BASE, "key-base")
CONVERTERS = re.compile(r"\bmap(?:_\w+)?\(([^,)]+)|\bjwt_verify\([^,)]+,([^,)]+)\)")
KNOWN = {*KEYWORDS, *BASES, "default-path", "load"}
NO_FILE = re.compile(r"@|virt@")  # a store's, the system's authorities, a map that is in memory alone
PREFIX = re.compile(r"(?:file|opt)@")


def named(text: str, path: str) -> List[Named]:
    """Return what a configuration names, once each, with absolute paths.

    :param path: the configuration's own
    """
    bases: Dict[str, str] = {}
    found: List[Named] = []
    for line in text.splitlines():
        words = _words(line) if _may_name(line) else []
        if words[:1] == ["default-path"]:
            bases[""] = _default_path(words[1:], path)
        elif words and words[0] in BASES:
            bases[words[0]] = _whole("".join(words[1:2]), bases, "")
        else:
            found.extend(_of_line(words, bases))
    return list(dict.fromkeys(found))


def _may_name(line: str) -> bool:
    """Whether a line need be read: most lines of a large file name nothing."""
    return not KNOWN.isdisjoint(line.split()) or "map" in line or "jwt_verify" in line


def _of_line(words: List[str], bases: Dict[str, str]) -> Iterator[Named]:
    known = {**KEYWORDS, **OF_A_STORE} if words[:1] == ["load"] else KEYWORDS
    for at, word in enumerate(words[:-1]):
        kind, base = known.get(word, ("", ""))
        name = words[at + 1]
        if word == "errorfile" and name.isdigit():  # the status, unless it is that of http-request deny
            name = "".join(words[at + 2 : at + 3])
        if kind:
            yield from _named(name, kind, bases, base)
    for word in words:
        for match in CONVERTERS.finditer(word):
            yield from _named(match[1] or match[2], PLAIN, bases, "")


def _named(name: str, kind: str, bases: Dict[str, str], base: str) -> Iterator[Named]:
    if name and not NO_FILE.match(name):
        yield Named(_whole(PREFIX.sub("", name), bases, base).rstrip("/"), kind, _whole("", bases, CRT_BASE))


def _whole(name: str, bases: Dict[str, str], base: str) -> str:
    """Return a path as systemd's haproxy, which runs in /, opens it."""
    return posixpath.join("/", bases.get("", ""), bases.get(base, ""), name)


def _default_path(words: List[str], path: str) -> str:
    """Return the folder of names that have none."""
    folder = posixpath.dirname(path)
    if words[:1] == ["origin"]:
        return "".join(words[1:2])
    return {"config": folder, "parent": posixpath.dirname(folder)}.get("".join(words[:1]), "")


def _words(line: str) -> List[str]:
    """Return the words as haproxy reads them; '' for one that depends on an environment variable."""
    found = []
    for comment, word in TOKEN.findall(line):
        if comment:
            break
        found.append("" if VARIABLE.search(word) else _plain(word))
    return found


def _plain(word: str) -> str:
    parts = (single or _unescaped(double or bare) for single, double, bare in PART.findall(word))
    return "".join(parts)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
