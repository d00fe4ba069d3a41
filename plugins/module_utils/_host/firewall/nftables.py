# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nftables: accept rules with our comment at the top of every input chain that would refuse.

A table of their own would not do: an accept there ends only that table's chain, and a drop in any other chain of the
hook still wins.

The administrator's nftables.conf stays unchanged, and usually begins with `flush ruleset`. To restore our rules, a
drop-in of nftables.service runs a small script after the service has loaded, or reloaded, its own. The script names the
chains and inserts only where none of our rules is left: an nftables.conf without a flush would duplicate them
otherwise. Its failure does not fail the service.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence

from . import ruleset as nft
from .model import MARK, VRRP, Action, ChangeSet, FirewallError, Opening, Remove, Run, Write, failure, in_order
from .system import Host

SCRIPT = "/etc/onprem-lb/open-firewall"
DROP_IN = "/etc/systemd/system/nftables.service.d/onprem-lb.conf"

# Through /bin/sh, because SELinux may not allow systemd to execute files in /etc.
DROP_IN_TEXT = f"""\
# Written by the Ansible module onprem.lb.firewall_openings; state: absent removes it.
[Service]
ExecStartPost=-/bin/sh {SCRIPT}
ExecReload=-/bin/sh {SCRIPT}
"""

SCRIPT_HEAD = f"""\
#!/bin/sh
# Written by the Ansible module onprem.lb.firewall_openings; state: absent removes it.
# Puts its rules back into the chains that nftables.service has just loaded, each chain in one transaction.

open_chain() {{ # FAMILY TABLE CHAIN RULES
    nft list chain "$1" "$2" "$3" | grep -qF 'comment "{MARK}"' || nft "$4"
}}
"""

NOTHING_REFUSES = "No chain of this ruleset refuses these connections: there is nothing to open."
NOT_LOADED = (
    "nftables.service is not active, so something else loads these rules: when it loads them again, "
    "the openings are gone until the next run."
)

# --terse omits the elements of named sets, which can be many thousands and are not needed.
LIST = ("nft", "-j", "-t", "list", "ruleset")

Chains = Dict[nft.ChainName, List[Opening]]


class HostState(NamedTuple):
    """The state of the host."""

    ruleset: nft.Ruleset
    service_active: bool
    persisted: bool  # our script exists, even if its rules do not
    error: str


def find(host: Host) -> HostState:
    """Read the ruleset; it is empty without nft, or without its support in the kernel."""
    service_active = host.run(["systemctl", "is-active", "nftables.service"])[0] == 0
    kept = host.read(SCRIPT) is not None
    code, out, err = host.run(LIST)
    if code != 0:
        return HostState({}, service_active, kept, failure(LIST, code, err or out))
    return HostState(nft.parse(out), service_active, kept, "")


def is_active(found: HostState, wanted: Sequence[Opening]) -> bool:
    return (
        found.service_active
        or found.persisted
        or any(
            nft.chain_refuses(found.ruleset, name, wanted) or _ours(found.ruleset, name)
            for name in nft.input_chains(found.ruleset)
        )
    )


def may_refuse(found: HostState) -> bool:
    """Return whether `is_active` may be so for some opening."""
    is_unreadable = "JSON" in found.error
    return found.service_active or found.persisted or is_unreadable or bool(nft.input_chains(found.ruleset))


def plan(host: Host, wanted: Sequence[Opening], found: HostState, keep: bool = False) -> ChangeSet:
    if found.error:
        raise FirewallError(found.error)
    if keep:
        wanted = in_order({*wanted, *_held(found.ruleset)})
    before: Chains = {}
    target: Chains = {}
    lines: List[str] = []
    for name in nft.input_chains(found.ruleset):
        refusing = bool(wanted) and nft.chain_refuses(found.ruleset, name, wanted)
        target[name] = [item for item in wanted if refusing and _fits(item, name)]
        before[name] = in_order({item for item in map(nft.opening_of, _ours(found.ruleset, name)) if item})
        lines += _changes(found.ruleset, name, target[name])
    target = {name: openings for name, openings in target.items() if openings}
    actions: List[Action] = []
    if lines:
        actions.append(Run(("nft", "-f", "-"), "".join(line + "\n" for line in lines)))
    kept, changes = _persistence(host, target)
    opened = in_order({item for openings in target.values() for item in openings})
    after = _describe(target, bool(target))
    message = NOTHING_REFUSES if wanted and not target else ""
    warnings = (NOT_LOADED,) if target and not found.service_active else ()
    texts = [str(opening) for opening in opened]
    return ChangeSet("nftables", texts, _describe(before, kept), after, actions + changes, message, warnings)


def _held(ruleset: nft.Ruleset) -> List[Opening]:
    every = [nft.opening_of(rule) for name in nft.input_chains(ruleset) for rule in _ours(ruleset, name)]
    return [opening for opening in every if opening]


def _fits(opening: Opening, name: nft.ChainName) -> bool:
    return name[0] == "inet" or opening.family in ("", name[0])


def _ours(ruleset: nft.Ruleset, name: nft.ChainName) -> List[Dict[str, Any]]:
    return [rule for rule in ruleset[name].rules if rule.get("comment") == MARK]


def _changes(ruleset: nft.Ruleset, name: nft.ChainName, wanted: Sequence[Opening]) -> List[str]:
    """Return the chain's part of the transaction. It moves our rules above refusing ones."""
    kept = set()
    deletions: List[str] = []
    below = False
    for rule in ruleset[name].rules:
        if rule.get("comment") != MARK:
            below = below or nft.rule_refuses(ruleset, name, rule, wanted)
            continue
        opening = nft.opening_of(rule)
        if opening in wanted and opening not in kept and not below:
            kept.add(opening)
        else:
            deletions.append("delete rule {} handle {}".format(" ".join(name), rule["handle"]))
    missing = [opening for opening in wanted if opening not in kept]
    return deletions + _insertions(name, missing)


def _insertions(name: nft.ChainName, openings: Sequence[Opening]) -> List[str]:
    # Each is inserted at the top, so the last one comes first.
    return ["insert rule {} {}".format(" ".join(name), rule_text(item)) for item in reversed(openings)]


def rule_text(opening: Opening) -> str:
    # The number, because not every host resolves the name "vrrp".
    source = f"{opening.family} saddr {opening.source} " if opening.source else ""
    what = f"meta l4proto {VRRP}" if opening.is_vrrp else f"{opening.protocol} dport {opening.port}"
    return f'{source}{what} accept comment "{MARK}"'


def script_text(target: Chains) -> str:
    parts = [SCRIPT_HEAD]
    for name in sorted(target):
        rules = "\n".join(_insertions(name, target[name]))
        parts.append("\nopen_chain {} '{}'\n".format(" ".join(name), rules))
    return "".join(parts)


def _persistence(host: Host, target: Chains) -> Any:
    """Return whether our rules survive a restart now, and the actions that make them."""
    wanted = {SCRIPT: (script_text(target), 0o755), DROP_IN: (DROP_IN_TEXT, 0o644)} if target else {}
    held = {path: host.read(path) for path in (SCRIPT, DROP_IN)}
    actions: List[Action] = []
    for path, text in held.items():
        if path in wanted and text != wanted[path][0]:
            actions.append(Write(path, *wanted[path]))
        elif path not in wanted and text is not None:
            actions.append(Remove(path))
    if any(action[0] == DROP_IN for action in actions):
        actions.append(Run(("systemctl", "daemon-reload")))
    return None not in held.values(), actions


def _describe(chains: Chains, kept: bool) -> List[str]:
    """Return the openings, with their chains if there are several, and whether a restart keeps them."""
    filled = [name for name in sorted(chains) if chains[name]]
    lines = [
        str(opening) + (" in {}".format(" ".join(name)) if len(filled) > 1 else "")
        for name in filled
        for opening in chains[name]
    ]
    return lines + (["reopened whenever nftables.service loads its rules"] if kept else [])
