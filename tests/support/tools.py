# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installs the programs that tests run, as root or through sudo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Sequence

from support.paths import ROOT

sys.path.insert(0, str(ROOT))

from lab import machine, shell  # noqa: E402
from lab.machine import Need  # noqa: E402

SYSTEMD = Path("/run/systemd/system")
# By package: the service that it would start. The other packages' services do not start without a configuration.
SERVICES = {
    "bind9": "named.service",
    "frr": "frr.service",
    "haproxy": "haproxy.service",
    "prometheus": "prometheus.service",
}


def missing(needs: Sequence[Need]) -> list[Need]:
    return [need for need in needs if not any(map(machine.exists, need.found_as))]


def install_missing(stage: str, needs: Sequence[Need]) -> None:
    """Install the missing programs.

    :raises SystemExit: a program is still missing; the message names its package
    """
    facts = machine.observe()
    packages = tuple(need.apt for need in missing(needs))
    if packages and facts.package_manager == "apt-get" and facts.privilege in machine.AS_ROOT:
        as_root = machine.AS_ROOT[facts.privilege]
        with shell.step("install " + " ".join(packages)):
            for service in (SERVICES[package] for package in packages if package in SERVICES and SYSTEMD.is_dir()):
                shell.run([*as_root, "systemctl", "mask", service])
            machine.install(as_root, packages)
    remaining = missing(needs)
    if remaining:
        names = ", ".join(need.dnf if facts.package_manager == "dnf" else need.apt for need in remaining)
        sys.exit(f"{stage}: these packages are missing and cannot be installed from here: {names}.")
