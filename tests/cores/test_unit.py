# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit tests pass beside every supported ansible-core."""

from __future__ import annotations

from support.paths import ROOT

from .conftest import Controller

TOOLS = ("dnspython", "hypothesis", "jinja2", "pytest", "pytest-xdist", "pyyaml", "scapy")


def test_the_unit_tests_pass(controller: Controller):
    controller.run("pip", "install", "--quiet", *TOOLS)
    controller.run("pytest", "-p", "no:cacheprovider", "--numprocesses", "4", "tests/unit", folder=ROOT)
