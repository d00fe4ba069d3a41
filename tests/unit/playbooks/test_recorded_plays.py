# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays against recorded results depend on nothing that this process has done with Ansible before."""

from __future__ import annotations

from ansible.release import __version__
from support.inventories import Inventory
from support.paths import EXAMPLES
from support.recorded_plays import run


def test_a_run_has_its_own_options_whoever_has_used_ansible_before():
    Inventory(next(EXAMPLES.iterdir()))  # without any options
    seen = "{{ [ansible_version.full, ansible_check_mode, ansible_limit, ansible_run_tags] }}"
    play = [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": seen}}]}]
    for check, limit in ((True, "lb1"), (False, "pair")):
        done = run(play, {"pair": {"lb1": {}}}, check=check, limit=limit)
        assert done.said == [[__version__, check, limit, ["all"]]]
