# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The keepalived.conf of one or more members as variables of the role pair. Pure.

In a pair each VIP is an instance of its own, or all of a family are one, whose priorities follow from the order of the
members.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from ..._agent.config.schema import Faults
from ..._agent.keepalived import conf, unread
from ..._shared import mark, membership, statements

PASSWORD_LENGTH = 8  # of which keepalived uses no more
HELD = ("virtual_ipaddress", "virtual_ipaddress_excluded")
SYNC, TRACKED, LOST_LINK = "vrrp_sync_group", "track_interface", "dont_track_primary"
RAW = (statements.OF_ALL, statements.OF_A_BLOCK)
PLAIN = re.compile(r'[^\s{}"#!]+')


class Member(NamedTuple):
    """A host, and the text of its keepalived.conf."""

    name: str
    address: str  # '' where it is not known
    text: str


class Found(NamedTuple):
    """What the files are as variables."""

    faults: Faults = []
    variables: Dict[str, Any] = {}
    hosts: Dict[str, Dict[str, Any]] = {}  # the variables of each member, the first to hold the first VIP at the top
    raw: List[str] = []
    lost: List[str] = []
    notes: List[str] = []


Instance = Dict[str, Any]


def convert(members: Sequence[Member]) -> Found:
    """Return the variables that give the same VIPs to the same members."""
    faults = [f"{member.name}: keepalived.conf has {what}." for member in members for what in _unread(member.text)]
    if faults:
        return Found(faults=list(dict.fromkeys(faults)))
    instances = {member.name: conf.instances(member.text) for member in members}
    notes: List[str] = []
    names = _ordered(instances, instances[members[0].name][0]["addresses"])
    hosts = _hosts(members, instances, names, notes)
    every = [instance for name in names for instance in instances[name]]
    variables = {
        "pair_vips": _vips(instances, names, [] if _in_one(instances) else notes),
        **_interfaces(instances, names, hosts, notes),
        **_common(every, notes),
        **_of_texts(members, every),
        **_together(members, instances, notes),
        **_priorities(instances, names, len(hosts), notes),
        **_raw_lines(members, notes),
    }
    left = dict.fromkeys(each for member in members for each in _left(member))
    lost = [*(text for is_raw, text in left if not is_raw), *(each for member in members for each in _of_vips(member))]
    return Found([], variables, hosts, [text for is_raw, text in left if is_raw], lost, notes)


def _unread(text: str) -> Iterator[str]:
    if mark.is_marked(text):
        yield "a line that says that this collection has written it: use the inventory that it is from"
        return
    if "\0" in text:
        yield "a NUL byte, at which keepalived ends the line: take it out"
        return
    found = list(unread.unread(text))
    yield from found
    if not found and not conf.instances(text):
        yield "no vrrp_instance, so that there is no VIP to convert"


def _ordered(instances: Dict[str, List[Instance]], addresses: Sequence[str]) -> List[str]:
    """Return the members, with the one first that has the highest priority for some addresses."""
    return sorted(instances, key=lambda name: -_priority(instances[name], addresses))


def _priority(given: Sequence[Instance], addresses: Sequence[str]) -> int:
    """Return with which priority a member has an instance with these addresses; 0 if it has none."""
    wanted = {_bare(address) for address in addresses}
    return next((each["priority"] for each in given if wanted & set(map(_bare, each["addresses"]))), 0)


def _bare(address: str) -> str:
    return address.partition("/")[0]


def _hosts(
    members: Sequence[Member], instances: Dict[str, List[Instance]], names: List[str], notes: List[str]
) -> Dict[str, Dict[str, Any]]:
    """Return the members, and those that are only peers of theirs."""
    known = {member.name: member.address or instances[member.name][0]["source"] for member in members}
    found = {name: {"ansible_host": known[name]} if known[name] else {} for name in names}
    sources = {each["source"] for name in names for each in instances[name]} | set(known.values())
    peers = dict.fromkeys(_bare(peer) for name in names for each in instances[name][:1] for peer in each["peers"])
    others = [peer for peer in peers if peer not in sources]
    if len(members) > 1 and others:
        notes.append(f"{', '.join(others)} is a peer in the files, and no host of these: add it if it is a member.")
    elif others:
        free = (name for name in (f"lb{number}" for number in range(1, 256)) if name not in found)
        found.update({next(free): {"ansible_host": peer} for peer in others})
        notes.append("The other members are known as peers only: read their files too, or put the members in order.")
    elif len(members) == 1:
        notes.append("The file names no other member: add the others to the group pair, the first holder on top.")
    return found


def _vips(instances: Dict[str, List[Instance]], names: Sequence[str], notes: List[str]) -> List[Dict[str, Any]]:
    found: List[Dict[str, Any]] = []
    seen: List[str] = []
    for instance in (each for name in names for each in instances[name]):
        families: List[bool] = []
        for address in _addresses(instance):
            if _bare(address) in seen:
                continue
            seen.append(_bare(address))
            is_first_of_family = (":" in address) not in families
            families.append(":" in address)
            vip = {"address": address.partition(" ")[0], **({"vrid": instance["vrid"]} if is_first_of_family else {})}
            found.append(vip)
            if not is_first_of_family:
                notes.append(f"{_bare(address)} was in instance {instance['name']} with others: it gets its own VRID.")
            if len(names) > 1:
                vip["first"] = _ordered(instances, instance["addresses"])[0]
    return found if len(found) > 1 else [{key: value for key, value in vip.items() if key != "first"} for vip in found]


def _interfaces(
    instances: Dict[str, List[Instance]], names: Sequence[str], hosts: Dict[str, Dict[str, Any]], notes: List[str]
) -> Dict[str, Any]:
    """Return the interface of the VIPs and that of VRRP, or write each member's beside it."""
    of_vips = {
        name: list(dict.fromkeys(where for each in instances[name] for where in _carriers(each))) for name in names
    }
    found: Dict[str, Any] = {}
    if any(len(each) > 1 for each in of_vips.values()):
        notes.append(
            "The VIPs are on several interfaces: each goes to the one whose subnet contains it; see the forecast."
        )
    else:
        found.update(_of_members("pair_interface", of_vips, hosts))
    if any(map(_is_apart, (each for name in names for each in instances[name]))):
        of_vrrp = {name: list(dict.fromkeys(each["interface"] for each in instances[name])) for name in names}
        if any(len(each) > 1 for each in of_vrrp.values()):
            notes.append("The instances advertise on several interfaces: pair_vrrp_interface is that of the first one.")
        found.update(_of_members("pair_vrrp_interface", of_vrrp, hosts))
    return found


def _of_members(name: str, found: Dict[str, List[str]], hosts: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
    """Return a variable with the first value of all members, or write each member's own beside it."""
    if len({values[0] for values in found.values()}) == 1:
        return {name: next(iter(found.values()))[0]}
    for member, values in found.items():
        hosts[member][name] = values[0]
    return {}


def _carriers(instance: Instance) -> List[str]:
    """Return the interfaces that carry the addresses of an instance."""
    return [*membership.carriers({**instance, "addresses": _addresses(instance)}).values()]


def _is_apart(instance: Instance) -> bool:
    return {*_carriers(instance)} - {instance["interface"]} != set()


def _common(every: Sequence[Instance], notes: List[str]) -> Dict[str, Any]:
    """Return what a pair has once, and say where instances differ in it."""
    of_version = [each for each in every if not any(":" in address for address in each["addresses"])]
    wanted = {
        "pair_vrrp_version": [each["version"] for each in of_version] or [2],
        "pair_advert_interval": [each["advert_interval"] for each in every],
        "pair_preempt": [each["preempt"] for each in every],
        "pair_multicast": [each["multicast"] for each in every],
        "pair_auth_pass": [each["auth_pass"][:PASSWORD_LENGTH] for each in every],
    }
    usual = {"pair_vrrp_version": 2, "pair_advert_interval": 1, "pair_preempt": True, "pair_multicast": False}
    for name, values in wanted.items():
        if len(set(values)) > 1:
            notes.append(f"The instances differ in {name}: it has that of the first one.")
    found = {name: values[0] for name, values in wanted.items() if values[0] != usual.get(name, "")}
    if isinstance(found.get("pair_advert_interval"), float) and found["pair_advert_interval"].is_integer():
        found["pair_advert_interval"] = int(found["pair_advert_interval"])
    if found.get("pair_advert_interval") == 1:
        del found["pair_advert_interval"]
    if "pair_auth_pass" not in found:
        notes.append("The instances have no password: the first run makes one, and changes it on all members.")
    return found


def _of_texts(members: Sequence[Member], every: Sequence[Instance]) -> Dict[str, Any]:
    """Return what only the statements have."""
    found: Dict[str, Any] = {}
    tracked: List[str] = []
    delays: List[str] = []
    own = {name for each in every for name in (each["interface"], *_carriers(each))}
    for _number, path, words in (each for member in members for each in numbered(member.text)):
        if path == ("vrrp_instance", "track_interface"):
            tracked.append(words[0])
        elif path == ("vrrp_instance",) and words[0] == "preempt_delay" and words[1:]:
            delays.append(words[1])
    checks = [{"interface": name} for name in dict.fromkeys(tracked) if name not in own]
    found.update({"pair_checks": checks} if checks else {})
    if delays and conf.DECIMAL.fullmatch(delays[0]):
        found["pair_preempt_delay"] = int(float(delays[0]))
    return found


def _together(members: Sequence[Member], instances: Dict[str, List[Instance]], notes: List[str]) -> Dict[str, Any]:
    """Return what keeps VIPs together that have moved together."""
    found: Dict[str, Any] = {}
    every = [each for own in instances.values() for each in own]
    families = {":" in address for each in every for address in _addresses(each)}
    groups = [block for member in members for words, block in conf.statements(member.text) if words[:1] == [SYNC]]
    names = {word for block in groups for words, _nested in conf.inside(block, "group") for word in words}
    if groups and names >= {each["name"] for each in every}:
        found["pair_sync"] = True
    elif groups:
        notes.append("A vrrp_sync_group has some of the instances, and pair_sync is for all VIPs: it is not set.")
    elif any(len(_addresses(each)) > 1 for each in every) and (len(families) > 1 or not _in_one(instances)):
        found["pair_sync"] = True
        notes.append("An instance has several VIPs, which moved together: pair_sync keeps them together.")
    return {**found, "pair_one_instance": True} if _in_one(instances) else found


def _in_one(instances: Dict[str, List[Instance]]) -> bool:
    """Whether each member has one instance of each family, with several VIPs of it on one interface."""
    sizes = []
    for own in instances.values():
        if len({where for each in own for where in _carriers(each)}) > 1:
            return False
        for is_ipv6 in (False, True):
            found = [[address for address in _addresses(each) if (":" in address) == is_ipv6] for each in own]
            sizes.append([len(addresses) for addresses in found if addresses])
    return all(len(each) < 2 for each in sizes) and any(size > 1 for each in sizes for size in each)


def _addresses(instance: Instance) -> List[str]:
    return [*instance["addresses"], *instance["excluded_addresses"]]


def _priorities(
    instances: Dict[str, List[Instance]], names: Sequence[str], hosts: int, notes: List[str]
) -> Dict[str, Any]:
    """Return the priorities, where every VIP has the same ones."""
    ranks = {
        tuple(sorted((_priority(instances[name], each["addresses"]) for name in names), reverse=True))
        for each in instances[names[0]]
    }
    found = list(ranks.pop()) if len(ranks) == 1 else []
    if len(found) == hosts and len(set(found)) == hosts and all(0 < each < 255 for each in found):
        return {"pair_priorities": found}
    notes.append("The priorities are the collection's own: the first member of a VIP has the highest one.")
    return {}


def numbered(text: str) -> Iterator[Tuple[int, Tuple[str, ...], List[str]]]:
    """Yield each statement with the number of its line, and with what the blocks around it are."""
    path: List[str] = []
    last: List[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        words: List[str] = []
        for quoted, brace, word, _comment in conf.TOKEN.findall(line):
            if brace == "{":
                if words:
                    yield number, tuple(path), words
                path.append((words or last or [""])[0])
                words, last = [], []
            elif brace:
                if words:
                    yield number, tuple(path), words
                path, words = path[:-1], []
            elif quoted or word:
                words.append(quoted or word)
        if words:
            yield number, tuple(path), words
            last = words


def _left(member: Member) -> Iterator[Tuple[bool, str]]:
    """Yield what no variable of the pair says: whether raw lines have it, and a sentence."""
    apart = {each["name"] for each in conf.instances(member.text) if _is_apart(each)}
    lines: Dict[Tuple[str, str], int] = {}
    for number, path, words in numbered(member.text):
        lines.setdefault((words[0], path[0] if path else ""), number)
    for what, variable in statements.lost(member.text):
        keyword, _of, instance = what.partition(" of vrrp_instance ")
        keyword = keyword.split()[0]
        block = "vrrp_instance" if instance else "global_defs" if variable == statements.OF_ALL else ""
        if keyword in (SYNC, TRACKED) or (keyword == LOST_LINK and instance in apart):
            continue  # which are variables
        place = f"{member.name}: keepalived.conf, line {lines.get((keyword, block), 0)} ({keyword})"
        if variable in RAW:
            yield True, f"{place} is in {variable}."
        elif variable:
            name = variable if variable.startswith("keepalived_") else f"pair_{variable}"
            yield False, f"{place} is left out: set {name} to keep what it does."
        else:
            yield False, f"{place} is left out: no variable replaces it."


def _of_vips(member: Member) -> Iterator[str]:
    """Yield what is said of an address, and a pair cannot say."""
    for number, path, words in numbered(member.text):
        left = [word for before, word in zip(words, words[1:]) if "dev" not in (before, word)]
        place = f"{member.name}: keepalived.conf, line {number} ({words[0]})"
        if path[:1] == ("vrrp_instance",) and path[1:] in [(name,) for name in HELD] and left:
            yield f"{place}: {left[0]} is left out: a VIP of a pair is an address on one interface."


def _raw_lines(members: Sequence[Member], notes: List[str]) -> Dict[str, Any]:
    """Return the statements that raw lines can have, as the first member has them."""
    each = [_raw_of(conf.statements(member.text)) for member in members]
    differing = [member.name for member, lines in zip(members, each) if lines != each[0]]
    if differing:
        notes.append(f"The raw lines of keepalived are those of {members[0].name}; {', '.join(differing)} has others.")
    return {name: lines for name, lines in each[0].items() if lines}


def _raw_of(given: List[conf.Statement]) -> Dict[str, List[str]]:
    of_all = [each for each in conf.inside(given, "global_defs") if each[0][0] not in statements.SAID_OF_ALL]
    blocks = [each for each in given if each[0] and each[0][0] not in ("vrrp_instance", "global_defs")]
    found = {statements.OF_ALL: of_all, statements.OF_A_BLOCK: blocks}
    return {
        name: [
            line
            for words, block in every
            if statements.VARIABLES.get(words[0], name) == name
            for line in _written(words, block)
        ]
        for name, every in found.items()
    }


def _written(words: Sequence[str], block: Sequence[conf.Statement], indent: str = "") -> Iterator[str]:
    line = indent + " ".join(word if PLAIN.fullmatch(word) else f'"{word}"' for word in words)
    yield f"{line} {{" if block else line
    for nested in block:
        yield from _written(*nested, indent=f"{indent}    ")
    if block:
        yield f"{indent}}}"
