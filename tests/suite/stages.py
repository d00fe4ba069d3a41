# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages of each scope. Pure: facts of this machine in, stages out.

The order suits two cores: stages that compute run beside stages that wait. Only the full scope measures time, in a
stage that runs alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Dict, List, Tuple

from support.paths import ROOT
from support.scenarios import EVERY, IMAGE_OF, IMAGES

from .runner import LIMIT_S, Stage

QUICK_RUNS = ("default:debian12", "agent:debian13")  # each engine, each image
# Each worker collects all tests of its stage: 13 s of CPU here, and 2 s in netns.
WORKERS = ("--numprocesses", "3", "--dist", "loadfile")  # these tests wait a third of their time
# These wait most of it. In the order of tests/netns/conftest.py, which begins with the files that take longest. None of
# them has a use for hypothesis, which its plugin imports.
NETNS_WORKERS = (
    *("--numprocesses", "6", "--dist", "loadfile", "--no-loadscope-reorder"),
    *("-p", "no:hypothesispytest"),
)
PLAYED = "tests/unit/playbooks"
NOT_ROOT = ("-m", "not root")
ONCE = "--controller-only"  # without the tests that run under the oldest Python
QUICK_CYCLES = ("pair:deployment", "pair:change", "pair:engine")  # a moment there, and one back
CYCLES = (
    *QUICK_CYCLES,
    *("pair:agent", "pair:retirement"),
    *("ipi:deployment", "ipi:change", "ipi:agent", "ipi:engine", "ipi:retirement"),
)
KILLED = tuple("interruptions:" + cycle for cycle in CYCLES)
LONG_LIMIT_S = 4 * 3600
# How many stages run at once, by whether the scope is full: two that compute, and two that mostly wait. What the full
# scope plays on hosts, with bounds on times, has a core of its own.
AT_ONCE = {False: 4, True: 2}
AS_ROOT: Dict[str, Tuple[str, ...]] = {"root": (), "sudo": ("sudo", "--non-interactive", "--preserve-env")}
NO_RIGHTS = "neither root nor sudo without a password"


@dataclass(frozen=True)
class Request:
    """What the stages depend on: what the user asks for, and what this machine allows."""

    full: bool
    privilege: str  # root, sudo (without a password) or none
    lab_refusal: str  # why this machine cannot run the lab; empty if it can
    programs: Path  # the virtual environment's folder of programs
    python: str  # for stages that run before there is a virtual environment
    logs: Path
    has_oldest: bool  # the oldest Python is here, and tests/pythons.py runs its tests under it
    runs: Tuple[str, ...] = ()  # SCENARIO:IMAGE, in place of the scope's

    def scope_of(self, run: str) -> str:
        """Return the scope of a scenario's run. The matrix plays it in full on one image, and in quick on the other."""
        name, _colon, image = run.partition(":")
        return "full" if self.full and (self.runs or IMAGE_OF[name] == image) else "quick"

    def make(self, target: str, *variables: str) -> Tuple[str, ...]:
        return ("make", "--no-print-directory", target, *variables)


def read_runs(text: str) -> Tuple[str, ...]:
    """Return the scenarios and the interruptions that RUNS names.

    :raises ValueError: one of them is no SCENARIO:IMAGE, or there is no such scenario
    """
    for run in text.split():
        name, _colon, image = run.partition(":")
        if run not in KILLED and (name not in IMAGE_OF or not image):
            known = ", ".join(IMAGE_OF)
            raise ValueError(f"RUNS has {run!r}: it takes SCENARIO:IMAGE, such as default:debian12; there are {known}.")
    return tuple(dict.fromkeys(text.split()))


def setup(request: Request) -> List[Stage]:
    """The tools in the virtual environment, and the system packages that tests need."""
    no_rights = "" if request.privilege in AS_ROOT else NO_RIGHTS
    return [
        Stage("setup", request.make("setup"), counts="prepares"),
        Stage("packages", request.make("packages"), counts="prepares", missing=no_rights),
    ]


def check(request: Request) -> List[Stage]:
    """All static checks."""
    importer = replace(_gate(request, "importer"), needs=("build",))
    return [*(_gate(request, name) for name in ("lint", "build", "ansible-lint", "docs", "sanity")), importer]


def quick_check(request: Request) -> List[Stage]:
    """The static checks that take seconds; ansible-lint and sanity judge only what has changed."""
    changed = [
        replace(_gate(request, name), command=request.make(name, "SINCE=main")) for name in ("sanity", "ansible-lint")
    ]
    return [*changed, *(_gate(request, name) for name in ("lint", "build"))]


def _gate(request: Request, name: str) -> Stage:
    return Stage(name, request.make(name), needs=("setup",))


def compiled(request: Request) -> List[Stage]:
    """What the tests import, compiled once: the workers of a stage begin together, and would each compile all of it."""
    folders = ("tests/unit", "tests/netns") if request.full else ("tests/netns",)  # those whose stage has workers
    command = (str(request.programs / "pytest"), "--collect-only", "-qq", "-p", "no:cacheprovider", *folders)
    return [Stage("compiled", command, counts="prepares", needs=("setup",), after=("packages",))]


def unit(request: Request) -> List[Stage]:
    """The tests that need no host. Without root, those that only root can run go through sudo."""
    if request.privilege == "root":
        return [_pytest(request, "unit", "tests/unit", *WORKERS)]
    return [_pytest(request, "unit", "tests/unit", *NOT_ROOT, *WORKERS), _root_of_unit(request)]


def quick_unit(request: Request) -> List[Stage]:
    """Those that do not run under the oldest Python: each runs once in the quick scope. Without that Python, all.

    They are two stages of one process each, since each worker of one would collect and compile all of them.
    """
    not_root, as_root = ((), ()) if request.privilege == "root" else (NOT_ROOT, (_root_of_unit(request),))
    once = (ONCE,) if request.has_oldest else ()
    rest = _pytest(request, "unit", "tests/unit", f"--ignore={PLAYED}", *once, *not_root)
    played = _pytest(request, "playbooks", PLAYED, *not_root)
    return [*(replace(stage, after=("packages",)) for stage in (rest, played)), *as_root]


def _root_of_unit(request: Request) -> Stage:
    as_root = _as_root(request, _pytest(request, "unit-as-root", "tests/unit", "-m", "root", *WORKERS))
    return replace(as_root, missing="" if request.privilege in AS_ROOT else NO_RIGHTS)


def pythons(request: Request) -> List[Stage]:
    """The tests of the code for targets, under other Pythons."""
    stage = Stage("pythons", (), counts="junit", needs=("setup",))
    command = (str(request.programs / "python"), "tests/pythons.py", "--junit", str(stage.folder(request.logs)))
    return [replace(stage, command=command)]


def cores(request: Request) -> List[Stage]:
    """The archive, installed beside the supported versions of ansible-core; by itself in the quick scope, too.

    In the full scope they deploy to hosts.
    """
    if request.full:
        return [replace(_pytest(request, "cores", "tests/cores"), needs=("setup", "images"))]
    return [_pytest(request, "cores", "tests/cores/test_installed.py")]


def controllers(request: Request) -> List[Stage]:
    """A pair of the lab, deployed by a controller with each setting, way to become root and caller of its list."""
    stage = _pytest(request, "controllers", "tests/controllers")
    return [replace(stage, needs=("setup", "images"), after=("timing", "simulate", "fuzz"), limit_s=LONG_LIMIT_S)]


def netns(request: Request) -> List[Stage]:
    """Tests with real sockets in network namespaces, as root."""
    return [_as_root(request, _pytest(request, "netns", "tests/netns", *NETNS_WORKERS))]


def timing(request: Request) -> List[Stage]:
    """How long a failure, a handover and a change take, as root and alone."""
    static = ("lint", "build", "importer", "ansible-lint", "docs", "sanity")
    work = ("packages", "unit", "unit-as-root", "netns", "pythons", "cores", "images", *static)
    return [replace(_as_root(request, _pytest(request, "timing", "tests/timing")), after=work, alone=True)]


def stressed(request: Request) -> List[Stage]:
    """What tests/stress.py runs on a busy machine that stalls."""
    return [*unit(request), *netns(request)]


def _as_root(request: Request, stage: Stage) -> Stage:
    """Run a stage as root, so that it leaves no file of root's in the user's folders."""
    prefix = AS_ROOT.get(request.privilege, ())
    no_bytecode = ("PYTHONDONTWRITEBYTECODE=1",) if prefix else ()
    path = f"PATH={request.programs}:/usr/sbin:/usr/bin:/sbin:/bin"
    return replace(stage, command=(*prefix, "env", path, *no_bytecode, *stage.command, "-p", "no:cacheprovider"))


def _pytest(request: Request, name: str, *arguments: str) -> Stage:
    stage = Stage(name, (), counts="junit", needs=("setup",), after=("packages", "compiled"))
    junit = f"--junitxml={stage.folder(request.logs) / 'junit.xml'}"
    return replace(stage, command=(str(request.programs / "pytest"), junit, *arguments))


def molecule(request: Request) -> List[Stage]:
    """The images of the lab's hosts, and the scenarios and interruptions on these hosts."""
    chosen = tuple(run for run in request.runs if run not in KILLED)
    runs = chosen if request.runs else (EVERY if request.full else QUICK_RUNS)
    killed = interruptions(request) if set(request.runs) & set(KILLED) else []
    images = dict.fromkeys([*(run.partition(":")[2] for run in runs), *(IMAGES[:1] if killed else ())])
    build = Stage(
        "images",
        (request.python, "lab", "images", *images),
        counts="prepares",
        after=("packages",),
        missing=request.lab_refusal,
    )
    names = tuple(dict.fromkeys(run.partition(":")[0] for run in runs))
    gone = Stage("leftovers", (request.python, "lab", "gone", *names), needs=("images",), after=runs)
    return [
        build,
        *(_scenario(request, run, runs[:at]) for at, run in enumerate(runs)),
        *killed,
        *([gone] if runs else []),
    ]


def _scenario(request: Request, run: str, earlier: Tuple[str, ...]) -> Stage:
    """Return the stage of one run. The runs of a scenario share its lab, so they come one after the other.

    Each scenario has its own folder for molecule's state, because molecule empties that when it destroys a scenario.
    """
    name, _colon, image = run.partition(":")
    same_lab = tuple(other for other in earlier if other.partition(":")[0] == name)
    return Stage(
        run,
        ("molecule", "test", "--scenario-name", name),
        counts="molecule",
        needs=("setup", "images"),
        after=("timing", "simulate", "fuzz", *same_lab),
        environment={
            "LAB_IMAGE": image,
            "SCOPE": request.scope_of(run),
            "NO_COLOR": "1",
            "MOLECULE_JUNIT": str(request.logs / run.replace(":", "-")),
            "MOLECULE_EPHEMERAL_DIRECTORY": str(ROOT / ".cache" / "molecule" / name),
        },
        limit_s=LONG_LIMIT_S if request.full else LIMIT_S,
    )


def interruptions(request: Request) -> List[Stage]:
    """Runs that are killed: six of a pair, or at every moment with each layout. A layout's cycles share its lab."""
    cycles = CYCLES if request.full else QUICK_CYCLES
    names = [run for run in request.runs if run in KILLED] or ["interruptions:" + cycle for cycle in cycles]
    return [_interruptions(request, name, tuple(names[:at]), request.full) for at, name in enumerate(names)]


def sampled_interruptions(request: Request) -> List[Stage]:
    """Runs of each cycle that are killed: one there, and one back. A stage for every moment takes hours."""
    return [_interruptions(request, name, KILLED[:at], False) for at, name in enumerate(KILLED)]


def _interruptions(request: Request, name: str, earlier: Tuple[str, ...], every_moment: bool) -> Stage:
    _interruptions, layout, cycle = name.split(":")
    same_lab = tuple(other for other in earlier if f":{layout}:" in other)
    stage = Stage(
        name,
        (),
        counts="junit",
        needs=("setup", "images"),
        after=("timing", "simulate", "fuzz", *same_lab),
        limit_s=LONG_LIMIT_S,
    )
    moments = () if every_moment else ("--moments", "1")
    logs = ("--logs", str(stage.folder(request.logs)))
    return replace(stage, command=(request.python, "tests/interruptions", layout, cycle, *moments, *logs))


def random_schedules(request: Request) -> List[Stage]:
    """Random schedules for the state machine, and random packets for the decoder."""
    return [
        Stage(name, request.make(name), needs=("setup",), after=("unit", "pythons", "sanity"))
        for name in ("simulate", "fuzz")
    ]


def test(request: Request) -> List[Stage]:
    """All stages of the scope."""
    parts = [
        compiled,
        check,
        unit,
        netns,
        pythons,
        timing,
        random_schedules,
        molecule,
        cores,
        controllers,
        sampled_interruptions,
    ]
    return [stage for part in parts for stage in part(request)] if request.full else quick_test(request)


def quick_test(request: Request) -> List[Stage]:
    """All stages of the quick scope: those that mostly wait, beside long ones of one process, those of several, and
    short ones. No core is idle.
    """
    begin = [*compiled(request), *molecule(request), *quick_unit(request)]
    return [*begin, *netns(request), *pythons(request), *quick_check(request)]


GROUPS: Dict[str, Callable[[Request], List[Stage]]] = {
    "check": check,
    "unit": unit,
    "pythons": pythons,
    "netns": netns,
    "timing": timing,
    "stressed": stressed,
    "cores": lambda request: [*(molecule(request)[:1] if request.full else ()), *cores(request)],
    "molecule": molecule,
    "controllers": lambda request: [*molecule(request)[:1], *controllers(request)],
    "interruptions": lambda request: [*molecule(request)[:1], *interruptions(request)],
    "test": test,
}


def for_group(group: str, request: Request) -> List[Stage]:
    """Return the stages of a group, those that prepare it first.

    :raises KeyError: there is no such group
    """
    return [*setup(request), *GROUPS[group](request)]
