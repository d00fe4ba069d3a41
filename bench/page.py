"""Runs the comparisons, and writes docs/benchmarks.md: how each of them measures, and what it printed where and when.

    make bench                                # all of them
    make bench COMPARE="proxy vrrp"           # these; the page keeps what the others printed last
    python3 bench/page.py --unmeasured        # none; writes the page of what all of them printed last

What they print last is kept in .cache/bench. A comparison that was skipped, or whose program failed, keeps its last.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping

ROOT = Path(__file__).resolve().parents[1]
RECORDS, PAGE = ROOT / ".cache" / "bench", ROOT / "docs" / "benchmarks.md"
COMPARISONS = ("packet", "vrrp", "proxy", "direct", "endurance", "lost", "bgp", "deploy")
PROGRAMS = {
    "HAProxy": ("haproxy", "-v"),
    "keepalived": ("keepalived", "--version"),
    "FRR": ("/usr/lib/frr/bgpd", "--version"),
}
VERSION = re.compile(r"\bv?(\d+\.\d+[\w.+~-]*)")
HEAD = """# Benchmarks

<!-- `make bench` writes this file. -->
Each comparison measures its contenders in turns on one machine, so that the ratios say more than the figures. From a
clone, `make bench` repeats all of them as root and writes this page again; `make bench COMPARE="proxy"` repeats one.
"""


def machine() -> str:
    """Return what the figures depend on: processors, memory, kernel and the versions of the programs."""
    name = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    parts = [
        f"{os.cpu_count()} processors ({name[1].strip() if name else platform.machine()})",
        f"{gigabytes:.0f} GB",
        f"Linux {platform.release()}",
        f"Python {platform.python_version()}",
    ]
    return ", ".join([*parts, *(f"{name} {found}" for name, found in versions().items())])


def versions() -> Dict[str, str]:
    """Return the version of each program that is there."""
    found = {}
    for name, command in PROGRAMS.items():
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            continue
        version = VERSION.search(done.stdout + done.stderr)
        found.update({name: version[1]} if version else {})
    return found


def measure(name: str, environment: Mapping[str, str], records: Path) -> bool:
    """Run a comparison, show and record what it prints; return whether it measured, and found nothing out of bounds."""
    script = Path(__file__).with_name(f"{name}.py")
    lines: List[str] = []
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    text = "".join(lines)
    if text.strip() and " skipped: " not in text:
        record = {"output": text, "date": f"{datetime.date.today():%Y-%m-%d}", "machine": machine()}
        records.mkdir(parents=True, exist_ok=True)
        (records / f"{name}.json").write_text(json.dumps(record))
    return process.returncode == 0 and " skipped: " not in text


def method(name: str) -> str:
    """Return how a comparison measures, from its own description, without how it is called."""
    text = ast.get_docstring(ast.parse(Path(__file__).with_name(f"{name}.py").read_text())) or ""
    return "\n\n".join(part for part in text.split("\n\n") if not part.startswith("    "))


def page(records: Mapping[str, Dict[str, Any]]) -> str:
    """Return the page of what the comparisons printed last."""
    measured = [name for name in COMPARISONS if name in records]
    return "\n".join([HEAD, *(line for name in measured for line in _section(name, records[name]))])


def _section(name: str, record: Dict[str, Any]) -> Iterator[str]:
    yield f"## bench/{name}.py\n"
    yield f"{method(name)}\n"
    yield f"Measured on {record['date']}: {record['machine']}.\n"
    yield from (f"    {line}".rstrip() for line in record["output"].strip("\n").splitlines())
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(COMPARISONS)}; all of them by default")
    parser.add_argument("--unmeasured", action="store_true")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.names) - set(COMPARISONS))
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}: known are {', '.join(COMPARISONS)}.")
    names = () if chosen.unmeasured else chosen.names or COMPARISONS
    bad = [name for name in names if not measure(name, os.environ, RECORDS)]
    PAGE.write_text(page({path.stem: json.loads(path.read_text()) for path in RECORDS.glob("*.json")}))
    if bad:
        sys.exit(f"out of bounds, failed or skipped: {', '.join(bad)}")


if __name__ == "__main__":
    main()
