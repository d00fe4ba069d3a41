# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The liveness probes of all containers, and their script as a shell runs it."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import probes
from support.plans import pods

RESOURCES = "/usr/local/lib/onprem-lb-agent/alive.sh"
TOUCHED = {
    "sidecar": "/run/onprem-lb-vrrp/sidecar.alive",
    "vrrp": "/run/onprem-lb-vrrp/vrrp.alive",
    "anycast": "/run/onprem-lb-vrrp/anycast.alive",
    "follow": "/run/onprem-lb-follow/follow.alive",
}
ASKED = {"haproxy", "proxy"}
BY_THE_SIDECAR, BY_WATCHFRR = {"keepalived"}, {"frr"}
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


def containers():
    for name, engine, more in itertools.product(
        ("master-0", "worker-0"), ("native", "agent"), ({"preset": "upstream"}, {"preset": "ocp45"}, {}, pods.BGP)
    ):
        made = pods.made(name, engine=engine, **more, **pods.FOLLOW)
        for manifest in made.manifests.values():
            yield from ((each["name"], each, manifest) for each in manifest["spec"]["containers"])


def test_each_container_is_one_of_the_table():
    assert {name for name, _container, _pod in containers()} == {*TOUCHED, *ASKED, *BY_THE_SIDECAR, *BY_WATCHFRR}


def test_no_probe_starts_an_interpreter_or_is_impatient():
    for name, container, _pod in containers():
        probe = container.get("livenessProbe")
        if name in BY_THE_SIDECAR | BY_WATCHFRR:
            assert probe is None
            continue
        assert ("httpGet" in probe) == (name in ASKED)
        if name in TOUCHED:
            assert probe["exec"]["command"] == ["/bin/sh", RESOURCES, TOUCHED[name]]
        assert probe["failureThreshold"] * probe["timeoutSeconds"] >= 120  # seconds of a node that runs nothing else


def test_the_program_is_told_which_file_it_touches_and_may_write_there():
    for name, container, _pod in containers():
        environment = {each["name"]: each["value"] for each in container["env"]}
        assert environment.get("ONPREM_LB_ALIVE", "") == TOUCHED.get(name, "")
        if name in TOUCHED:
            mounts = {each["mountPath"]: each.get("readOnly", False) for each in container["volumeMounts"]}
            assert mounts[os.path.dirname(TOUCHED[name])] is False


def test_a_keepalived_has_a_sidecar_beside_it_that_ends_it():
    for name, _container, manifest in containers():
        if name in BY_THE_SIDECAR:
            assert "sidecar" in [each["name"] for each in manifest["spec"]["containers"]]


class Probe:
    """The script, and the file that a program touches; each touch is some seconds after the one before."""

    def __init__(self, folder, shell):
        self.file, self._script, self._shell = folder / "it.alive", folder / "alive.sh", shell
        self._script.write_text(probes.SCRIPT)
        self._at = 1_000_000

    def touch(self, seconds=2):
        self._at += seconds
        self.file.touch()
        os.utime(self.file, (self._at, self._at))

    def __call__(self):
        shell = [self._shell, "sh"] if self._shell == "busybox" else [self._shell]
        return subprocess.run([*shell, self._script, self.file], check=False).returncode


@pytest.fixture(params=SHELLS)
def probe(request, tmp_path):
    return Probe(tmp_path, request.param)


def test_a_program_is_alive_as_long_as_it_touches_its_file(probe):
    for _time in range(3):
        probe.touch()
        assert probe() == 0
    assert [probe(), probe()] == [1, 1]
    probe.touch()
    assert [probe(), probe()] == [0, 1]


def test_a_clock_that_is_set_makes_nobody_dead(probe):
    for seconds in (2, -86400, 2, 86400, 2):
        probe.touch(seconds)
        assert probe() == 0


def test_a_probe_that_comes_late_makes_nobody_dead(probe):
    """However old the file is, it was touched since the probe before."""
    probe.touch()
    assert probe() == 0
    probe.touch(600)
    assert probe() == 0


def test_what_it_does_not_know_is_no_failure(probe):
    assert probe() == 0  # there is no file
    probe.touch()
    seen = probe.file.with_name("it.alive.seen")
    seen.mkdir()  # neither can what it sees be written
    (seen / "other").touch()
    assert probe() == 0
