# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that has imported Ansible and this collection, and runs `ansible-playbook` in copies of itself.

To import them takes more than half of a short run: Ansible compiles a collection's modules anew each time, and reads
what each filter is. A copy of this process begins after that, with Ansible's own main(). It does its tasks itself,
because the processes that Ansible starts for each task of each host take most of the rest.

Each line of the input is a run, `Run` as JSON. The answer is a line with its exit code.
"""

from __future__ import annotations

import gc
import importlib
import json
import marshal
import os
import sys
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple


class Run(NamedTuple):
    """One run of `ansible-playbook`."""

    arguments: list[str]
    home: str  # also the working directory
    stdout: str
    stderr: str


class Worker:
    """Does a task at once, in place of the process that Ansible would start for it."""

    def __init__(self, **given: Any) -> None:
        self.given = SimpleNamespace(**given)

    def start(self) -> None:
        given, executor = self.given, importlib.import_module("ansible.executor.task_executor")
        task = given.task.copy(exclude_parent=True, exclude_tasks=True)
        task._parent = given.task._parent
        wanted = (given.host, task, given.task_vars, given.play_context, given.loader, given.shared_loader_obj)
        with importlib.import_module("ansible._internal._task").TaskContext(task):
            result = executor.TaskExecutor(*wanted, given.final_q, given.variable_manager).run()
        self.ended(task, result)
        raw_result = importlib.import_module("ansible.executor.task_result")._RawTaskResult
        given.final_q.send_task_result(raw_result(given.host, task, result, task.dump_attrs()))

    def ended(self, task: Any, result: dict) -> None:
        """Is told of each result before Ansible is."""

    def is_alive(self) -> bool:
        return False

    def close(self) -> None:
        pass


def prepare() -> None:
    """Import what each run needs. The environment counts now: Ansible reads its settings when it is imported."""
    cli = importlib.import_module("ansible.cli.playbook")
    loader = importlib.import_module("ansible.plugins.loader")
    loader.init_plugin_loader()
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    importlib.import_module("ansible_collections.ansible.builtin")
    importlib.import_module(cli.PlaybookExecutor.__module__)
    preload = importlib.import_module("ansible_collections.onprem.lb.plugins.plugin_utils.preload")
    preload.import_filters_and_lookups()
    preload.compile_templates()
    for name in ("action", "become", "callback", "connection", "filter", "shell", "strategy", "test"):
        list(getattr(loader, f"{name}_loader").all(class_only=True))
    importlib.import_module("ansible.plugins.strategy").WorkerProcess = Worker
    sys.path.append(str(Path(__file__).parent.parent))
    remembered, at_once = (importlib.import_module(f"support.{name}") for name in ("remembered", "at_once"))
    remembered.remember(*at_once.REPLACED)


def play(run: Run) -> int:
    """Run Ansible's main() in a copy of this process, and keep what it has compiled; return its exit code."""
    codes = importlib.import_module("support.remembered").codes
    known, (read, write) = {*codes}, os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        with open(read, "rb") as pipe:
            codes.update(marshal.loads(pipe.read() or marshal.dumps({})))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        code = main_of_ansible(run)
        with open(write, "wb") as pipe:
            pipe.write(marshal.dumps({key: codes[key] for key in codes if key not in known}))
        os._exit(code)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(255)


def main_of_ansible(run: Run) -> int:
    for number, path in enumerate((os.devnull, run.stdout, run.stderr)):
        os.dup2(os.open(path, os.O_RDWR), number)
    os.umask(0o077)
    os.chdir(run.home)
    os.environ["HOME"] = run.home
    sys.argv = ["ansible-playbook", *run.arguments]
    try:
        importlib.import_module("ansible.cli.playbook").main(sys.argv)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def main() -> None:
    prepare()
    gc.collect()
    gc.freeze()  # what all copies share is not written to by their garbage collection
    gc.disable()
    for line in sys.stdin:
        print(play(Run(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
