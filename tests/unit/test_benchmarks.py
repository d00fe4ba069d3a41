# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/benchmarks.md is what the comparisons printed, with how, where and when; `make bench` writes it."""

from __future__ import annotations

import json
import runpy
import sys

import pytest
from support.paths import ROOT

BENCH = ROOT / "bench"
PRINTED = """
median (lowest to highest)                                             agent                 haproxy   ratio   aim
new connections per second                        8000 (7900 to 8100)     9000 (8900 to 9100)    0.89   0.9 or more
"""
RECORD = {"output": PRINTED, "date": "2026-11-30", "machine": "2 processors (A CPU), 8 GB, Linux 6.1, Python 3.11"}


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.delitem(sys.modules, "page", raising=False)
    import page

    yield page
    del sys.modules["page"]


@pytest.fixture
def comparison(bench, tmp_path, monkeypatch):
    """Return a function that runs a comparison of one line, and returns whether it was good and what was recorded."""

    def run(source):
        (tmp_path / "mine.py").write_text(source)
        monkeypatch.setattr(bench, "__file__", str(tmp_path / "page.py"))
        good = bench.measure("mine", {}, tmp_path / "records")
        records = list((tmp_path / "records").glob("*.json"))
        return good, [json.loads(path.read_text()) for path in records]

    return run


def test_a_section_has_the_method_the_machine_the_date_and_what_was_printed(bench):
    text = bench.page({"proxy": RECORD})
    assert "## bench/proxy.py\n\nCompares the agent's proxy with HAProxy, in turns" in text
    assert f"Measured on 2026-11-30: {RECORD['machine']}." in text
    assert [line.strip() for line in text.splitlines() if line.startswith("    ")] == PRINTED.strip().splitlines()
    assert "python3 bench/proxy.py" not in text and "## bench/vrrp.py" not in text


def test_the_sections_are_in_the_order_of_the_comparisons_which_all_say_how_they_measure(bench):
    text = bench.page(dict.fromkeys(reversed(bench.COMPARISONS), RECORD))
    assert [line[9:-3] for line in text.splitlines() if line.startswith("## ")] == list(bench.COMPARISONS)
    assert all(bench.method(name).count(".") >= 2 for name in bench.COMPARISONS)


@pytest.mark.parametrize("name", runpy.run_path(str(BENCH / "page.py"))["COMPARISONS"])
def test_each_comparison_is_a_program(name):
    assert 'if __name__ == "__main__":' in (BENCH / f"{name}.py").read_text()


def test_what_a_comparison_prints_is_recorded_with_the_machine(comparison, bench):
    good, (record,) = comparison("print('1.00')")
    assert good and record["output"] == "1.00\n" and record["machine"] == bench.machine()
    assert "processors" in record["machine"] and " Linux " in record["machine"]


def test_what_is_out_of_bounds_is_recorded_and_is_no_success(comparison):
    good, (record,) = comparison("print('9.99'); raise SystemExit('out of bounds')")
    assert not good and record["output"] == "9.99\n"


@pytest.mark.parametrize("source", ["print('bench/mine.py: skipped: needs root')", "raise SystemExit(1)"])
def test_what_was_not_measured_leaves_the_last_record(comparison, source):
    comparison("print('1.00')")
    good, (record,) = comparison(source)
    assert not good and record["output"] == "1.00\n"
