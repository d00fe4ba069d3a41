# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads mappings that a user wrote: fills in defaults, and reports each fault as a sentence with its place.

Argument specs refuse wrong types before a role starts, but they know no ranges, fill no nested
defaults, and do not reach the filters. A schema is a dict of key -> Field; ``read`` never raises.
"""

from __future__ import annotations

import collections
import functools
import ipaddress
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

Faults = List[str]

WHOLE, DECIMAL = re.compile(r"-?[0-9]{1,18}"), re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
ENDS = frozenset("\0\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which no file can have
# With what follows, in a text that was to be a list, a mapping or a path.
SECRET = re.compile(r"((?:auth_pass|password)\b|-----BEGIN).+")
# The keys whose texts may have a secret: raw lines, commands and options of servers behind the first word, paths and
# URLs behind a question mark.
QUERIES = ("path", "paths", "url", "any_of")
ARGUMENTS = (
    *("lines", "frontend_lines", "backend_lines", "global_lines", "defaults_lines", "extra_lines", "options"),
    *("command", "notify", "script", "start_commands", "stop_commands", *QUERIES),
)
# The words of raw lines behind which stands another one of HAProxy's.
DOUBLE = re.compile(r"(?:no|option|timeout|stats|(?:http|tcp)-(?:request|response|after-response|check)) +[a-z-]+")
FIRST = re.compile(r"\S*")
MAX_SHOWN = 200  # characters of a value in a sentence
# Reading a server takes the address apart several times, which is most of the time for ten thousand servers.
ip_address = functools.lru_cache(maxsize=1 << 15)(ipaddress.ip_address)


class Field(NamedTuple):
    """One key of a mapping.

    ``check`` takes the value and returns ``(value as the program wants it, None)`` or
    ``(None, what is wrong)``, the latter worded to follow "PLACE is VALUE: ".
    """

    check: Callable[[Any], Tuple[Any, Optional[str]]]
    default: Any = None
    required: bool = False
    secret: bool = False  # whether no sentence may show the value


def read(schema: Mapping[str, Field], data: Any, place: str, faults: Faults) -> Dict[str, Any]:
    """Return every key of ``schema`` with a usable value; append what is wrong to ``faults``."""
    if not isinstance(data, dict):
        keys, mend = ", ".join(schema), _as_type(schema, data)
        faults.append(f"{place} is {shown(data)}: a mapping with the keys {keys} is required{mend}.")
        return {key: field.default for key, field in schema.items()}
    faults.extend(unknown_keys(data, list(schema), place))
    result = {}
    for key, field in schema.items():
        value = data.get(key)
        if value is None:
            if field.required:
                faults.append(f"{place} lacks '{key}': add it.")
            result[key] = field.default
            continue
        result[key], wrong = field.check(value)
        if wrong:
            it = f"a secret ({_kind_of(value)})" if field.secret else shown_of(key, value)
            faults.append(f"{place}.{key} is {it}: {wrong}")
            result[key] = field.default
    return result


def _as_type(schema: Mapping[str, Field], data: Any) -> str:
    """Return the mend for a text that is the type of what the mapping describes, such as that of a check."""
    is_type = "type" in schema and isinstance(data, str) and not schema["type"].check(data)[1]
    return f": write {{type: {data}}}" if is_type else ""


def refused(faults: Faults, place: str, *keys: str) -> bool:
    """Whether a value of these keys was refused, or the whole: no rule judges the default, which nobody wrote."""
    begins = (f"{place} is ", *(f"{place}.{key} is " for key in keys))
    return any(fault.startswith(begins) for fault in faults)


def read_list(schema: Mapping[str, Field], data: Any, place: str, faults: Faults) -> List[Dict[str, Any]]:
    """Read a list of mappings with one schema; names must be unique."""
    if not isinstance(data, list):
        faults.append(f"{place} is {shown(data)}: {no_list(data, 'a list')}")
        return []
    items = [read(schema, item, place_of(place, at, item), faults) for at, item in enumerate(data)]
    faults.extend(same_names(items, place))
    return items


def place_of(place: str, at: int, item: Any) -> str:
    """Return how faults refer to an item of a list: by its number, and its name if that is valid."""
    name = item.get("name") if isinstance(item, dict) else None
    return f"{place}[{at}] ({name})" if name and word(name)[0] else f"{place}[{at}]"


def placed(place: str, items: List[Dict[str, Any]]) -> List[Tuple[str, Dict[str, Any]]]:
    return [(place_of(place, at, item), item) for at, item in enumerate(items)]


def same_names(items: List[Dict[str, Any]], place: str) -> Faults:
    names = repeated([item["name"] for item in items if item["name"]])
    return [f"{place} has the name '{name}' twice: give each its own." for name in names]


def undefined(named: List[Dict[str, Any]], defined: Optional[List[Dict[str, Any]]], place: str) -> Faults:
    """Return a sentence for each named item that is not defined. One without a name was refused.

    :param defined: None where some were refused, of which one may be meant
    """
    known = None if defined is None else [item["name"] for item in defined]
    if known is None or None in known:
        return []
    return [
        f"{place} names '{item['name']}', which is not defined: known are {', '.join(known) or 'none'}."
        for item in named
        if item["name"] not in (None, *known)
    ]


def counted(items: Sequence[Any], name: str) -> str:
    return f"{len(items)} {name}{'' if len(items) == 1 else 's'}"


def no_notes(_settings: Any, _has_interface: Callable[[str], bool]) -> List[str]:
    """Of a configuration in which nothing is odd that is no fault: see `check-config`."""
    return []


def repeated(names: List[str]) -> List[str]:
    return sorted(name for name, times in collections.Counter(names).items() if times > 1)


def shown(value: Any) -> str:
    """Return a value for a sentence, without the contents of mappings, which may be secret, and not too long."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return "a list of mappings or lists"
    text_of_it = SECRET.sub(r"\1 ...", _written(value))
    return text_of_it if len(text_of_it) <= MAX_SHOWN else f"{text_of_it[:MAX_SHOWN]}..."


def _written(value: Any) -> str:
    """Return a value in the words of an inventory."""
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else repr(value) if isinstance(value, str) else str(value)


def shown_of(key: str, value: Any) -> str:
    """Return the value of a key for a sentence, without arguments, which may be secret."""
    return shown(_without_arguments(key, value) if key in ARGUMENTS else value)


def _without_arguments(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_without_arguments(key, each) for each in value]
    begin, rest = parted(key, value) if isinstance(value, str) else (value, "")
    return f"{begin} ..." if rest else value


def parted(key: str, given: str) -> Tuple[str, str]:
    """Return how a text of `ARGUMENTS` begins, which anybody may see, and the rest of it."""
    if key in QUERIES:
        path, _sign, query = given.partition("?")
        return path, query
    line = given.strip()
    begin = (DOUBLE.match(line) or FIRST.match(line)).group()  # type: ignore[union-attr]
    return begin, line[len(begin) :].strip()


def _kind_of(value: Any) -> str:
    """Return what a value is, without a word of it."""
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}
    return next((kind for types, kind in kinds.items() if isinstance(value, types)), f"a {type(value).__name__}")


def unknown_keys(data: Any, known: List[str], place: str) -> Faults:
    """Return a sentence for each key that is not known, with the nearest one that is."""
    sentences = []
    for key in data:
        if key in known:
            continue
        near = nearest(str(key), known)
        mend = f"did you mean '{near}'?" if near else f"known are {', '.join(known)}."
        sentences.append(f"{place} has the unknown key {str(key)!r}: {mend}")
    return sentences


def nearest(name: str, known: List[str], cutoff: float = 0.6) -> Optional[str]:
    """Return the known word that was probably meant."""
    import difflib  # only needed for a fault, and the agent stays small

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=cutoff)), None)


def text(value: Any) -> Tuple[Any, Optional[str]]:
    """Any text without what some program takes for the end of a line, or of the text."""
    if isinstance(value, str) and ENDS.isdisjoint(value) and not SURROGATE.search(value):
        return value, None
    is_bare = not isinstance(value, (str, list, dict))  # what YAML takes for a number, a date or a truth value
    return None, f"one line of text is required{': put it into quotes' if is_bare else ''}."


def mapping(value: Any) -> Tuple[Any, Optional[str]]:
    """A mapping whose keys somebody else judges."""
    return (value, None) if isinstance(value, dict) else (None, "a mapping is required.")


def word(value: Any) -> Tuple[Any, Optional[str]]:
    """A name that haproxy and keepalived both take: letters, digits and . : _ - only."""
    if isinstance(value, str) and value and all(c.isalnum() or c in ".:_-" for c in value) and value.isascii():
        return value, None
    return None, "a name of letters, digits and . : _ - is required."


def boolean(value: Any) -> Tuple[Any, Optional[str]]:
    """A truth value, as YAML or as an INI inventory (where it is text) gives it."""
    known = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    found = known.get(str(value).lower())
    return (found, None) if found is not None else (None, "true or false is required.")


def lines(value: Any) -> Tuple[Any, Optional[str]]:
    """Raw configuration: a list of lines, or one text of several lines."""
    if isinstance(value, str):
        value = value.splitlines()
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return [line.rstrip() for line in value], None
    return None, "a list of lines is required."


def address(value: Any) -> Tuple[Any, Optional[str]]:
    """An IPv4 or IPv6 address, in its shortest form. What follows a % is a name, which may contain anything."""
    if "%" in str(value):
        return None, "leave out the % and what follows."
    try:
        return str(ip_address(str(value))), None
    except ValueError:
        return None, "an IPv4 or IPv6 address is required."


def number(low: float, high: float, unit: str = "") -> Callable[[Any], Tuple[Any, Optional[str]]]:
    """A number between two bounds, both allowed."""

    def check(value: Any) -> Tuple[Any, Optional[str]]:
        found = _number(value)
        if found is None or not low <= found <= high:
            bare = _number(value[:-1]) if unit and isinstance(value, str) and value.endswith("s") else None
            mend = f", without a unit: write {value[:-1]}" if bare is not None and low <= bare <= high else ""
            return None, f"a number from {low:g} to {high:g}{unit} is required{mend}."
        return (int(found) if found.is_integer() else found), None

    return check


def _number(value: Any) -> Optional[float]:
    """Return a number that is one, or a text of digits; Python's float() reads 1_0, 1e3 and every alphabet's digits."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        return float(value) if is_number or DECIMAL.fullmatch(str(value)) else None
    except OverflowError:
        return None


def integer(low: int, high: int, what: str = "a whole number") -> Callable[[Any], Tuple[Any, Optional[str]]]:
    """A whole number between two bounds, both allowed."""

    def check(value: Any) -> Tuple[Any, Optional[str]]:
        found = int(str(value)) if WHOLE.fullmatch(str(value)) else None
        if found is None or not low <= found <= high:
            return None, f"{what} from {low} to {high} is required."
        return found, None

    return check


port = integer(1, 65535, "a port")


def one_of(*choices: str) -> Callable[[Any], Tuple[Any, Optional[str]]]:
    """One of a few words."""

    def check(value: Any) -> Tuple[Any, Optional[str]]:
        if value in choices:
            return value, None
        near = nearest(value, list(choices), cutoff=0.7) if isinstance(value, str) else None
        return None, f"one of {', '.join(choices)} is required{f': did you mean {near}?' if near else '.'}"

    return check


def no_list(value: Any, wanted: str, example: str = "") -> str:
    """Return the mend for what is no list: one item alone, a mapping, or a text that lacks the quotes of JSON.

    :param example: a list of texts; nothing where the items are mappings
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        return f'{wanted} is required, and this is a string: put each item into double quotes, as in ["a", "b"].'
    if isinstance(value, dict) and value:
        named = all(isinstance(item, dict) for item in value.values())
        return (
            f"{wanted} is required: write [ ] around {'the items, and move each key into its item' if named else 'it'}."
        )
    return f"{wanted} is required{f', such as {example}' if example and isinstance(value, str) else ''}."


def no_addresses(value: Any) -> str:
    """Return the mend for what is no list of addresses, or an empty one."""
    return no_list(value, "a list of at least one address", '["192.0.2.10"]')


def list_of(
    each: Callable[[Any], Tuple[Any, Optional[str]]], at_least: int = 0, key: str = ""
) -> Callable[[Any], Tuple[Any, Optional[str]]]:
    """A list whose every item passes ``each``; with the key by which `shown_of` knows what an item may hide."""

    def check(value: Any) -> Tuple[Any, Optional[str]]:
        if not isinstance(value, list):
            return None, no_list(value, "a list", '["a", "b"]')
        if len(value) < at_least:
            return None, f"a list of {at_least} or more is required."
        found = []
        for item in value:
            good, wrong = each(item)
            if wrong:
                return None, f"in it {shown_of(key, item)} is wrong: {wrong}"
            found.append(good)
        return found, None

    return check


def anything(value: Any) -> Tuple[Any, Optional[str]]:
    """Any value: a nested part that has a schema of its own."""
    return value, None
