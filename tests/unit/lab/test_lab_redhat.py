# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine, and a lab host, of the RedHat family: what the lab asks for there, and by which name."""

from __future__ import annotations

import dataclasses
import subprocess

import pytest
from support.paths import ROOT

from lab import machine

NOTHING = machine.Facts(
    privilege="root",
    found=frozenset(),
    hybrid_cgroups=False,
    hard_nofile=machine.PODMAN_LIMIT,
    hard_nproc=machine.PODMAN_LIMIT,
    may_raise_limits=True,
    inotify_instances=machine.INOTIFY_ENOUGH,
    package_manager="dnf",
)
# What installs packages in a host, and the name of its package with the program ip.
MANAGERS = {"apt-get": "iproute2", "dnf": "iproute", "zypper": "iproute2"}


EVERY = (*machine.NEEDS, machine.ANY_RUNTIME, *machine.NEEDS_TO_BUILD_DEBIAN)


def install_missing(path):
    """Run that part of a host's script, with nothing on its PATH but what lies in a folder."""
    functions = (ROOT / "lab" / "files" / "host.sh").read_text().rpartition("\nwait_for_systemd\n")[0]
    command = ["/bin/sh", "-c", f"{functions}\ninstall_missing"]
    return subprocess.run(command, env={"PATH": str(path)}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("build_debian, of_it", [(True, EVERY), (False, EVERY[:-2])])
def test_what_is_missing_is_named_as_dnf_knows_it(build_debian, of_it):
    packages = list(dict.fromkeys(need.dnf for need in of_it))
    wanted = machine.plan(NOTHING, build_debian)
    assert list(wanted.packages) == packages and {"iproute", "openssh-clients", "iptables-nft"} < set(packages)
    assert wanted.refusal.endswith(f": sudo dnf install {' '.join(packages)}")


def test_the_same_machine_with_apt_gets_apts_names_and_is_not_refused():
    wanted = machine.plan(dataclasses.replace(NOTHING, package_manager="apt-get"), build_debian=True)
    assert (wanted.packages, wanted.refusal) == (tuple(dict.fromkeys(need.apt for need in EVERY)), None)


@pytest.mark.parametrize("manager", MANAGERS)
def test_a_host_gets_what_it_lacks_from_its_own_manager(manager, tmp_path):
    program = tmp_path / manager
    program.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/told"\n')
    program.chmod(0o755)
    assert install_missing(tmp_path).returncode == 0
    told = (tmp_path / "told").read_text().splitlines()[-1].split()
    assert "install" in told and {"openssh-server", "sudo", "python3", MANAGERS[manager]} < set(told)


def test_a_host_without_any_manager_is_told_what_it_lacks(tmp_path):
    ran = install_missing(tmp_path)
    assert ran.returncode == 1 and "has no apt-get, dnf or zypper" in ran.stderr
