# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights that are given up, and the limit of open files."""

from __future__ import annotations

import os
import resource

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import privileges
from support.agent.programs import in_a_child, status
from support.marks import as_root


@as_root
def test_a_process_without_capabilities_has_none_of_any_kind():
    def drop():
        privileges.drop_capabilities()
        found = status("self")
        return [int(found[what][0], 16) for what in ("CapPrm", "CapEff", "CapInh", "CapAmb")]

    assert in_a_child(drop) == [0, 0, 0, 0]


def test_the_limit_of_open_files_is_raised_as_far_as_it_can_be():
    def raise_it(needed, liked, hard):
        def action():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
            missing = privileges.raise_nofile(needed, liked)
            return resource.getrlimit(resource.RLIMIT_NOFILE)[0], missing

        return tuple(in_a_child(action))

    assert raise_it(100, 200, 300) == (200, None)
    if not os.access("/proc/1/mem", os.W_OK) or int(status("self")["CapEff"][0], 16) >> 24 & 1 == 0:
        sentence = "400 open files, for its maxconn: the limit is 300 (ulimit -n)"
        assert raise_it(100, 400, 300) == (300, None)
        assert raise_it(400, 500, 300) == (300, sentence)


@as_root
def test_without_any_rights_root_is_nobody():
    def drop():
        os.setgroups([4, 27])
        privileges.drop_all()
        found = status("self")
        return [found["Uid"], found["Gid"], found["Groups"], int(found["CapEff"][0], 16)]

    assert in_a_child(drop) == [["65534"] * 4, ["65534"] * 4, [], 0]
