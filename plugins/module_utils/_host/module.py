# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An AnsibleModule that neither logs nor returns a text which may be secret.

AnsibleModule logs each call with all its arguments, before a module can name its secrets, and returns the arguments
with the result. Here an option is logged if its type says that it is no secret: a truth value, a number, a path, one of
several choices, or what the argument spec marks with ``no_log: False``.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from ansible.module_utils.basic import AnsibleModule

from . import masking

PLAIN = ("bool", "int", "float", "path")
NOT_LOGGED = "NOT_LOGGED"
PACKED = "packed"  # the option with a program: no secret, and to look for it in what is said would take seconds
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
Spec = Mapping[str, Mapping[str, Any]]


def search_path(given: str) -> str:
    """Return PATH with the folders of root's programs, which su and the secure_path of sudo may leave out."""
    folders = [folder for folder in given.split(os.pathsep) if folder]
    return os.pathsep.join([*folders, *(folder for folder in SBIN if folder not in folders)])


def shown(spec: Spec, given: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the arguments as a log may have them."""
    return {name: _shown(spec.get(name, {}), value) for name, value in given.items()}


def _shown(option: Mapping[str, Any], value: Any) -> Any:
    if _is_plain(option) or value in (None, "", [], {}):
        return value
    if "options" in option and isinstance(value, dict):
        return shown(option["options"], value)
    if "options" in option and isinstance(value, list):
        return [_shown({"options": option["options"]}, each) for each in value]
    return NOT_LOGGED


def _is_plain(option: Mapping[str, Any]) -> bool:
    marked = option.get("no_log")
    kind = option.get("elements", "") if option.get("type") == "list" else option.get("type", "str")
    return (kind in PLAIN or "choices" in option or marked is False) and not marked


def _kept(spec: Spec, given: Mapping[str, Any]) -> Iterator[Any]:
    """Yield ``(option, value)`` of what `shown` leaves out."""
    for name, value in given.items():
        option = spec.get(name, {})
        if name == PACKED:
            continue
        for each in value if isinstance(value, list) and "options" in option else [value]:
            if "options" in option and isinstance(each, dict):
                yield from _kept(option["options"], each)
            elif _shown(option, each) == NOT_LOGGED:
                yield option, each


def _texts(value: Any) -> List[str]:
    """Return all texts of a value."""
    if isinstance(value, dict):
        return [text for each in value.items() for text in _texts(each)]
    if isinstance(value, (list, tuple)):
        return [text for each in value for text in _texts(each)]
    return [str(value)]


class Module(AnsibleModule):
    """Masks in all that it says what its options with ``no_log`` have, and the passwords of files."""

    running: Optional[Module] = None
    is_valid = False  # whether its arguments are

    def __init__(self, argument_spec: Dict[str, Dict[str, Any]], **given: Any) -> None:
        super().__init__(argument_spec=argument_spec, **given)
        Module.running = self
        os.environ["PATH"] = search_path(os.environ.get("PATH", os.defpath))
        self.is_valid = True
        self.no_log_values.clear()  # with them AnsibleModule would mask each 1 if that is somebody's password

    def _log_invocation(self) -> None:
        logged = {name: str(value) for name, value in shown(self.argument_spec, self.params).items()}
        words = " ".join(f"{name}={value}" for name, value in logged.items())
        self.log(f"Invoked with {words}" if words else "Invoked", log_args=logged)

    def masks(self) -> masking.Masks:
        kept = list(_kept(self.argument_spec, self.params))
        if not self.is_valid:  # what is wrong with an argument has its value
            return masking.Masks(text for _option, value in kept for text in _texts(value))
        secrets = [text for option, value in kept if option.get("no_log") for text in _texts(value)]
        others = [value for option, value in kept if not option.get("no_log")]
        return masking.Masks(
            secrets, [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in others]
        )

    def warn(self, warning: str, **given: Any) -> None:
        super().warn(self.masks().text(warning), **given)

    def _return_formatted(self, kwargs: Dict[str, Any]) -> None:
        """Print the result, also that of `fail_json`, with the trace that AnsibleModule has added to it."""
        arguments = {"module_args": shown(self.argument_spec, self.params)}
        super()._return_formatted({**self.masks().all(kwargs), "invocation": arguments})


def ending_in_words(main: Callable[[], None]) -> Callable[[], None]:
    """Have a module's fault end in a sentence: Python's own words may quote any argument."""

    @functools.wraps(main)
    def guarded() -> None:
        try:
            main()
        except Exception as fault:
            if Module.running is None:
                raise
            Module.running.is_valid = False
            Module.running.fail_json(msg=f"This is a bug in the collection: {type(fault).__name__}: {fault}")

    return guarded
