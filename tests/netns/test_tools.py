# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that the tests need are installed, or `make packages` fails."""

from __future__ import annotations

import dataclasses

import pytest
import tools

from lab import machine

NEED = machine.Need(("no-such-program",), apt="for-apt", dnf="for-dnf")


@pytest.fixture
def on(monkeypatch):
    """Return a function that fakes the facts of a machine without one program, and returns what gets installed."""
    installed = []
    monkeypatch.setattr(tools, "NEEDS", (NEED,))
    monkeypatch.setattr(machine, "install", lambda as_root, packages: installed.append((as_root, packages)))
    facts = machine.observe()

    def fake(**changes):
        monkeypatch.setattr(machine, "observe", lambda: dataclasses.replace(facts, **changes))
        return installed

    return fake


@pytest.mark.parametrize("privilege, manager", [("none", "apt-get"), ("root", "dnf"), ("sudo", None)])
def test_a_missing_package_that_cannot_be_installed_is_an_error(on, privilege, manager):
    installed = on(privilege=privilege, package_manager=manager)
    with pytest.raises(SystemExit) as ended:
        tools.main()
    package = "for-dnf" if manager == "dnf" else "for-apt"
    message = f"netns: these packages are missing and cannot be installed from here: {package}."
    assert (ended.value.code, installed) == (message, [])


def test_a_package_that_is_missing_even_after_its_installation_is_an_error(on):
    installed = on(privilege="sudo", package_manager="apt-get")
    with pytest.raises(SystemExit):
        tools.main()
    assert installed == [(("sudo", "-n"), ("for-apt",))]


def test_nothing_is_installed_if_nothing_is_missing(on, monkeypatch):
    installed = on(privilege="root", package_manager="apt-get")
    monkeypatch.setattr(machine, "exists", lambda _name: True)
    tools.main()
    assert installed == []
