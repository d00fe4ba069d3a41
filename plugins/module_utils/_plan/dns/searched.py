# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Search domains in which every name leads to a VIP. Pure."""

from __future__ import annotations

from typing import Iterable, List


def warnings(names: Iterable[str], resolv_conf: str) -> List[str]:
    """Return a sentence for each search domain that a wildcard answers for.

    :param names: what the resolver answers, wildcards among them
    :param resolv_conf: the file with the search domains
    """
    wildcards = [name[2:] for name in names if name.startswith("*.")]
    return [
        f"This host searches {domain}, where *.{wildcard} answers for every name: one that does not exist leads to a "
        f"VIP, and so does registry.k8s.io from a pod, which asks for registry.k8s.io.{domain} first. Give "
        f"the wildcard a subdomain, such as apps, or take {domain} out of the search domains."
        for domain in searched(resolv_conf)
        for wildcard in wildcards
        if f".{domain}".endswith(f".{wildcard}")
    ]


def searched(resolv_conf: str) -> List[str]:
    """Return the search domains, each once: of several lines the last one counts, resolv.conf(5)."""
    lines = [line.split() for line in resolv_conf.splitlines()]
    last = next((words[1:] for words in reversed(lines) if words[:1] in (["search"], ["domain"])), [])
    return list(dict.fromkeys(each.rstrip(".").lower() for each in last))
