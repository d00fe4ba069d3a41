# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The records as a Corefile, for those who run CoreDNS on the nodes. Pure.

CoreDNS answers with an empty NOERROR for a family or type that a name of its hosts block does not have, and asks for
other names. Wildcards are templates. Their expressions are whole: upstream's leave the dots and the end open, so that
they also match names of others.
"""

from __future__ import annotations

from typing import Dict, Iterable, List

from .records import Record

INDENT = "    "
UPSTREAMS = "/etc/resolv.conf"  # a file with the name servers that are asked for the rest


def render(records: Iterable[Record], hosts_file: str = "", upstreams: str = UPSTREAMS, ttl: int = 30) -> str:
    """Return the Corefile.

    :param ttl: of each answer, whatever that of the records is: how long a client may still have the one of before
    :param hosts_file: one with further names, which CoreDNS reads again when it changes
    """
    found = list(records)
    named: Dict[str, List[str]] = {}
    for each in found:
        if each.type in ("A", "AAAA") and not each.name.startswith("*."):
            named.setdefault(each.value, []).append(each.name[:-1])
    body = ["errors", "bufsize 1232", "health 127.0.0.1:18080", "loop", "reload", f"cache {ttl}"]
    body += _templates(found, ttl)
    body += [f"hosts {hosts_file} {{" if hosts_file else "hosts {"]
    body += [INDENT + line for line in _hosts(named, ttl)] + ["}"]
    body += [f"forward . {upstreams} {{", f"{INDENT}policy sequential", "}"]
    return "\n".join([".:53 {", *(INDENT + line for line in body), "}", ""])


def _hosts(named: Dict[str, List[str]], ttl: int) -> List[str]:
    lines = [f"{address} {' '.join(names)}" for address, names in named.items()]
    return [*lines, f"ttl {ttl}", "fallthrough"]


def _templates(records: List[Record], ttl: int) -> List[str]:
    """Return the wildcards and the SRVs. The last template of a name answers for every other type: nothing."""
    names = dict.fromkeys(each.name for each in records if each.name.startswith("*.") or each.type == "SRV")
    lines = []
    for name in names:
        own = [each for each in records if each.name == name]
        for kind in dict.fromkeys(each.type for each in own):
            values = [each for each in own if each.type == kind]
            answers = [f'answer "{{{{ .Name }}}} {ttl} IN {kind} {each.value}"' for each in values]
            lines += _template("IN", kind, name, answers)
        lines += _template("ANY", "ANY", name, ["rcode NOERROR"])
    return lines


def _template(of_class: str, kind: str, name: str, inside: List[str]) -> List[str]:
    inner = [f'match "{_expression(name)}"', *inside, "fallthrough"]
    return [f"template {of_class} {kind} {{", *(INDENT + line for line in inner), "}"]


def _expression(name: str) -> str:
    """Return an expression that matches a whole name, in any case of its letters; * is one label or more.

    Letters, digits and hyphens stand for themselves. A dot is in brackets, because a backslash is read twice there.
    """
    bare = name[2:] if name.startswith("*.") else name
    return f"(?i)^{'([^.]+[.])+' if bare != name else ''}{bare.replace('.', '[.]')}$"
