# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python3 tests/interruptions pair --moments 2 deployment change`: kill runs on real hosts, and run them again.

`--part 1/4` takes a quarter of the moments, so that several machines can share them. A task that runs for one member
after the other is interrupted at one of them, another one for each task; with `--every-member` at each. `--done FILE`
leaves out the moments that are `repaired` in tables of earlier kill tests.

Each run is killed at a moment, with all of its processes on the controller. If the VIPs were served before, they must
be served now. After every second change the members must be back as they were before, by themselves and within a
minute; after the others the run is repeated at once. The same run, repeated, must succeed, and leave the hosts as a run
that nobody killed. Every member must be able to take over, and one more run must change nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # this folder is run as a script, not as a package

from support import drill_lock  # noqa: E402

from interruptions import journal  # noqa: E402
from interruptions.hosts import Hosts, difference  # noqa: E402
from interruptions.journal import Journal, Moment  # noqa: E402
from interruptions.operations import LAYOUTS, Cycle, Layout, Operation  # noqa: E402
from lab import hosts as lab_hosts  # noqa: E402
from lab.layout import Lab  # noqa: E402

LIMIT_S = 600  # of one run
SPLIT_SHOWS_S = 5.0  # Active_Down_Interval, and a second
Choose = Callable[[str, List[Moment], Journal], List[Moment]]  # which moments of an operation are interrupted
CALLBACKS = ROOT / "tests" / "interruptions" / "callback"


@dataclass(frozen=True)
class Outcome:
    """What was found after one interruption."""

    operation: str
    moment: Moment
    faults: List[str]
    seconds: float


class Runs:
    """Runs playbooks, whole or killed."""

    def __init__(self, layout: Layout, hosts: Hosts, folder: Path) -> None:
        self.layout, self.hosts, self.folder, self.number = layout, hosts, folder, 0

    def play(self, operation: Operation, moment: Optional[Moment] = None) -> Journal:
        """Run an operation; kill it at a moment, if one is given."""
        inventory = self.hosts.inventory_of(operation.members)
        return self.playbook(operation.playbook, inventory, operation.variables, moment)

    def playbook(self, name: str, inventory: object, variables: object, moment: Optional[Moment] = None) -> Journal:
        self.number += 1
        hosts, events, log = (
            self.folder / f"{self.number:03d}{end}" for end in (".inventory.json", ".journal", ".log")
        )
        events.unlink(missing_ok=True)
        hosts.write_text(json.dumps(inventory))
        environment = {
            **os.environ,
            "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
            "ANSIBLE_CALLBACKS_ENABLED": "interruption",
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "INTERRUPTION_JOURNAL": str(events),
            "INTERRUPTION_TASK": moment.name if moment else "",
            "INTERRUPTION_TIME": str(moment.time) if moment else "",
            "INTERRUPTION_DELAY": str(moment.delay) if moment else "",
        }
        with open(log, "wb") as output:
            subprocess.run(
                [
                    "timeout",
                    "--kill-after=10",
                    str(LIMIT_S),
                    "ansible-playbook",
                    "-i",
                    hosts,
                    "-i",
                    self.layout.inventory,
                    name,
                    "-e",
                    json.dumps(variables),
                ],
                env=environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        return journal.read(events.read_text())

    def fault_of(self, operation: Operation, changes_nothing: bool = False) -> str:
        """Run an operation whole; return what is wrong with it."""
        seen = self.play(operation)
        if seen.changes is None or seen.failed:
            return f"the run failed at {seen.end} ({self.number:03d}.log)"
        changed = [task.name for task in seen.tasks if task.changed]
        if changes_nothing and changed:
            return f"the run after it changed something: {', '.join(changed)} ({self.number:03d}.log)"
        return ""


class Cycles:
    """Interrupts the operations of cycles, one after the other."""

    def __init__(self, runs: Runs, hosts: Hosts, choose: Choose) -> None:
        self.runs, self.hosts, self.choose = runs, hosts, choose
        self.outcomes: List[Outcome] = []

    def interrupt(self, cycle: Cycle) -> None:
        """Go there and back without an interruption, for the moments and the footprints; then with interruptions."""
        for operation in cycle.before:
            self._undisturbed(operation)
        footprints, moments = {}, {}
        for operation in (cycle.there, cycle.back):
            seen = self._undisturbed(operation)
            found = journal.moments(seen)
            if not found:
                raise SystemExit(f"{operation.name} changes nothing: {self.runs.number:03d}.log")
            moments[operation.name] = self.choose(operation.name, found, seen)
            footprints[operation.name] = self.hosts.footprint()
            say(f"{cycle.name}: {operation.name}: {len(moments[operation.name])} of {len(found)} moments")
        both = (cycle.there, cycle.back)
        for at, pair in enumerate(zip_longest(*(moments[operation.name] for operation in both))):
            for side, (operation, moment) in enumerate(zip(both, pair)):
                after, before = footprints[operation.name], footprints[both[1 - side].name]
                is_repeated_later = cycle.is_undone and (at + side) % 2 == 0
                if moment:
                    with drill_lock.take(drill_lock.SHARED):  # a drill begins after it
                        self._one(cycle, operation, moment, after, before if is_repeated_later else None)
                else:
                    self._undisturbed(operation)

    def _undisturbed(self, operation: Operation) -> Journal:
        with drill_lock.take(drill_lock.SHARED):
            seen = self.runs.play(operation)
        if seen.changes is None or seen.failed:
            raise SystemExit(
                f"{operation.name} fails without an interruption, at {seen.end} ({self.runs.number:03d}.log)"
            )
        # As after an interruption: the course of the next run may depend on who holds the VIPs.
        fault = self.hosts.not_taken_over(operation.members) if operation.serves else ""
        if fault:
            raise SystemExit(f"after {operation.name} without an interruption: {fault}")
        return seen

    def _one(
        self,
        cycle: Cycle,
        operation: Operation,
        moment: Moment,
        after: Dict[str, str],
        before: Optional[Dict[str, str]],
    ) -> None:
        """Interrupt an operation and repeat it.

        :param after: what it leaves
        :param before: what the members return to before it is repeated; None if it is repeated at once
        """
        begin = time.monotonic()
        with self.hosts.watching() as watch:
            faults = [self._kill(operation, moment)]
            if cycle.serves:
                faults.append(self._not_served())
            if before:
                faults += [self.hosts.not_returned(before), self.hosts.not_served(self.runs.layout.usual)]
            faults.append(self.runs.fault_of(operation))
        if cycle.serves:
            faults += watch.faults(self.hosts.vips())
        faults.append(difference(after, self.hosts.footprint()))
        if operation.serves:
            faults.append(self.hosts.not_taken_over(operation.members))
        faults.append(self.runs.fault_of(operation, changes_nothing=True))
        faults = [fault for fault in faults if fault]
        self.outcomes.append(Outcome(operation.name, moment, faults, time.monotonic() - begin))
        say(f"{operation.name} at {moment}: {'; '.join(faults) or 'repaired'} ({time.monotonic() - begin:.0f} s)")

    def _kill(self, operation: Operation, moment: Moment) -> str:
        """Run an operation and kill it; return a fault if it was not killed there."""
        seen = self.runs.play(operation, moment)
        where = seen.tasks[-1].name if seen.tasks else ""
        if seen.changes is None and (where == moment.name or moment.delay):
            return ""
        return f"it was not interrupted there, but at {where or 'no task'} ({self.runs.number:03d}.log)"

    def _not_served(self) -> str:
        """Let a split show, if there is one, and say what is missing then."""
        time.sleep(SPLIT_SHOWS_S)
        missing = self.hosts.not_served(self.runs.layout.usual)
        return missing and f"after the interruption: {missing}"


def table(outcomes: List[Outcome]) -> List[str]:
    """Return a table in Markdown."""
    head = ["| interrupted | at | afterwards |", "|---|---|---|"]
    rows = [(one.operation, str(one.moment), "; ".join(one.faults) or "repaired") for one in outcomes]
    return head + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def junit(outcomes: List[Outcome]) -> bytes:
    """Return the outcomes as JUnit does."""
    suite = ElementTree.Element("testsuite", name="interruptions")
    for one in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=one.operation, name=str(one.moment), time=f"{one.seconds:.1f}"
        )
        if one.faults:
            ElementTree.SubElement(case, "failure", message="; ".join(one.faults))
    return ElementTree.tostring(suite)


def say(text: str) -> None:
    print(f"{time.strftime('%T')} {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 tests/interruptions", description=__doc__.splitlines()[0])
    parser.add_argument("layout", choices=LAYOUTS)
    parser.add_argument(
        "cycles", nargs="*", help="deployment, change, agent, engine, retirement; all of them by default"
    )
    parser.add_argument("--moments", type=int, help="of each operation; all of them by default")
    parser.add_argument("--part", type=part, default=(1, 1), help="of the moments of each operation, such as 1/4")
    parser.add_argument(
        "--every-member", action="store_true", help="a task that runs for one member after the other, for each of them"
    )
    parser.add_argument("--starts-only", action="store_true", help="no task in its middle")
    parser.add_argument(
        "--done", type=Path, help="a file with tables of earlier kill tests; what they have repaired is left out"
    )
    parser.add_argument("--logs", type=Path, default=ROOT / ".cache" / "interruptions", help="the folder for logs")
    arguments = parser.parse_intermixed_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the hosts are removed
    layout = LAYOUTS[arguments.layout]
    known = layout.cycles()
    unknown = [name for name in arguments.cycles if name not in known]
    if unknown:
        parser.error(f"there is no cycle {unknown[0]}; there are {', '.join(known)}")
    cycles = [known[name] for name in arguments.cycles or known]

    done = journal.repaired(arguments.done.read_text() if arguments.done else "")

    def choose(operation: str, every: List[Moment], seen: Journal) -> List[Moment]:
        each = every if arguments.every_member else journal.each_once(every, seen)
        wanted = journal.left(journal.starts(each) if arguments.starts_only else each, operation, done)
        return journal.sample(journal.part(wanted, arguments.part), arguments.moments)

    return interrupt(layout, cycles, choose, arguments.logs)


def part(text: str) -> Tuple[int, int]:
    """Read a part such as 1/4."""
    number, _slash, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text} is no part; the first quarter is 1/4")
    return int(number), int(parts)


def interrupt(layout: Layout, cycles: List[Cycle], choose: Choose, logs: Path) -> int:
    """Start the hosts, interrupt the cycles there, and remove the hosts; return the exit code."""
    logs.mkdir(parents=True, exist_ok=True)
    lab = Lab(ROOT, layout.scenario)
    lab_hosts.up(lab, os.environ.get("LAB_IMAGE") or "debian12")
    try:
        hosts = Hosts(layout, lab)
        runs = Runs(layout, hosts, logs)
        if layout.prepare:
            with drill_lock.take(drill_lock.SHARED):
                runs.playbook(layout.prepare, hosts.inventory_of(tuple(layout.groups)), {})
        done = Cycles(runs, hosts, choose)
        for cycle in cycles:
            done.interrupt(cycle)
    finally:
        lab_hosts.down(ROOT, layout.scenario)
    print("\n".join(table(done.outcomes)))
    (logs / "junit.xml").write_bytes(junit(done.outcomes))
    return int(any(one.faults for one in done.outcomes))


if __name__ == "__main__":
    sys.exit(main())
