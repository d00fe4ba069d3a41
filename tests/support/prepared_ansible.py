# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that has imported Ansible and this collection, and runs `ansible-playbook` in copies of itself.

To import them takes more than half of a short run: Ansible compiles a collection's modules anew each time, and reads
what each filter is. A copy of this process begins after that, with Ansible's own main().

Each line of the input is a run, `Run` as JSON. The answer is a line with its exit code.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback
import warnings
from typing import NamedTuple


class Run(NamedTuple):
    """One run of `ansible-playbook`."""

    arguments: list[str]
    home: str  # also the working directory
    stdout: str
    stderr: str


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
    for each in (loader.filter_loader, loader.test_loader, loader.callback_loader):
        list(each.all(class_only=True))


def play(run: Run) -> int:
    """Run Ansible's main() in a copy of this process; return its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os._exit(main_of_ansible(run))
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
    for line in sys.stdin:
        print(play(Run(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
