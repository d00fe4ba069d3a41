# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make bench` installs each program that a comparison runs, so that none of them skips itself."""

from __future__ import annotations

import ast
import re
import runpy

import pytest
from support.paths import ROOT

COMPARISONS = sorted(ROOT.glob("bench/*.py"))
TOOLS = ("bench/tools.py", "tests/netns/tools.py", "tests/unit/tools.py")
INSTALLED = {name for file in TOOLS for need in runpy.run_path(str(ROOT / file))["NEEDS"] for name in need.found_as}
PRESENT = {"sh", "ss", "ansible-playbook"}  # in every Debian, in the package of ip, in the virtual environment
# Words before an option that are no program.
SUBCOMMANDS = {"anycast", "proxy", "vrrp", "up", "down", "install", "pair"}


def texts(node):
    """Return the texts in a call's arguments or in a list; an empty one in place of anything else."""
    parts = node.args if isinstance(node, ast.Call) else getattr(node, "elts", ())
    return [str(part.value) if isinstance(part, ast.Constant) else "" for part in parts]


def programs(source):
    """Return what a comparison runs: the words that are followed by an option in a list or a call."""
    lists = [texts(node) for node in ast.walk(ast.parse(source))]
    followed = {first for each in lists for first, second in zip(each, each[1:]) if second.startswith("-")}
    return {word for word in followed if re.fullmatch(r"[a-z][a-z0-9-]*", word)} - SUBCOMMANDS


@pytest.mark.parametrize("file", COMPARISONS, ids=lambda file: file.name)
def test_each_program_that_a_comparison_runs_is_installed(file):
    assert programs(file.read_text()) <= INSTALLED | PRESENT


@pytest.mark.parametrize("file", COMPARISONS, ids=lambda file: file.name)
def test_each_program_without_which_a_comparison_skips_itself_is_installed(file):
    asked = re.findall(r"(?:NEEDED|needed) = (\(.*\))|skip_reason\((['\"].*?['\"])\)", file.read_text())
    words = {word for pair in asked for word in re.findall(r"[\"'](\S+?)[\"']", "".join(pair))}
    assert words <= INSTALLED


def test_programs_are_recognised():
    assert {"haproxy", "iperf3", "curl", "wrk", "nft", "ip"} <= set().union(
        *(programs(file.read_text()) for file in COMPARISONS)
    )


def test_make_bench_installs_them_first():
    recipe = (ROOT / "Makefile").read_text().partition("\nbench: ")[2].split("\n\n")[0].splitlines()
    assert recipe[0].startswith("setup packages ")
    assert recipe[1].strip() == "$(PYTHON) bench/tools.py"
