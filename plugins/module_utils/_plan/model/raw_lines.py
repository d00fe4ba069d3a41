# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Raw lines for haproxy.cfg, keepalived.conf and frr.conf, which must not change the meaning of the lines around them.

Each function is a check for ``schema.Field``. A line may have a secret, so that a sentence names its number.
"""

from __future__ import annotations

import re
from typing import Any

from ..._agent.config.schema import lines, text
from .values import Checked

# With which words sections of haproxy.cfg begin.
SECTION = re.compile(
    r"\s*(global|defaults|frontend|backend|listen|userlist|peers|resolvers|mailers|cache|program|ring|fcgi-app|http-errors"
    r"|log-forward|log-profile|crt-store|traces|acme)(\s|$)"
)
# Words as haproxy reads them: a backslash escapes, except in single quotes.
HAPROXY_LINE = re.compile(r"""([^'"\\#]|\\.|'[^']*'|"([^"\\]|\\.)*")*(#.*)?""")
KEEPALIVED_LINE = 1000  # bytes, of the 1024 into which keepalived reads a line
# A text in quotes, a brace, or a comment.
KEEPALIVED_TOKEN = re.compile(r'"[^"]*"|[{}"]|[#!].*')
# What raw lines of frr.conf may not change: the lists and maps of the role, and what an end of bgpd takes away.
FRR_OWN = re.compile(r"\bonprem(-|\b)")
FRR_STALE = re.compile(r"\s*(bgp|neighbor \S+) graceful-restart(?!-disable)")


def section_lines(value: Any) -> Checked:
    """Raw lines inside a section of haproxy.cfg."""
    found, wrong = haproxy_lines(value)
    for at, line in enumerate(found or [], 1):
        if SECTION.match(line):
            return None, f"line {at} begins a section, and what follows would be in it: use haproxy_extra_lines."
    return found, wrong


def haproxy_lines(value: Any) -> Checked:
    """Raw lines of haproxy.cfg. A quote that stays open would take in what follows."""
    found, wrong = _one_line_each(value)
    for at, line in enumerate(found or [], 1):
        if not HAPROXY_LINE.fullmatch(line):
            return None, f"line {at} has a quote or a backslash without its other half: complete it."
    return found, wrong


def keepalived_lines(value: Any) -> Checked:
    """Raw lines of keepalived.conf. A quote or a block that stays open would take in what follows."""
    found, wrong = _one_line_each(value)
    depth = 0
    for at, line in enumerate(found or [], 1):
        if len(line.encode()) > KEEPALIVED_LINE:
            return None, f"keepalived reads {KEEPALIVED_LINE} bytes of a line at most, shorten line {at}."
        if line.endswith("\\"):
            return None, f"line {at} ends with a backslash, which joins the next line to it: leave it out."
        for token in KEEPALIVED_TOKEN.findall(line):
            if token == '"':
                return None, f"line {at} has a quote that is not closed: close it."
            depth += {"{": 1, "}": -1}.get(token, 0)
            if depth < 0:
                return None, f"line {at} closes a block that these lines have not opened: leave it out."
    return (None, "a block in it is not closed: add a }.") if depth else (found, wrong)


def frr_lines(value: Any) -> Checked:
    """Raw lines of frr.conf. What they may not undo is that nothing but VIPs is announced, and nothing stale stays."""
    found, wrong = _one_line_each(value)
    for at, line in enumerate(found or [], 1):
        if FRR_OWN.search(line):
            return None, f"line {at} names a list or a map of this role: give it another name than onprem."
        if FRR_STALE.match(line):
            return None, f"with line {at} routers would keep the paths of a host that is dead: leave it out."
    return found, wrong


def _one_line_each(value: Any) -> Checked:
    found, wrong = lines(value)
    if any(text(line)[1] for line in found or []):
        return None, "each item must be one line of text."
    return found, wrong
