# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""keepalived runs its hook when an instance has yielded, where the last Advertisement may be lost, and systemd when it
has ended."""

from __future__ import annotations

import re

import pytest
from support import rendering
from support.readers import keepalived_command, keepalived_conf

INSTANCE = {"name": "web", "interface": "eth0", "vrid": 51, "priority": 100, "addresses": ["192.0.2.10"]}
UNICAST = {"peers": ["192.0.2.2"]}
OWN = {"lines": ['notify_backup "/usr/local/bin/mine" root']}


def notified(**settings):
    """Return the words of each notify_backup of an instance."""
    lines = keepalived_conf(rendering.keepalived({"instances": [{**INSTANCE, **settings}]}, "lb1"))
    return [keepalived_command(line[1]) for line in lines if line[0] == "notify_backup"]


def test_with_unicast_peers_it_is_given_the_file_and_the_instance():
    (words,) = notified(**UNICAST)
    hook = words.index("/usr/local/lib/onprem-lb-keepalived/hook")
    assert words[hook:] == [words[hook], "yielded", "/etc/keepalived/keepalived.conf", "web"]
    assert words[0] == "/usr/bin/setpriv" and "--bounding-set=-all,+net_raw" in words[:hook]


@pytest.mark.parametrize(
    "settings, expected", [({"multicast": True}, []), ({**UNICAST, **OWN}, [["/usr/local/bin/mine"]])]
)
def test_a_group_needs_none_and_one_of_the_users_own_is_kept(settings, expected):
    assert notified(**settings) == expected


def test_on_a_host_where_keepalived_kills_its_own_process_at_a_stop_the_hook_has_longer():
    gives = 5  # seconds, CHILD_WAIT_SECS of keepalived
    ((limit, command),) = re.findall(r"/timeout --signal=KILL (\d+) \S+/hook (\w+)", rendering.keepalived_unit())
    assert command == "ended" and int(limit) > gives
