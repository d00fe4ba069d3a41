"""What runs on a target, tested under the oldest Python that is promised and the newest of this machine.

    make pythons

Interpreters are looked for in pyenv's folder and on the PATH; each gets a virtual environment without Ansible in
.cache/pythons. One that is not here is skipped with a sentence.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".cache" / "pythons"
UNIT = ROOT / "tests" / "unit" / "plugins" / "module_utils"
OLDEST = (3, 8)
# What the tests import; pip takes versions that this Python can run.
TOOLS = ("hypothesis", "netaddr", "pytest", "pyyaml", "scapy")
# The agent, and what else the modules do on a target.
TESTS = [
    "_agent",
    *("test_archive.py", "test_drill.py", "test_engine.py", "test_engine_host.py", "test_engine_plan.py"),
    *("test_engine_units.py", "test_files.py", "test_firewall.py", "test_firewall_system.py", "test_host.py"),
    *("test_keepalived.py", "test_listener.py", "test_mover.py", "test_neighbours.py", "test_pair_check.py"),
    *("test_platforms.py", "test_probe.py", "test_prober.py", "test_segment.py", "test_sources.py"),
]
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


def chosen(here: Iterable[Interpreter], ours: Tuple[int, int]) -> Dict[str, Optional[Interpreter]]:
    """Return what is to run, by what it is for; None is missing.

    :param ours: the version under which `make unit` runs; the newest is only asked for where it is another one
    """
    by_version = {interpreter.version: interpreter for interpreter in here}
    newest = max([*by_version, ours])
    runs: Dict[str, Optional[Interpreter]] = {}
    if ours != OLDEST:
        runs["{}.{}, the oldest that is promised".format(*OLDEST)] = by_version.get(OLDEST)
    if newest != ours:
        runs["{}.{}, the newest here".format(*newest)] = by_version[newest]
    return runs


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


def tested(interpreter: Interpreter) -> Tuple[bool, str]:
    """Run the tests; return whether all is well, and what was said."""
    pytest = ("-m", "pytest", "-p", "no:cacheprovider", "--hypothesis-profile=quick")
    try:
        done = run(str(made(interpreter)), *pytest, *(str(UNIT / name) for name in TESTS))
    except subprocess.CalledProcessError as error:
        return False, f"{error}\n{error.output}"
    return done.returncode == 0, done.stdout


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def main() -> int:
    # The one that this Python is of, or the user's: $HOME may be another.
    pyenvs = [Path(sys.base_prefix).parent.parent, Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")]
    good, results = True, {}
    # The tests wait more than they work: two runs at once take little longer than one.
    with ThreadPoolExecutor() as pool:
        for what, interpreter in chosen(found(candidates(os.environ["PATH"], pyenvs)), sys.version_info[:2]).items():
            if interpreter:
                results[what] = pool.submit(tested, interpreter)
            else:
                print(f"pythons: {what}, is not on this machine: skipped", flush=True)
    for what, result in results.items():
        passed, said = result.result()
        print(f"pythons: {what}: {said.splitlines()[-1] if passed else said}")
        good &= passed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
