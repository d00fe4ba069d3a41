# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The scripts of liveness probes, as a shell runs them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import paths, probes
from support import waiting
from support.plans import pods

# Survives the signal that asks for the instances, once it has printed a line, and writes nothing.
HUNG = "import signal; signal.signal(signal.SIGUSR1, lambda *_: 0); print(flush=True)\nwhile True: signal.pause()"
# Writes its instances when it is asked, as keepalived does, and takes a moment for it.
KEEPALIVED = """
import os, signal, sys, time
folder, count = sys.argv[1], int(sys.argv[2])
def write(*_):
    time.sleep(0.1)
    with open(folder + "/keepalived.data", "w") as data:
        data.write("------< VRRP Topology >------\\n" + " VRRP Instance = one\\n   State = FAULT\\n" * count)
signal.signal(signal.SIGUSR1, write)
with open(folder + "/keepalived.pid", "w") as file:
    file.write(f"{os.getpid()}\\n")
while True:
    time.sleep(1)
"""


@pytest.fixture
def probe(tmp_path):
    """The probe of a keepalived with two instances, with the paths of a container in this folder."""
    text = pods.text("keepalived/alive.sh").replace(probes.DATA, f"{tmp_path}/keepalived.data")
    script = tmp_path / "alive.sh"
    script.write_text(text.replace(paths.PID_FILE, f"{tmp_path}/keepalived.pid").replace("sleep 0.2", 'sleep "$1"'))

    def run(pause):
        return subprocess.run(["/bin/sh", script, str(pause)], check=False, capture_output=True).returncode

    return run


@pytest.fixture
def keepalived(tmp_path):
    started = []

    def start(count):
        started.append(subprocess.Popen([sys.executable, "-c", KEEPALIVED, str(tmp_path), str(count)]))
        pid_file = tmp_path / "keepalived.pid"
        waiting.until(lambda: pid_file.exists() and pid_file.read_text())

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_keepalived_whose_instances_are_at_fault_is_alive(probe, keepalived):
    keepalived(2)
    assert probe(1) == 0


def test_one_that_lacks_an_instance_is_not(probe, keepalived):
    keepalived(1)
    assert probe(0.02) == 1


def test_what_it_has_written_before_does_not_count(probe, tmp_path):
    (tmp_path / "keepalived.data").write_text(" VRRP Instance = one\n" * 2)
    with subprocess.Popen([sys.executable, "-c", HUNG], stdout=subprocess.PIPE) as hung:
        try:
            assert hung.stdout.readline()  # from here on it outlives the signal
            (tmp_path / "keepalived.pid").write_text(f"{hung.pid}\n")
            assert probe(0.02) == 1
        finally:
            hung.kill()


def test_without_a_keepalived_it_is_not_alive(probe):
    assert probe(0.02) == 1


def test_a_sidecar_is_alive_as_long_as_it_touches_its_file(tmp_path):
    file = tmp_path / "alive"
    text = pods.text("sidecar/alive.sh").replace(paths.ALIVE, str(file))

    def probe():
        return subprocess.run(["/bin/sh", "-c", text], check=False, capture_output=True).returncode

    assert probe() != 0
    file.touch()
    assert probe() == 0
    os.utime(file, (time.time() - 60,) * 2)
    assert probe() != 0
