# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes with an adopted keepalived.conf is known by name, with the variable that expresses it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import statements
from support.paths import GOLDEN

INSTANCE = "vrrp_instance VI_1 {{\n virtual_router_id 51\n {} \n virtual_ipaddress {{\n 192.0.2.10\n }}\n}}\n"


def test_a_file_that_says_no_more_than_the_new_one_loses_nothing():
    text = """\
    global_defs { router_id lb1
      script_user root
      enable_script_security }
    vrrp_script alive { script "killall -0 haproxy"
      interval 2 }
    """
    of_instance = "state MASTER\n nopreempt\n unicast_peer {\n 192.0.2.2\n }\n track_script {\n alive\n }"
    assert statements.lost(text + INSTANCE.format(of_instance)) == []


def test_what_a_layout_writes_loses_nothing():
    for path in GOLDEN.glob("pair.*keepalived.conf"):
        assert [each.what for each in statements.lost(path.read_text()) if "track_file" not in each.what] == [
            "notify_backup of vrrp_instance vip-192.0.2.10"
        ], path.name


@pytest.mark.parametrize(
    "line, variable",
    [
        ("notify_master /bin/true", "notify"),
        ("notify /bin/true", "notify"),
        ("track_interface {\n eth1\n }", "checks"),
        ("virtual_routes {\n 192.0.2.0/24 dev eth1\n }", ""),
        ("virtual_rules {\n from 192.0.2.1 table 1\n }", ""),
        ("use_vmac", ""),
        ("smtp_alert", ""),
        ("lvs_sync_daemon_interface eth0", ""),
    ],
)
def test_a_statement_of_an_instance_is_named_with_it(line, variable):
    (found,) = statements.lost(INSTANCE.format(line))
    assert found == (f"{line.split()[0]} of vrrp_instance VI_1", variable)


@pytest.mark.parametrize(
    "text, found",
    [
        (
            "virtual_server 192.0.2.10 80 {\n protocol TCP\n}",
            ("virtual_server 192.0.2.10 80", "keepalived_extra_lines"),
        ),
        ("bfd_instance one {\n}", ("bfd_instance one", "keepalived_extra_lines")),
        ("net_namespace red", ("net_namespace red", "keepalived_extra_lines")),
        ("vrrp_sync_group VG_1 {\n group {\n VI_1\n }\n}", ("vrrp_sync_group VG_1", "sync")),
        ("vrrp_script gateway {\n script /bin/ping\n}", ("vrrp_script gateway", "checks")),
        ("global_defs {\n vrrp_strict\n}", ("vrrp_strict", "keepalived_global_lines")),
        (
            "global_defs {\n notification_email {\n me@example.com\n }\n}",
            ("notification_email", "keepalived_global_lines"),
        ),
        ("global_defs {\n vrrp_startup_delay 5\n}", ("vrrp_startup_delay", "keepalived_startup_delay")),
    ],
)
def test_a_block_or_a_line_of_global_defs_is_named(text, found):
    assert statements.lost(text) == [found]
    assert statements.lost(f"{text}\n{text}") == [found], "once"
