# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is to run, by scope. Pure: facts of this machine in, stages out.

The order is made for two cores: what only works runs beside what only waits, and what measures time runs alone. Two
scenarios run side by side; while one of them drills, the other waits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Dict, List, Tuple

from support.paths import ROOT
from support.scenarios import EVERY, IMAGE_OF

from .runner import Stage

QUICK_RUNS = ("default:debian12", "agent:debian13")  # each engine, each image
WORKERS = ("--numprocesses", "4", "--dist", "loadfile")  # tests wait half of their time
WAITERS = (
    "--numprocesses",
    "3",
    "--dist",
    "loadfile",
)  # plays, which wait nearly all of it
AS_ROOT: Dict[str, Tuple[str, ...]] = {"root": (), "sudo": ("sudo", "--non-interactive", "--preserve-env")}
NO_RIGHTS = "neither root nor sudo without a password"


@dataclass(frozen=True)
class Here:
    """What the stages depend on: what was asked for, and what this machine allows."""

    full: bool
    privilege: str  # root, sudo (without a password) or none
    lab_refusal: str  # why this machine cannot carry the lab, or nothing
    programs: Path  # the virtual environment's folder of programs
    python: str  # that runs before there is one
    logs: Path
    runs: Tuple[str, ...] = ()  # SCENARIO:IMAGE, to run others than the scope's

    def make(self, target: str, *variables: str) -> Tuple[str, ...]:
        return ("make", "--no-print-directory", target, *variables)


def read_runs(text: str) -> Tuple[str, ...]:
    """Return the scenarios that RUNS names.

    :raises ValueError: one of them is no SCENARIO:IMAGE, or there is no such scenario
    """
    for run in text.split():
        name, _colon, image = run.partition(":")
        if name not in IMAGE_OF or not image:
            known = ", ".join(IMAGE_OF)
            raise ValueError(f"RUNS has {run!r}: it takes SCENARIO:IMAGE, such as default:debian12; there are {known}.")
    return tuple(dict.fromkeys(text.split()))


def setup(here: Here) -> List[Stage]:
    """The tools of the virtual environment, and the packages that tests call."""
    no_rights = "" if here.privilege in AS_ROOT else NO_RIGHTS
    return [
        Stage("setup", here.make("setup"), counts="prepares"),
        Stage("packages", here.make("packages"), counts="prepares", missing=no_rights),
    ]


def check(here: Here) -> List[Stage]:
    """The static gates; the slow ones where all of it is wanted."""
    return [_gate(here, name) for name in ("lint", "build", "ansible-lint", "docs", "sanity")]


def quick_check(here: Here) -> List[Stage]:
    return [_gate(here, name) for name in ("lint", "build")]


def _gate(here: Here, name: str) -> Stage:
    return Stage(name, here.make(name), needs=("setup",))


def unit(here: Here) -> List[Stage]:
    """Tests of what needs no host; those that only root can run through sudo where it must be."""
    if here.privilege == "root":
        return [_pytest(here, "unit", "tests/unit", *WORKERS)]
    no_rights = "" if here.privilege in AS_ROOT else NO_RIGHTS
    plain = _pytest(here, "unit", "tests/unit", "-m", "not root", *WORKERS)
    as_root = _as_root(here, _pytest(here, "unit-as-root", "tests/unit", "-m", "root", *WORKERS))
    return [plain, replace(as_root, missing=no_rights)]


def pythons(here: Here) -> List[Stage]:
    """What runs on a target, under other Pythons."""
    stage = Stage("pythons", (), counts="junit", needs=("setup",))
    command = (str(here.programs / "python"), "tests/pythons.py", "--junit", str(stage.folder(here.logs)))
    return [replace(stage, command=command)]


def netns(here: Here) -> List[Stage]:
    """Tests with real sockets in network namespaces, as root; what is held against milliseconds runs alone."""
    work = ("packages", "unit", "unit-as-root", "pythons", "images", "lint", "build", "ansible-lint", "docs", "sanity")
    side_by_side = _as_root(here, _pytest(here, "netns", "tests/netns", "-m", "not timed", *WORKERS))
    timed = _as_root(here, _pytest(here, "netns-timed", "tests/netns", "-m", "timed", *WAITERS))
    return [side_by_side, replace(timed, after=(*work, "netns"), alone=True)]


def _as_root(here: Here, stage: Stage) -> Stage:
    """Leave no file of root's in the user's folders."""
    prefix = AS_ROOT.get(here.privilege, ())
    leave_nothing = ("PYTHONDONTWRITEBYTECODE=1",) if prefix else ()
    path = f"PATH={here.programs}:/usr/sbin:/usr/bin:/sbin:/bin"
    return replace(stage, command=(*prefix, "env", path, *leave_nothing, *stage.command, "-p", "no:cacheprovider"))


def _pytest(here: Here, name: str, *arguments: str) -> Stage:
    stage = Stage(name, (), counts="junit", needs=("setup",), after=("packages",))
    junit = f"--junitxml={stage.folder(here.logs) / 'junit.xml'}"
    return replace(stage, command=(str(here.programs / "pytest"), junit, *arguments))


def molecule(here: Here) -> List[Stage]:
    """The scenarios on real systemd hosts, and the images of these hosts."""
    runs = here.runs or (EVERY if here.full else QUICK_RUNS)
    images = tuple(dict.fromkeys(run.partition(":")[2] for run in runs))
    build = Stage(
        "images",
        (here.python, "lab", "images", *images),
        counts="prepares",
        after=("packages",),
        missing=here.lab_refusal,
    )
    names = tuple(dict.fromkeys(run.partition(":")[0] for run in runs))
    gone = Stage("leftovers", (here.python, "lab", "gone", *names), needs=("images",), after=runs)
    return [build, *(_scenario(here, run, runs[:at]) for at, run in enumerate(runs)), gone]


def _scenario(here: Here, run: str, earlier: Tuple[str, ...]) -> Stage:
    """A scenario has one lab: its run on another image comes after this one's.

    It has a folder for molecule's state of its own, too: molecule empties it whenever a scenario is destroyed.
    """
    name, _colon, image = run.partition(":")
    same_lab = tuple(other for other in earlier if other.partition(":")[0] == name)
    return Stage(
        run,
        ("molecule", "test", "--scenario-name", name),
        counts="molecule",
        needs=("setup", "images"),
        after=("netns-timed", "simulate", "fuzz", *same_lab),
        environment={
            "LAB_IMAGE": image,
            "NO_COLOR": "1",
            "MOLECULE_JUNIT": str(here.logs / run.replace(":", "-")),
            "MOLECULE_EPHEMERAL_DIRECTORY": str(ROOT / ".cache" / "molecule" / name),
        },
    )


def random_schedules(here: Here) -> List[Stage]:
    """A million schedules through the state machine, a million packets through the decoder."""
    return [
        Stage(name, here.make(name), needs=("setup",), after=("unit", "pythons", "sanity"))
        for name in ("simulate", "fuzz")
    ]


def test(here: Here) -> List[Stage]:
    """All that the scope has."""
    parts = [quick_check, unit, netns, pythons, molecule]
    if here.full:
        parts = [check, unit, netns, pythons, random_schedules, molecule]
    return [stage for part in parts for stage in part(here)]


GROUPS: Dict[str, Callable[[Here], List[Stage]]] = {
    "check": check,
    "unit": unit,
    "pythons": pythons,
    "netns": netns,
    "molecule": molecule,
    "test": test,
}


def for_group(group: str, here: Here) -> List[Stage]:
    """Return the stages of a group, what they need first.

    :raises KeyError: there is no such group
    """
    return [*setup(here), *GROUPS[group](here)]
