# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests need is installed, or its lack is an error."""

from __future__ import annotations

import dataclasses

import pytest
import tools

from lab import machine

NEED = machine.Need(("no-such-program",), apt="for-apt", dnf="for-dnf")


@pytest.fixture
def on(monkeypatch):
    """Set what is seen of the machine, which lacks one program; return what is asked to be installed."""
    installed = []
    monkeypatch.setattr(tools, "NEEDS", (NEED,))
    monkeypatch.setattr(machine, "install", lambda as_root, packages: installed.append((as_root, packages)))
    seen = machine.observe()

    def set_to(**changes):
        monkeypatch.setattr(machine, "observe", lambda: dataclasses.replace(seen, **changes))
        return installed

    return set_to


@pytest.mark.parametrize("privilege, manager", [("none", "apt-get"), ("root", "dnf"), ("sudo", None)])
def test_what_is_missing_and_cannot_be_installed_is_an_error(on, privilege, manager):
    installed = on(privilege=privilege, package_manager=manager)
    with pytest.raises(SystemExit) as ended:
        tools.main()
    package = "for-dnf" if manager == "dnf" else "for-apt"
    said = f"netns: these packages are missing and cannot be installed from here: {package}."
    assert (ended.value.code, installed) == (said, [])


def test_what_is_missing_is_installed_and_its_lack_afterwards_is_an_error(on):
    installed = on(privilege="sudo", package_manager="apt-get")
    with pytest.raises(SystemExit):
        tools.main()
    assert installed == [(("sudo", "-n"), ("for-apt",))]


def test_nothing_is_installed_where_nothing_is_missing(on, monkeypatch):
    installed = on(privilege="root", package_manager="apt-get")
    monkeypatch.setattr(machine, "exists", lambda _name: True)
    tools.main()
    assert installed == []
