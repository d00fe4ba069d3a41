# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible finds out anew for each task of each host, found out once in a process: it is the same each time.

A test plays hundreds of tasks, and half of their time goes into this.
"""

from __future__ import annotations

import copy
import functools
from collections import deque
from operator import is_
from pathlib import Path
from types import CodeType
from typing import Any, Deque, Dict, Iterator, List, Tuple

from ansible._internal._templating import _jinja_bits
from ansible._internal._templating._jinja_bits import AnsibleEnvironment, _TemplateCompileContext
from ansible._internal._templating._utils import TemplateContext
from ansible.module_utils.common.sentinel import Sentinel
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.base import FieldAttributeBase
from ansible.plugins.loader import Jinja2Loader, PluginLoader
from ansible.vars import manager

UNCHANGED = {"vars", "defaults", "meta", "tasks", "handlers", "playbooks"}  # folders
compile_template = AnsibleEnvironment.compile
wrap_variables = _jinja_bits._flatten_and_lazify_vars
load_from_file = DataLoader.load_from_file
find_plugin = PluginLoader.find_plugin_with_context
find_filter = Jinja2Loader.get_with_context
clean_facts = manager.clean_facts
# Of the last templars. What is wrapped refers to its templar, so as a part of that it would be garbage for long.
wrappings: Deque[Tuple[Any, Dict[str, Any], List[Any]]] = deque(maxlen=16)
codes: Dict[Tuple[str, bool], CodeType] = {}
files: Dict[Any, Any] = {}
plugins: Dict[Any, Any] = {}
filters: Dict[Any, Any] = {}
KEPT = ("_loader", "_variable_manager", "_origin", "_validated", "_finalized", "_uuid", "_ds")  # by a copy of a task
SHARED = {type, type(None), str, bool, int}  # values of which a copy would be the same


def compiled(environment: Any, source: Any, *given: Any, **options: Any) -> Any:
    """Compile a template once, and not at each of its uses."""
    if given or options or environment.overlayed:
        return compile_template(environment, source, *given, **options)
    lexing = _TemplateCompileContext.current(optional=True)
    text = str.__str__(source) if isinstance(source, str) else repr(source)
    key = (text, bool(lexing and lexing.escape_backslashes))
    if key not in codes:
        codes[key] = compile_template(environment, source)
    return codes[key]


def wrapped(variables: Any) -> Iterator[Any]:
    """Wrap the variables of a task once, and evaluate each of them once: not again for each template that names it."""
    context = TemplateContext.current(optional=True)
    if context is None or variables is not context.templar._variables or type(variables) is not dict:  # pylint: disable=unidiomatic-typecheck
        return wrap_variables(variables)
    for templar, made_of, found in (*wrappings,):  # a thread of Ansible may add one meanwhile
        if templar is context.templar and is_same(made_of, variables):  # some are set while a task runs
            return iter(found)
    found = [*wrap_variables(variables)]
    wrappings.append((context.templar, {**variables}, found))
    return iter(found)


def is_same(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    """Return whether two mappings have the very same objects."""
    return one.keys() == other.keys() and all(map(is_, one.values(), map(other.__getitem__, one)))


def load(loader: DataLoader, file_name: str, *given: Any, **options: Any) -> Any:
    """Load a file; those of roles and playbooks, which nobody changes, once and without copies.

    What Ansible adds to a task of them is the same each time: the collections of its role.
    """
    if not UNCHANGED & {*Path(file_name).parts}:
        return load_from_file(loader, file_name, *given, **options)
    key = (file_name, given, *sorted(options.items()))
    if key not in files:
        files[key] = load_from_file(loader, file_name, *given, **{**options, "unsafe": True})
    return files[key]


def found(loader: PluginLoader, name: str, *given: Any, **options: Any) -> Any:
    """Find a plugin that has its full name, for which no list of collections is searched."""
    if name.count(".") < 2 or given or {*options} - {"collection_list"}:
        return find_plugin(loader, name, *given, **options)
    if (loader.package, name) not in plugins:
        plugins[loader.package, name] = find_plugin(loader, name, **options)
    return copy.copy(plugins[loader.package, name])


def found_filter(loader: Jinja2Loader, name: str, *given: Any, **options: Any) -> Any:
    """Find a filter or a test, or that it is none: Jinja2's own are searched in the collections first, at each use."""
    key = (loader.type, name)
    if key not in filters:
        try:
            filters[key] = find_filter(loader, name, *given, **options)
        except KeyError:
            filters[key] = None
    if filters[key] is None:
        raise KeyError(name)
    return filters[key]


def cleaned(facts: Dict[str, Any]) -> Dict[str, Any]:
    """Clean facts, if there are any: otherwise it takes a look at every connection plugin."""
    return clean_facts(facts) if facts else {}


@functools.lru_cache(maxsize=None)
def fields_of(kind: Any) -> Tuple[str, ...]:
    """Return where objects of a class of Ansible's keep what a file says of them."""
    return tuple(f"_{name}" for name in kind.fattributes)


def copied(item: FieldAttributeBase) -> FieldAttributeBase:
    """Copy a task, a block or a play as Ansible does, which asks its attributes and copies each value: 40 of a task."""
    ours, new = vars(item), type(item)()
    for name in fields_of(type(item)):
        value = ours.get(name, Sentinel)
        vars(new)[name] = value if type(value) in SHARED else copy.copy(value)
    vars(new).update((name, ours[name]) for name in KEPT if name in ours)
    return new


WRAPPED = (_jinja_bits, "_flatten_and_lazify_vars", wrapped)
REPLACED: List[Tuple[Any, str, Any]] = [
    WRAPPED,
    (AnsibleEnvironment, "compile", compiled),
    (DataLoader, "load_from_file", load),
    (PluginLoader, "find_plugin_with_context", found),
    (Jinja2Loader, "get_with_context", found_filter),
    (manager, "clean_facts", cleaned),
    (FieldAttributeBase, "copy", copied),
]


def remember(*others: Tuple[Any, str, Any]) -> None:
    """Replace these, and others, in a process that does nothing but run Ansible."""
    for owner, name, function in (*REPLACED, *others):
        setattr(owner, name, function)
