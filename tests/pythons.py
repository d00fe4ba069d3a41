"""What runs on a target, tested under other Pythons: the oldest that is promised; with SCOPE=full all from it on.

    make pythons
    python3 tests/pythons.py --junit FOLDER

Interpreters are looked for in pyenv's folder and on the PATH; each gets a virtual environment without Ansible in
.cache/pythons. One that is not here is skipped, which is said, and written into its JUnit file like what the others
have done.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple
from xml.etree import ElementTree

from support.paths import ROOT
from support.scope import FULL

VENVS = ROOT / ".cache" / "pythons"
UNIT = ROOT / "tests" / "unit" / "plugins" / "module_utils"
OLDEST = (3, 8)
WORKERS = "4"  # the tests wait more than they work
# What the tests import; pip takes versions that this Python can run.
TOOLS = ("hypothesis", "netaddr", "pytest", "pytest-xdist", "pyyaml", "scapy")
# The agent, and what else the modules do on a target.
TESTS = ("_agent", "_host", "_shared")
STARTS_ANSIBLE = UNIT / "_host" / "deploy" / "test_embedded.py"
NAME = re.compile(r"python3\.\d+")
# A shim of pyenv's fails while its version is not chosen, and a Debian Python may lack ensurepip.
ASK = "import ensurepip, sys, venv; print(*sys.version_info[:2], sys.version_info.releaselevel, sys.executable)"


class Interpreter(NamedTuple):
    """A Python that can make virtual environments."""

    version: Tuple[int, int]
    path: str

    @property
    def name(self) -> str:
        return "{}.{}".format(*self.version)


def candidates(path: str, pyenvs: Iterable[Path]) -> List[Path]:
    """Return what may be an interpreter. pyenv's own come first, for its shims on the PATH are slow."""
    folders = [folder for pyenv in pyenvs for folder in sorted(pyenv.glob("versions/*/bin"))]
    folders += [Path(folder) for folder in path.split(os.pathsep) if folder]
    return [file for folder in folders for file in sorted(folder.glob("python3.*")) if NAME.fullmatch(file.name)]


def understood(said: str) -> Optional[Interpreter]:
    """Return the interpreter that answered ASK with this, unless it is a pre-release or no interpreter at all."""
    words = said.strip().split(" ", 3)
    if len(words) < 4 or words[2] != "final":
        return None
    return Interpreter((int(words[0]), int(words[1])), words[3])


def asked(candidate: Path) -> str:
    done = subprocess.run([str(candidate), "-c", ASK], capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout


def found(files: Iterable[Path], ask: Callable[[Path], str] = asked) -> List[Interpreter]:
    """Return one interpreter for each name: the first that answers."""
    answers: Dict[str, Interpreter] = {}
    for file in files:
        interpreter = None if file.name in answers else understood(ask(file))
        if interpreter:
            answers[file.name] = interpreter
    return list(answers.values())


def chosen(here: Iterable[Interpreter], ours: Tuple[int, int], full: bool) -> Dict[str, Optional[Interpreter]]:
    """Return what is to run, by version; None is missing.

    :param ours: the version under which `make unit` runs, which is left out
    :param full: each version up to the newest here; else the oldest alone
    """
    by_version = {interpreter.version: interpreter for interpreter in here}
    last = max([OLDEST, *by_version]) if full else OLDEST
    versions = [(OLDEST[0], minor) for minor in range(OLDEST[1], last[1] + 1)]
    return {"{}.{}".format(*version): by_version.get(version) for version in versions if version != ours}


def made(interpreter: Interpreter) -> Path:
    """Return the Python of the interpreter's environment, which has what the tests need."""
    folder = VENVS / interpreter.name
    python, ready = folder / "bin" / "python", folder / ".ready"
    versions = ROOT / "test-requirements.txt"
    recipe = f"{interpreter.path} {TOOLS}\n{versions.read_text()}"
    if not ready.exists() or ready.read_text() != recipe:
        run(interpreter.path, "-m", "venv", "--clear", str(folder)).check_returncode()
        install = ("-m", "pip", "install", "--quiet", "--constraint", str(versions), *TOOLS)
        run(str(python), *install).check_returncode()
        ready.write_text(recipe)
    return python


def tested(interpreter: Interpreter, report: Optional[Path]) -> Tuple[bool, str]:
    """Run the tests; return whether all is well, and what was said.

    :param report: the JUnit file to write
    """
    pytest = ["-m", "pytest", "-p", "no:cacheprovider", "--hypothesis-profile=each line", "--numprocesses", WORKERS]
    pytest.append(f"--ignore={STARTS_ANSIBLE}")
    if report:
        pytest.append(f"--junitxml={report}")
    try:
        done = run(str(made(interpreter)), *pytest, *(str(UNIT / name) for name in TESTS))
    except subprocess.CalledProcessError as error:
        said = f"{error}\n{error.output}"
        write_verdict(report, interpreter.name, "error", said)
        return False, said
    return done.returncode == 0, done.stdout


def write_verdict(report: Optional[Path], name: str, verdict: str, why: str) -> None:
    """Write a JUnit file of one test that has not run.

    :param verdict: skipped or error
    """
    if report:
        counts = {"tests": "1", "skipped": "0", "errors": "0", "failures": "0"}
        counts["errors" if verdict == "error" else verdict] = "1"
        suite = ElementTree.Element("testsuite", name="pythons", time="0", **counts)
        case = ElementTree.SubElement(suite, "testcase", classname="pythons", name=name, time="0")
        ElementTree.SubElement(case, verdict, message=why)
        suites = ElementTree.Element("testsuites")
        suites.append(suite)
        ElementTree.ElementTree(suites).write(report, encoding="utf-8", xml_declaration=True)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where each module is compiled once, also where the user's environment says otherwise."""
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
    # The one that this Python is of, or the user's: $HOME may be another.
    pyenvs = [Path(sys.base_prefix).parent.parent, Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")]
    here = found(candidates(os.environ["PATH"], pyenvs))
    good = True
    for name, interpreter in chosen(here, sys.version_info[:2], FULL).items():
        report = folder and folder / f"pythons-{name}.xml"
        good &= reported(name, interpreter, report)
    return 0 if good else 1


def reported(name: str, interpreter: Optional[Interpreter], report: Optional[Path]) -> bool:
    """Test one version, and say how that went; return whether nothing has failed."""
    if interpreter is None:
        why = f"there is no Python {name} with venv on this machine"
        print(f"pythons: {name}: skipped: {why}", flush=True)
        write_verdict(report, name, "skipped", why)
        return True
    passed, said = tested(interpreter, report)
    print(f"pythons: {name}: {said.splitlines()[-1] if passed else said}", flush=True)
    return passed


if __name__ == "__main__":
    sys.exit(main())
