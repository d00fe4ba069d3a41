# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ports that tests listen at."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import ports
from support.ports import Ports

TAKE_TWO = """
import sys
from pathlib import Path
from support.ports import Ports
print(*Ports({first}, 1024, Path({locks!r})).take(2), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def first():
    """The highest of some ports that are free."""
    return ports.free_ports(20)[0]


@pytest.fixture
def locks(tmp_path):
    return tmp_path / "locks"


def test_threads_are_given_different_ports(first, locks):
    taken = Ports(first, 1024, locks)
    with ThreadPoolExecutor(4) as pool:
        found = [port for each in pool.map(taken.take, [5] * 4) for port in each]
    assert sorted(set(found)) == sorted(found) and len(found) == 20


def test_a_process_is_not_given_what_another_one_has_until_that_one_ends(first, locks):
    command = [sys.executable, "-c", TAKE_TWO.format(first=first, locks=str(locks))]
    support = Path(ports.__file__).parents[1]
    other = subprocess.Popen(command, cwd=support, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        theirs = [int(word) for word in other.stdout.readline().split()]
        mine = Ports(first, 1024, locks).take(2)
    finally:
        other.communicate("")
    assert len(theirs) == 2 and not set(theirs) & set(mine)
    assert Ports(first, 1024, locks).take(2) == theirs


def test_two_clones_share_no_port(tmp_path):
    clone = tmp_path / "tests" / "support"
    clone.mkdir(parents=True)
    shutil.copy(ports.__file__, clone)
    (clone / "__init__.py").touch()
    mine = ports.free_ports(5)
    take = f"from support.ports import Ports; print(*Ports({mine[0]}, 1024).take(5))"
    theirs = subprocess.run([sys.executable, "-c", take], cwd=clone.parent, capture_output=True, text=True, check=True)
    assert not set(map(int, theirs.stdout.split())) & set(mine)


def test_a_port_with_a_listener_is_not_given(first, locks):
    with socket.create_server(("127.0.0.1", first)):
        assert first not in Ports(first, 1024, locks).take(2)


def test_no_port_is_one_that_a_client_may_be_given():
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 <= port < lowest for port in ports.free_ports(5))
