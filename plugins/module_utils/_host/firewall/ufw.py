# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""ufw: its own rules with our comment, and a marked block in before.rules where ufw is too old for VRRP.

ufw supports the protocol vrrp since 0.36.2 (Debian 12, Ubuntu 24.04). Before that a ufw rule cannot be narrower than
"everything from that peer", so the block has iptables rules, which ufw loads by itself.
"""

from __future__ import annotations

import re
import shlex
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from .model import (
    MARK,
    PROTOCOLS,
    TCP,
    VRRP,
    Action,
    ChangeSet,
    FirewallError,
    Opening,
    Run,
    Write,
    as_source,
    in_order,
    output_of,
)
from .system import Host

BLOCKS = {
    "ip": ("/etc/ufw/before.rules", "ufw-before-input"),
    "ip6": ("/etc/ufw/before6.rules", "ufw6-before-input"),
}
BEGIN = f"# BEGIN {MARK}: VRRP from the peers\n"
END = f"# END {MARK}\n"
BLOCK = re.compile(re.escape(BEGIN) + "(.*?)" + re.escape(END), re.DOTALL)
BLOCK_PEER = re.compile(rf"^-A \S+ -s (\S+) -p {VRRP} -j ACCEPT$", re.MULTILINE)

Words = Tuple[str, ...]


class Rules(NamedTuple):
    ours: Set[Opening]
    theirs: Dict[Words, str]  # the verdicts of the administrator's rules, by their matches


def is_active(host: Host) -> bool:
    code, out, _err = host.run(["ufw", "status"])
    return code == 0 and out.startswith("Status: active")


def plan(host: Host, wanted: Sequence[Opening], keep: bool = False) -> ChangeSet:
    rules = parse_added(output_of(host, "ufw", "show", "added"))
    if keep:
        blocks = [_block(host, family, set())[0] for family in sorted(BLOCKS)]
        wanted = in_order(rules.ours.union(wanted, *blocks))
    _refuse_dropped(host, wanted)
    in_block: Set[Opening] = set()
    if any(opening.is_vrrp for opening in wanted) and not knows_vrrp(output_of(host, "ufw", "version")):
        in_block = {opening for opening in wanted if opening.is_vrrp}
    in_rules = {opening for opening in wanted if opening not in in_block and not _has_admin_rule(rules, opening)}
    actions: List[Action] = [_call(["ufw", "allow"], opening) for opening in in_order(in_rules - rules.ours)]
    actions += [_call(["ufw", "delete", "allow"], opening) for opening in in_order(rules.ours - in_rules)]
    block_before: Set[Opening] = set()
    writes: List[Action] = []
    for family in sorted(BLOCKS):
        held, changes = _block(host, family, {opening for opening in in_block if opening.family == family})
        block_before |= held
        writes += changes
    if writes:
        actions += writes + [Run(("ufw", "reload"))]
    before = [str(opening) for opening in in_order(rules.ours | block_before)]
    after = [str(opening) for opening in in_order(in_rules | in_block)]
    return ChangeSet("ufw", [str(opening) for opening in in_order(wanted)], before, after, actions)


def words(opening: Opening) -> Words:
    """Return a rule's match exactly as `ufw show added` prints it."""
    if opening.is_vrrp:
        return ("from", opening.source, "proto", "vrrp")
    if opening.source:
        return ("from", opening.source, "to", "any", "port", str(opening.port), "proto", opening.protocol)
    return (f"{opening.port}/{opening.protocol}",)


def parse_added(text: str) -> Rules:
    """Read `ufw show added`: the commands that would add the rules again."""
    rules = Rules(set(), {})
    for line in text.splitlines():
        if not line.startswith("ufw "):
            continue
        parts = shlex.split(line)
        comment = parts[-1] if parts[-2] == "comment" else ""
        match = tuple(parts[2:-2] if comment else parts[2:])
        opening = _opening(match)
        if comment == MARK and parts[1] == "allow" and opening:
            rules.ours.add(opening)
        else:
            # For ufw two rules that differ only in logging are the same: the second replaces the first.
            rules.theirs[tuple(word for word in match if word not in ("log", "log-all"))] = parts[1]
    return rules


def knows_vrrp(version: str) -> bool:
    numbers = re.search(r"ufw (\d+(?:\.\d+)*)", version)
    if not numbers:
        return False
    return tuple(int(part) for part in numbers.group(1).split(".")) >= (0, 36, 2)


def _opening(match: Words) -> Optional[Opening]:
    port, _slash, protocol = match[0].partition("/")
    if len(match) == 1 and port.isdigit() and protocol in PROTOCOLS:
        return Opening(int(port), "", protocol)
    if len(match) not in (4, 8) or match[0] != "from":
        return None
    number = int(match[5]) if len(match) == 8 and match[5].isdigit() else 0
    found = Opening(number, as_source(match[1]), match[7] if number else TCP)
    return found if words(found) == match else None


def _refuse_dropped(host: Host, wanted: Sequence[Opening]) -> None:
    """Refuse IPv6 openings if ufw drops all IPv6 (IPV6=no)."""
    if not re.search(r"^IPV6=no\b", host.read("/etc/default/ufw") or "", re.MULTILINE | re.IGNORECASE):
        return
    for opening in wanted:
        if opening.family == "ip6":
            raise FirewallError(
                f"ufw drops all IPv6 here (IPV6=no in /etc/default/ufw), so {opening} cannot be opened."
            )


def _has_admin_rule(rules: Rules, opening: Opening) -> bool:
    """Whether one of the administrator's rules already has this match.

    ufw keeps one rule for each match: ours would replace theirs, and its removal would lose it.
    """
    verdict = rules.theirs.get(words(opening), "")
    if verdict in ("deny", "reject"):
        raise FirewallError(
            f"ufw already has the rule '{verdict} {' '.join(words(opening))}', which the opening "
            "would replace: remove that rule, or do not ask for the opening."
        )
    return verdict in ("allow", "limit")


def _call(verb: List[str], opening: Opening) -> Run:
    comment = ["comment", MARK] if verb == ["ufw", "allow"] else []
    return Run(tuple(verb + list(words(opening)) + comment))


def _block(host: Host, family: str, wanted: Set[Opening]) -> Tuple[Set[Opening], List[Action]]:
    """Return the peers in our block of one file, and the action that writes the wanted ones."""
    path, chain = BLOCKS[family]
    text = host.read(path) or ""
    found = BLOCK.search(text)
    held = {Opening(source=as_source(peer)) for peer in BLOCK_PEER.findall(found.group(1))} if found else set()
    rules = [f"-A {chain} -s {item.source} -p {VRRP} -j ACCEPT\n" for item in in_order(wanted)]
    block = BEGIN + "".join(rules) + END if rules else ""
    bare = BLOCK.sub("", text)
    if not block:
        new = bare
    else:
        # As the last rules of the filter table: before.rules may have other tables as well.
        new = re.sub(
            r"(^\*filter$.*?)(^COMMIT$)",
            lambda m: m.group(1) + block + m.group(2),
            bare,
            count=1,
            flags=re.DOTALL | re.MULTILINE,
        )
        if new == bare:
            raise FirewallError(f"{path} holds no filter table to open VRRP in.")
    return held, ([Write(path, new, 0o640)] if new != text else [])
