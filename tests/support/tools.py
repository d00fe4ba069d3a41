# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings the programs that tests run: installs what is missing, as root or through sudo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Sequence

from support.paths import ROOT

sys.path.insert(0, str(ROOT))

from lab import machine, shell  # noqa: E402
from lab.machine import Need  # noqa: E402

SYSTEMD = Path("/run/systemd/system")
# Their packages start a service; without a configuration the others' do not.
SERVICES = {"frr": "frr.service"}


def missing(needs: Sequence[Need]) -> list[Need]:
    return [need for need in needs if not any(map(machine.exists, need.found_as))]


def bring(stage: str, needs: Sequence[Need]) -> None:
    """Install what is missing.

    :raises SystemExit: something is still missing, with the packages that are to be installed
    """
    facts = machine.observe()
    wanted = tuple(need.apt for need in missing(needs))
    if wanted and facts.package_manager == "apt-get" and facts.privilege in machine.AS_ROOT:
        as_root = machine.AS_ROOT[facts.privilege]
        with shell.step("install " + " ".join(wanted)):
            for service in (SERVICES[package] for package in wanted if package in SERVICES and SYSTEMD.is_dir()):
                shell.run([*as_root, "systemctl", "mask", service])
            machine.install(as_root, wanted)
    left = missing(needs)
    if left:
        names = ", ".join(need.dnf if facts.package_manager == "dnf" else need.apt for need in left)
        sys.exit(f"{stage}: these packages are missing and cannot be installed from here: {names}.")
