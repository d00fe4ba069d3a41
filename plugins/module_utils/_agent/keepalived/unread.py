# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Names what keepalived evaluates in its configuration and `conf` does not: what looks absent there may be a VIP. Pure.

Each is the end of a sentence that begins with the file's name, and has the mend.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Dict, Iterator, List

from . import conf

# What keepalived.conf(5) lists, and the one sign that its versions read in different ways. Comments are left out.
CONSTRUCTS = (
    (
        re.compile(r"^\s*include[a-z]?\s+\S+"),
        "{}, and the VIPs, VRIDs and passwords in there are not read: move them into this file",
    ),
    (
        re.compile(r"^\s*@\S*"),
        "{}, and it is not known here which members read that line: write a file for each member",
    ),
    (re.compile(r"^\s*\$\w+(?==)"), "the definition {}, which is not evaluated: write its value where it is used"),
    (re.compile(r"\$\{?_\w*\}?"), "{}, which keepalived replaces: write what it stands for"),
    (re.compile(r"~(?:SEQx?|LST)\b"), "{}, which stands for several lines: write them all"),
    (re.compile(r'\\(?:"|$)'), "{}, and versions of keepalived read a backslash in different ways: leave it out"),
)
UNPAIRED = 'a quotation mark without another one on its line: close it, as in "a b"'
# What is read of an instance as a number, with its bounds.
NUMBERS = {"virtual_router_id": (1, 255), "priority": (1, 255), "advert_int": (0.01, 255), "version": (2, 3)}
ONE_WORD = (*NUMBERS, "interface", "auth_type", "auth_pass", *conf.SOURCES)
LISTS = (*conf.HELD, "unicast_peer")


def unread(text: str) -> Iterator[str]:
    """Yield each construct that is not evaluated, and each value that is not understood, once."""
    lines = [_without_comment(line) for line in text.split("\n")]
    statements = conf.statements(text)
    found = [
        *(sentence for line in lines for sentence in _of_line(line)),
        *(sentence for words, _nested in conf.inside(statements, "global_defs") for sentence in _of_version(words)),
        *_of_instances([(words, block) for words, block in statements if words[:1] == ["vrrp_instance"]]),
    ]
    yield from dict.fromkeys(found)


def _without_comment(line: str) -> str:
    comments = (match.start() for match in conf.TOKEN.finditer(line) if match.group(4))
    return line[: next(comments, len(line))].rstrip()


def _of_line(line: str) -> Iterator[str]:
    for construct, sentence in CONSTRUCTS:
        found = construct.search(line)
        if found:
            yield sentence.format(" ".join(found.group().replace('"', "").split()) or found.group())
    if line.count('"') % 2:
        yield UNPAIRED


def _of_version(words: List[str]) -> Iterator[str]:
    if words[0] == "vrrp_version" and words[1:2] not in (["2"], ["3"]):
        yield f"{' '.join(words)}: write 2 or 3"


def _of_instances(given: List[conf.Statement]) -> Iterator[str]:
    names = [" ".join(words[1:2]) for words, _block in given]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f"two instances {name}, of which keepalived reads one: take the other out"
    for name, (_words, block) in zip(names, given):
        yield from (f"{what}, in vrrp_instance {name}: {mend}" for what, mend in _of_instance(block).items())


def _of_instance(block: List[conf.Statement]) -> Dict[str, str]:
    """Return what is not understood of an instance, each with its mend."""
    found = {}
    secrets = conf.inside(block, "authentication")
    for words, nested in [*block, *secrets]:
        if words and words[0] in ONE_WORD and (nested or not words[1:]):
            found[f"{words[0]} without a plain value"] = "write one word, or put it in quotes"
        elif words and words[0] in NUMBERS and not _is_number(words[1], words[0]):
            found[" ".join(words[:2])] = "write a number from {:g} to {:g}".format(*NUMBERS[words[0]])
    if not any(words[:1] == ["virtual_router_id"] for words, _nested in block):
        found["no virtual_router_id"] = "write one"
    if ["auth_type", "AH"] in [words[:2] for words, _nested in secrets]:
        found["auth_type AH, which this collection does not set up"] = "change it to PASS on all members"
    if ["version", "2"] in [words[:2] for words, _nested in block] and _advertises_ipv6(block):
        found["version 2 and IPv6, of which keepalived takes what comes first"] = "write version 3"
    for name in LISTS:
        for words, _nested in conf.inside(block, name):
            if not _is_address(words[0]):
                found[f"{name} {' '.join(words)}"] = "begin with the address"
    return found


def _advertises_ipv6(block: List[conf.Statement]) -> bool:
    return any(":" in words[0] for words, _nested in conf.inside(block, "virtual_ipaddress"))


def _is_number(text: str, name: str) -> bool:
    lowest, highest = NUMBERS[name]
    form = conf.DECIMAL if name == "advert_int" else re.compile(r"\d+")
    return bool(form.fullmatch(text)) and lowest <= float(text) <= highest


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return True
