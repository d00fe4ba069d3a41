# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The inventory that has the effect of files which somebody else has written. Pure.

It is data and comments; the passwords in it are named, so that they can be put into a vault.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults
from . import haproxy, keepalived, secrets

PAIR, ALONE = "pair", "haproxy"


class Written(NamedTuple):
    """What is written, and what is said of it."""

    faults: Faults = []
    inventory: Dict[str, Any] = {}
    comments: List[str] = []  # at its top
    lines: List[str] = []  # for the user


class Host(NamedTuple):
    """A host, and its files' texts; None without one."""

    name: str
    address: str
    texts: Dict[str, Optional[str]]


def write(given: Sequence[Dict[str, Any]], adopts: bool) -> Written:
    """Return the inventory of hosts.

    :param given: ``{name, address, files}`` of each, the latter as `ansible.builtin.slurp` returns them in a loop
    :param adopts: whether the files are those of the hosts, which the collection's are to replace
    """
    faults: Faults = []
    hosts = [
        Host(
            each["name"],
            each["address"],
            {read["item"]["key"]: _text(each["name"], read, faults) for read in each["files"]},
        )
        for each in given
    ]
    if faults:
        return Written(faults)
    balancers = [host for host in hosts if host.texts.get("haproxy") is not None]
    routers = [
        keepalived.Member(host.name, host.address, host.texts["keepalived"] or "")
        for host in hosts
        if host.texts.get("keepalived") is not None
    ]
    if not balancers and not routers:
        return Written(["No file was named: set import_haproxy or import_keepalived."])
    balancer = haproxy.convert(balancers[0].texts["haproxy"] or "") if balancers else haproxy.Found()
    router = keepalived.convert(routers) if routers else keepalived.Found()
    faults = [*(f"{balancers[0].name}: haproxy.cfg: {fault}" for fault in balancer.faults), *router.faults]
    if faults:
        return Written(faults)
    variables = _variables(balancer, router, is_pair=bool(routers), adopts=adopts, has_balancer=bool(balancers))
    members = router.hosts or {host.name: {"ansible_host": host.address} if host.address else {} for host in hosts}
    inventory = {PAIR if routers else ALONE: {"hosts": members, "vars": variables}}
    found = secrets.names(variables)
    notes = [*balancer.notes, *router.notes, *_differences(balancers)]
    return Written([], inventory, _comments(found), _lines(balancer, router, notes, found, variables))


def _text(name: str, read: Dict[str, Any], faults: Faults) -> Optional[str]:
    """Return the text of a file, or None with a fault."""
    path = read["item"]["value"]
    if "content" not in read:
        faults.append(
            f"{name}: {path} cannot be read: name files that are there, by import_haproxy, import_keepalived or both."
        )
        return None
    try:
        return base64.b64decode(read["content"]).decode()
    except (binascii.Error, UnicodeDecodeError):
        faults.append(f"{name}: {path} is no text in UTF-8: convert it, or take out what is not.")
        return None


def _variables(
    balancer: haproxy.Found, router: keepalived.Found, is_pair: bool, adopts: bool, has_balancer: bool
) -> Dict[str, Any]:
    services = {f"{PAIR if is_pair else ALONE}_services": balancer.services}
    adopted = {
        **({"haproxy_adopt": True} if adopts and has_balancer else {}),
        **({"keepalived_adopt": True} if adopts and is_pair else {}),
    }
    own = {**balancer.variables}
    if is_pair and "haproxy_peers" in own:  # whose members are the peers
        del own["haproxy_peers"]
        own["pair_peers_port"] = own.pop("haproxy_peers_port")
    return {**adopted, **router.variables, **services, **own}


def _differences(balancers: Sequence[Host]) -> List[str]:
    """Say which hosts have another haproxy.cfg than the one that is converted."""
    first = balancers[0].texts["haproxy"] if balancers else ""
    return [
        f"{host.name} has another haproxy.cfg than {balancers[0].name}, whose is converted: compare them."
        for host in balancers[1:]
        if (host.texts["haproxy"] or "").split() != (first or "").split()
    ]


def _comments(names: Sequence[str]) -> List[str]:
    return [
        "Read it, and run onprem.lb.forecast with it before anything else.",
        *(f"{name} has a secret, which belongs in a vault: ansible-vault encrypt_string." for name in names),
    ]


def _lines(
    balancer: haproxy.Found,
    router: keepalived.Found,
    notes: Sequence[str],
    names: Sequence[str],
    variables: Dict[str, Any],
) -> List[str]:
    """Return what a user has to know: what is raw, what is lost, and what differs."""
    services = len(balancer.services)
    vips = len(variables.get("pair_vips", []))
    found = [f"{_counted(vips, 'VIP')}, {_counted(services, 'service')}."]
    for title, sentences in (
        (
            "Carried over as raw lines, as no key has it:",
            [*(f"haproxy.cfg, {sentence}" for sentence in balancer.raw), *router.raw],
        ),
        ("Left out:", [*(f"haproxy.cfg, {sentence}" for sentence in balancer.lost), *router.lost]),
        ("Different, or yours to decide:", notes),
        ("Secrets, which belong in a vault:", names),
    ):
        found += [title, *(f"  {sentence}" for sentence in sentences)] if sentences else []
    if "pair_services" in variables and not services:
        found.append("pair_services is empty, and a pair needs a service: write one before a run.")
    return found


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
