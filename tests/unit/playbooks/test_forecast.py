"""`onprem.lb.forecast`, run as a user runs it, on hosts that nobody can reach."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
INVENTORY = """
[pair]
lb1 ansible_host=192.0.2.11
lb2 ansible_host=lb2.example

[pair:vars]
ansible_ssh_executable=there_is_none
pair_vips=["192.0.2.10", "2001:db8::10"]
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
"""


@pytest.fixture
def forecast(tmp_path):
    inventory = tmp_path / "inventory.ini"
    inventory.write_text(INVENTORY)
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache" / "collections"),
        "ANSIBLE_HOME": str(tmp_path),
        "ANSIBLE_NOCOLOR": "1",
    }
    program = Path(sys.executable).parent / "ansible-playbook"

    def run(*arguments):
        command = [program, "-i", inventory, "onprem.lb.forecast", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def test_it_tells_who_will_hold_each_vip_and_asks_nobody(forecast):
    code, said = forecast()
    assert code == 0, said
    assert "held by lb1, then lb2" in said and "held by lb2, then lb1" not in said
    assert "host cut             lb1 -> lb2               at most  3072 ms" in said


def test_it_refuses_what_would_not_fail_over_also_for_a_part_of_the_pair(forecast):
    code, said = forecast("--limit", "lb2", "-e", "pair_track_weight=2", "-e", '{"pair_priorities": [100, 98]}')
    assert code != 0
    assert "its 100 ties with lb2's 100, so the VIP would never move: make the weight larger than 2" in said
