# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays real plays and task lists in this process, on hosts that are not there.

Ansible itself plays them: its strategy, blocks, loops, conditions, handlers and filters. Only its modules, and its
actions that need a host, do not run. The test says what each of them returns. No process is started, no second passes.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple
from unittest import mock

from ansible import constants, context
from ansible.cli import CLI
from ansible.errors import AnsibleConnectionFailure
from ansible.executor import task_executor
from ansible.executor.playbook_executor import PlaybookExecutor
from ansible.executor.stats import AggregateStats
from ansible.executor.task_queue_manager import TaskQueueManager
from ansible.inventory.manager import InventoryManager
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins import strategy
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import init_plugin_loader
from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible.utils.vars import load_options_vars
from ansible.vars.manager import VariableManager
from ansible_collections.onprem.lb.plugins.callback.failures import HIDDEN, CallbackModule

from support import at_once, keywords, prepared_ansible, remembered
from support.paths import COLLECTIONS, PLAYBOOKS
from support.plans import forecasts

COLLECTION = "onprem.lb."
# These need no host, and run as they are; member_lock and package call their modules.
CONTROLLERS = ["assert", "debug", "fail", "set_fact", "validate_argument_spec"]
CONTROLLERS += ["package", "refuse", "member_lock", "layout_members"]
OPTIONS = {
    "diff": False,
    "verbosity": 0,
    "skip_tags": [],
    "forks": 5,
    "connection": "ssh",
    "become": False,
    "become_method": "sudo",
}
OPTIONS.update(dict.fromkeys(("syntax", "listhosts", "listtasks", "listtags", "start_at_task")))
count = AggregateStats.increment
get_handler = task_executor.TaskExecutor._get_action_handler_with_module_context
resolve_conditional = Task._resolve_conditional

Facts = Dict[str, Any]


class Call(NamedTuple):
    """One call of a module, with everything that Ansible has evaluated."""

    module: str
    on: str  # the host that it would have run on
    given: Facts
    check: bool
    hidden: bool
    host: str  # whose task it is
    task: str

    def __str__(self) -> str:
        """Return it as one line, such as `lb1 systemd_service stopped keepalived.service`."""
        words = [self.on, self.module, *(self.given.get(key) for key in ("state", "name", "event"))]
        return " ".join(str(word) for word in words if word)


class Failure(NamedTuple):
    """A task that failed on a host."""

    host: str
    message: Any
    ignored: bool
    unreachable: bool
    hidden: bool
    rescued: bool = False


class Play:
    """What a run has done."""

    def __init__(self, answers: Facts) -> None:
        self.answers = answers
        self.calls: List[Call] = []
        self.failures: List[Failure] = []
        self.said: List[Any] = []
        self.shown: List[str] = []  # what Ansible prints of the tasks with -vvv
        self.hidden: List[Tuple[str, str]] = []  # and what it would print of each other one, by its name
        self.facts: Dict[str, Facts] = {}
        self.last_lines: List[str] = []  # what is printed once the run has ended
        self.code = 0

    def of(self, *modules: str) -> List[Call]:
        """Return the calls of some modules, in order."""
        return [call for call in self.calls if call.module in modules]

    def did(self, *modules: str) -> List[str]:
        """Return the calls of some modules as lines."""
        return [str(call) for call in self.of(*modules)]

    def faults(self) -> List[Any]:
        """Return what ended the run on its hosts, once each."""
        found = [failure.message for failure in self.failures if not failure.ignored]
        return [message for at, message in enumerate(found) if message not in found[:at]]

    def has_failed(self, host: str) -> bool:
        return any(failure.host == host and not failure.ignored for failure in self.failures)

    def requires_reason(self) -> None:
        """Judge that the last ten lines of a failed run, whatever a test has played, say what failed first."""
        ended = [failure for failure in self.failures if not failure.ignored and not failure.rescued]
        found = [HIDDEN if failure.hidden else failure.message for failure in ended]
        first = [str(line) for message in found[:1] for line in (message if isinstance(message, list) else [message])]
        assert len(self.last_lines) <= 10 and bool(self.last_lines) == bool(self.code), self.last_lines
        assert not self.code or first[0].strip() in "\n".join(self.last_lines), (first, self.last_lines)

    def answer(self, call: Call) -> Facts:
        """Return what the test has recorded for a call: a result, several one after the other, or a function of it."""
        self.calls.append(call)
        found = self.answers.get(call.module, {})
        if callable(found):
            found = found(call)
        elif isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        found = {"changed": False, **(found or {})}
        if found.get("unreachable"):
            raise AnsibleConnectionFailure(found.get("msg", "no route to host"))
        return found


def run(
    play: Any,
    groups: Dict[str, Dict[str, Facts]],
    answers: Optional[Facts] = None,
    *,
    check: bool = False,
    limit: str = "all",
    tags: Sequence[str] = ("all",),
    skip_tags: Sequence[str] = (),
    facts: Optional[Dict[str, Facts]] = None,
    **variables: Any,
) -> Play:
    """Play a playbook of the collection by its name, or a list of plays.

    :param groups: the inventory, the variables of each host by its group
    :param answers: by a module's short name, what it returns; nothing but success without it
    :param facts: of each host, as if tasks before had set them
    :param variables: extra variables, which overrule all others
    """
    prepare()
    done = Play(answers or {})
    with tempfile.TemporaryDirectory() as folder, replaced(done):
        path = PLAYBOOKS / f"{play}.yml" if isinstance(play, str) else Path(folder) / "plays.yml"
        if not isinstance(play, str):
            path.write_text(json.dumps(play))
        options = {
            **OPTIONS,
            "check": check,
            "tags": tags,
            "skip_tags": skip_tags,
            "args": [str(path)],
            "subset": limit,
        }
        with mock.patch.object(context, "CLIARGS", ImmutableDict(options)):
            loader = DataLoader()
            inventory = inventory_of(groups, loader)
            inventory.subset(limit)
            manager = VariableManager(loader, inventory, CLI.version_info())
            manager._extra_vars = variables
            for host, known in (facts or {}).items():
                manager.set_nonpersistent_facts(host, known)
            done.code = PlaybookExecutor([str(path)], inventory, manager, loader, {}).run()
    done.facts = dict(manager._nonpersistent_fact_cache)
    done.requires_reason()
    return done


def tasks_of(role: str, file: str = "main.yml", hosts: str = "all", **variables: Any) -> List[Facts]:
    """Return a play of one file of a role's tasks, in which any error is fatal, as in the playbooks."""
    included = {"name": f"{COLLECTION}{role}", "tasks_from": file, "rolespec_validate": False}
    task = {"ansible.builtin.include_role": included, "vars": variables}
    return [{"hosts": hosts, "gather_facts": False, "any_errors_fatal": True, "tasks": [task]}]


def file_of(path: str) -> List[Facts]:
    """Return a play of a file of the playbooks' tasks, on all hosts."""
    task = {"ansible.builtin.include_tasks": str(PLAYBOOKS / path)}
    return [
        {"hosts": "all", "gather_facts": False, "vars_files": [str(PLAYBOOKS / "vars/members.yml")], "tasks": [task]}
    ]


def prepare() -> None:
    """Have Ansible find the collection, once in each process. Its loader has to import the packages itself."""
    if AnsibleCollectionConfig.collection_finder is not None:
        return
    ours = [name for name in sys.modules if name.split(".")[0] == "ansible_collections"]
    packages = {
        name: sys.modules.pop(name) for name in sorted(ours) if getattr(sys.modules[name], "__file__", None) is None
    }
    init_plugin_loader([str(COLLECTIONS)])
    for name, package in packages.items():
        anew = importlib.import_module(name)
        for key, value in vars(package).items():
            if isinstance(value, ModuleType):
                setattr(anew, key, value)


def inventory_of(groups: Dict[str, Dict[str, Facts]], loader: DataLoader) -> InventoryManager:
    inventory = InventoryManager(loader=loader, sources=[], parse=False)
    for group, hosts in groups.items():
        inventory.add_group(group)
        for host, known in hosts.items():
            inventory.add_host(host, group)
            for name, value in known.items():
                inventory.get_host(host).set_variable(name, value)
    inventory.reconcile_inventory()
    return inventory


@contextlib.contextmanager
def replaced(done: Play) -> Iterator[None]:
    """Let Ansible play without workers, modules, output and waiting."""
    clock = SimpleNamespace(sleep=lambda _seconds: None, time=time.time)
    patches = [
        mock.patch.object(strategy, "WorkerProcess", lambda **given: Worker(done, **given)),
        mock.patch.object(task_executor, "time", clock),
        mock.patch.object(constants, "DEFAULT_INTERNAL_POLL_INTERVAL", 0.001),  # a result is there at once
        mock.patch.object(task_executor.TaskExecutor, "_get_action_handler_with_module_context", handler_of(done)),
        mock.patch.object(task_executor.TaskExecutor, "_get_connection", lambda *_given: Unused()),
        mock.patch.object(task_executor.TaskExecutor, "_set_connection_options", lambda *_given: []),
        mock.patch.object(PlayContext, "post_validate", lambda *_given, **_named: None),  # how a host would be reached
        mock.patch.object(ActionBase, "_execute_module", module_of(done)),
        mock.patch.object(TaskQueueManager, "load_callbacks", lambda manager: called_back(manager, done)),
        mock.patch.object(Task, "_resolve_conditional", resolve),
        mock.patch.object(AggregateStats, "increment", increment_of(done)),
        *(mock.patch.object(*each) for each in (*remembered.REPLACED, *at_once.REPLACED, forecasts.REMEMBERED)),
        # Ansible keeps those of the first run in a process, or of whoever reads an inventory before.
        mock.patch.object(load_options_vars, "options_vars", None, create=True),
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


def increment_of(done: Play) -> Callable[..., None]:
    """Return what counts a result as Ansible does, and notes of a failure that a block rescues it."""

    def increment(stats: AggregateStats, what: str, host: str) -> None:
        count(stats, what, host)
        if what == "rescued":
            at = max(at for at, failure in enumerate(done.failures) if failure.host == host)
            done.failures[at] = done.failures[at]._replace(rescued=True)

    return increment


def called_back(manager: TaskQueueManager, done: Play) -> None:
    """Have the manager of a run tell the collection's callback alone, and note what that prints."""
    if not manager._callback_plugins:
        callback = CallbackModule()
        callback._init_callback_methods()
        callback._display = SimpleNamespace(display=lambda text, **_given: done.last_lines.extend(text.splitlines()))
        manager._callback_plugins.append(callback)


class Worker(prepared_ansible.Worker):
    """Does a task at once, and notes what came of it."""

    def __init__(self, done: Play, **given: Any) -> None:
        super().__init__(**given)
        self.done = done

    def ended(self, task: Task, result: Facts) -> None:
        host = self.given.host.name
        if task.no_log or result.get("_ansible_no_log"):
            self.done.hidden.append((task.get_name(False), f"{task.action} {task.args} {result}"))
        else:
            # What a module of the collection was given is neither logged nor returned: see its test.
            given = "" if task.action.startswith(COLLECTION) else task.args
            self.done.shown.append(f"{task.action} {given} {result}")
        keywords.played(task, result, self.done.has_failed(host))
        if result.get("failed") or result.get("unreachable"):
            unreachable = bool(result.get("unreachable"))
            ignored = task.ignore_unreachable if unreachable else task.ignore_errors
            hidden = bool(task.no_log or result.get("_ansible_no_log"))
            self.done.failures.append(Failure(host, result.get("msg"), bool(ignored), unreachable, hidden))


def resolve(task: Task, conditional: List[Any], variables: Facts, **given: Any) -> bool:
    """Evaluate conditions as Ansible does, one after the other, and note what each of them was."""
    for each in conditional:
        holds = resolve_conditional(task, [each], variables, **given)
        keywords.note(each, str(holds))
        if not holds:
            return False
    return True


def call_of(task: Task, variables: Facts, module: str, given: Facts) -> Call:
    host = str(variables["inventory_hostname"])
    plain = json.loads(json.dumps(given, default=str))
    return Call(module, str(task.delegate_to or host), plain, bool(task.check_mode), bool(task.no_log), host, task.name)


def handler_of(done: Play) -> Callable[..., Any]:
    """Return what finds the action of a task: the real one if it needs no host, and one that answers as recorded."""

    def find(executor: Any, templar: Any) -> Any:
        task = executor._task
        name = str(task.action).rpartition(".")[2]
        if name in CONTROLLERS:
            handler, module = get_handler(executor, templar)
            if name == "debug":
                done.said.append(task.args.get("msg"))
            elif name == "refuse" and task.args.get("lines") and not task.args.get("faults"):
                done.said.append(task.args["lines"])
            return handler, module
        return Recorded(lambda variables: done.answer(call_of(task, variables, name, task.args))), None

    return find


class Unused:
    """A connection to a host that nothing is run on: to set a real one up takes a tenth of a play."""

    _load_name = ansible_name = "ssh"
    _shell = SimpleNamespace(_load_name="sh", tmpdir=None)
    become = None
    supports_persistence = force_persistence = connected = False

    def update_vars(self, variables: Facts) -> None:
        pass

    def close(self) -> None:
        pass


class Recorded:
    """An action that returns what the test has recorded."""

    def __init__(self, answer: Callable[[Facts], Facts]) -> None:
        self.answer = answer

    def run(self, task_vars: Facts) -> Facts:
        return self.answer(task_vars)

    def cleanup(self, force: bool = False) -> None:
        pass


def module_of(done: Play) -> Callable[..., Facts]:
    """Return what runs the module of an action that is real."""

    def execute(action: Any, module_name: str = "", *given: Facts, **named: Any) -> Facts:
        name = (module_name or action._task.action).rpartition(".")[2]
        (arguments,) = given or (named["module_args"],)
        return done.answer(call_of(action._task, named["task_vars"], name, arguments))

    return execute
