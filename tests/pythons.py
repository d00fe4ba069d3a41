"""Tests the code for targets under other Pythons: the oldest supported one, and with SCOPE=full all later ones, too.

    make pythons
    python3 tests/pythons.py --junit FOLDER

It searches pyenv's folder and the PATH for interpreters. Each gets a virtual environment without Ansible in
.cache/pythons. A version that is missing is reported as skipped, also in its JUnit file.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple
from xml.etree import ElementTree

from support.paths import ROOT
from support.scope import FULL

VENVS = ROOT / ".cache" / "pythons"
UV = Path(sys.executable).with_name("uv")
UNIT = ROOT / "tests" / "unit" / "plugins" / "module_utils"
OLDEST = (3, 8)
# The packages that the tests import; pip chooses versions for the interpreter.
TOOLS = ("aiohttp", "dnspython", "hypothesis", "netaddr", "pytest", "pyyaml", "scapy")
# The folders of tests for code that runs on targets.
TESTS = ("_agent", "_host", "_shared")
# The folders that have a process of their own, at the same time: their tests wait more than they compute. Workers that
# share the tests would each collect all of them, and their reports take a tenth of the time.
APART = {"follow": UNIT / "_agent" / "follow", "proxy": UNIT / "_agent" / "proxy"}
LEFT_OUT = (
    UNIT / "_host" / "deploy" / "test_embedded.py",  # starts Ansible
    UNIT / "_host" / "read" / "test_frr_text.py",  # has frr.conf rendered by Ansible, as the next one
    UNIT / "_host" / "write" / "test_frr.py",
    # Arithmetic: the same under each Python, and long.
    UNIT / "_host" / "states" / "test_announcers.py",
    UNIT / "_host" / "states" / "test_undo_orders.py",
)
NAME = re.compile(r"python3\.\d+")
# This fails in a pyenv shim of a version that is not selected, and in a Debian Python without ensurepip.
PROBE = "import ensurepip, sys, venv; print(*sys.version_info[:2], sys.version_info.releaselevel, sys.executable)"


class Interpreter(NamedTuple):
    """A Python that can create virtual environments."""

    version: Tuple[int, int]
    path: str

    @property
    def name(self) -> str:
        return "{}.{}".format(*self.version)


def candidates(path: str, pyenvs: Iterable[Path], full: bool) -> List[Path]:
    """Return the files that may be interpreters. Those of pyenv come first, because its shims on the PATH are slow.

    :param full: of every version; otherwise only of the oldest
    """
    pattern = "python3.*" if full else "python{}.{}".format(*OLDEST)
    folders = [folder for pyenv in pyenvs for folder in sorted(pyenv.glob("versions/*/bin"))]
    folders += [Path(folder) for folder in path.split(os.pathsep) if folder]
    return [file for folder in folders for file in sorted(folder.glob(pattern)) if NAME.fullmatch(file.name)]


def parse(output: str) -> Optional[Interpreter]:
    """Return the interpreter with this output of PROBE; None for a pre-release, or without such an output."""
    words = output.strip().split(" ", 3)
    if len(words) < 4 or words[2] != "final":
        return None
    return Interpreter((int(words[0]), int(words[1])), words[3])


def probe(candidate: Path) -> str:
    done = subprocess.run([str(candidate), "-c", PROBE], capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout


def find(files: Iterable[Path], probe: Callable[[Path], str] = probe) -> List[Interpreter]:
    """Return one interpreter for each name: the first one that works."""
    interpreters: Dict[str, Interpreter] = {}
    for file in files:
        interpreter = None if file.name in interpreters else parse(probe(file))
        if interpreter:
            interpreters[file.name] = interpreter
    return list(interpreters.values())


def available(full: bool) -> List[Interpreter]:
    """Return the interpreters of this machine."""
    # The pyenv of this Python, and that of the user: through sudo $HOME may be another one.
    pyenvs = [Path(sys.base_prefix).parent.parent, Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")]
    return find(candidates(os.environ["PATH"], pyenvs, full))


def select(available: Iterable[Interpreter], ours: Tuple[int, int], full: bool) -> Dict[str, Optional[Interpreter]]:
    """Return the interpreters to run by version; None is a missing one.

    :param ours: the version under which `make unit` runs, which is excluded
    :param full: every version up to the newest available one; otherwise only the oldest
    """
    by_version = {interpreter.version: interpreter for interpreter in available}
    last = max([OLDEST, *by_version]) if full else OLDEST
    versions = [(OLDEST[0], minor) for minor in range(OLDEST[1], last[1] + 1)]
    return {"{}.{}".format(*version): by_version.get(version) for version in versions if version != ours}


def runs_oldest() -> bool:
    """Return whether the oldest Python is on this machine, and another one than ours."""
    return any(select(available(False), sys.version_info[:2], False).values())


def create_environment(interpreter: Interpreter) -> Path:
    """Return the Python of the interpreter's virtual environment, with the packages that the tests need."""
    folder = VENVS / interpreter.name
    python, ready = folder / "bin" / "python", folder / ".ready"
    versions = ROOT / "test-requirements.txt"
    recipe = f"{interpreter.path} {TOOLS}\n{versions.read_text()}"
    if not ready.exists() or ready.read_text() != recipe:
        run(interpreter.path, "-m", "venv", "--clear", "--without-pip", str(folder)).check_returncode()
        install(str(python), "--quiet", "--constraint", str(versions), *TOOLS)
        # Compiles what the tests import: the processes begin together, and would each compile most of it.
        run(str(python), *pytest_of(*(UNIT / name for name in TESTS)), "--collect-only", "-qq")
        ready.write_text(recipe)
    return python


def install(python: str, *arguments: str) -> None:
    """Install packages for an interpreter, by uv as `make setup` does, or by pip where uv is not there or fails."""
    if not UV.exists() or run(str(UV), "pip", "install", "--python", python, *arguments).returncode:
        run(python, "-m", "ensurepip").check_returncode()
        run(python, "-m", "pip", "install", "--no-compile", *arguments).check_returncode()


def pytest_of(*paths: Path, without: Iterable[Path] = ()) -> List[str]:
    """Return the arguments of Python for pytest with the tests of some folders."""
    ignored = [f"--ignore={path}" for path in (*LEFT_OUT, *without)]
    return ["-m", "pytest", "-p", "no:cacheprovider", *ignored, *map(str, paths)]


def parts() -> Dict[str, List[str]]:
    """Return the arguments of Python for each process that runs a part of these tests."""
    apart = {name: pytest_of(path) for name, path in APART.items()}
    return {**apart, "others": pytest_of(*(UNIT / name for name in TESTS), without=APART.values())}


def runs(path: Path) -> bool:
    """Whether these tests are run under other Pythons."""
    is_of_targets = any(UNIT / name in path.parents for name in TESTS)
    return path.suffix == ".py" and is_of_targets and path not in LEFT_OUT


def run_tests(interpreter: Interpreter, report: Optional[Path]) -> Tuple[bool, str]:
    """Run the tests; return whether they passed, and the output.

    :param report: the JUnit file to write; each process writes one beside it, with its name
    """
    # The quick scope runs these tests under no other Python.
    profile = "each line" if FULL else "quick"
    options = [f"--hypothesis-profile={profile}"]
    try:
        python = create_environment(interpreter)
    except subprocess.CalledProcessError as error:
        output = f"{error}\n{error.output}"
        write_verdict(report, interpreter.name, "error", output)
        return False, output

    def run_part(name: str) -> subprocess.CompletedProcess[str]:
        junit = [f"--junitxml={report.with_name(f'{report.stem}-{name}.xml')}"] if report else []
        return run(str(python), *parts()[name], *options, *junit)

    with ThreadPoolExecutor(len(parts())) as pool:
        done = dict(zip(parts(), pool.map(run_part, parts())))
    failed = [each.stdout for each in done.values() if each.returncode]
    passed = "; ".join(f"{name}: {each.stdout.splitlines()[-1]}" for name, each in done.items() if not each.returncode)
    return not failed, "\n".join([*failed, passed])


def write_verdict(report: Optional[Path], name: str, verdict: str, reason: str) -> None:
    """Write a JUnit file with one test that has not run.

    :param verdict: skipped or error
    """
    if report:
        counts = {"tests": "1", "skipped": "0", "errors": "0", "failures": "0"}
        counts["errors" if verdict == "error" else verdict] = "1"
        suite = ElementTree.Element("testsuite", name="pythons", time="0", **counts)
        case = ElementTree.SubElement(suite, "testcase", classname="pythons", name=name, time="0")
        ElementTree.SubElement(case, verdict, message=reason)
        suites = ElementTree.Element("testsuites")
        suites.append(suite)
        ElementTree.ElementTree(suites).write(report, encoding="utf-8", xml_declaration=True)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a cache of compiled modules, even if the user's environment forbids one."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(VENVS / "compiled")
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--junit", type=Path, help="a folder, for a JUnit file of each version")
    folder = parser.parse_args().junit
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    passed = True
    for name, interpreter in select(available(FULL), sys.version_info[:2], FULL).items():
        report = folder and folder / f"pythons-{name}.xml"
        passed &= run_version(name, interpreter, report)
    return 0 if passed else 1


def run_version(name: str, interpreter: Optional[Interpreter], report: Optional[Path]) -> bool:
    """Test one version and print the result; return whether nothing has failed."""
    if interpreter is None:
        reason = f"there is no Python {name} with venv on this machine"
        print(f"pythons: {name}: skipped: {reason}", flush=True)
        write_verdict(report, name, "skipped", reason)
        return True
    passed, output = run_tests(interpreter, report)
    print(f"pythons: {name}: {output.splitlines()[-1] if passed else output}", flush=True)
    return passed


if __name__ == "__main__":
    sys.exit(main())
