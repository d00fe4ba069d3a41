# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keepalived evaluates and the reader does not is named: no VIP, VRID or password is taken for absent."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf, unread
from support.paths import GOLDEN

GOOD = """\
global_defs { vrrp_version 2 }  # $VRID=51
vrrp_instance VI_1 {
    interface eth0
    virtual_router_id 51
    priority 100
    advert_int 1
    authentication {
        auth_type PASS
        auth_pass "a@b~$c"
    }
    virtual_ipaddress {
        192.0.2.10/24 dev eth0
    }
    virtual_ipaddress_excluded {
        2001:db8::10/64
    }
    unicast_peer {
        192.0.2.2
    }
    ! ~SEQ(A, 1, 2)
    notify "/usr/local/bin/mail me@example.com $1"
}
"""
IN_VI_1 = ", in vrrp_instance VI_1: "


def test_of_a_file_that_is_understood_nothing_is_said():
    assert [*unread.unread(GOOD)] == []
    assert [*unread.unread("")] == []


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*keepalived.conf")), ids=lambda path: path.name)
def test_of_what_this_collection_writes_nothing_is_said(path):
    assert [*unread.unread(path.read_text())] == []


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("$VRID=51", "the definition $VRID, which is not evaluated: write its value where it is used"),
        (
            "@lb1 priority 200",
            "@lb1, and it is not known here which members read that line: write a file for each member",
        ),
        (
            "@^lb1 priority 200",
            "@^lb1, and it is not known here which members read that line: write a file for each member",
        ),
        ("router_id ${_INSTANCE}", "${_INSTANCE}, which keepalived replaces: write what it stands for"),
        ("script $_PWD/check", "$_PWD, which keepalived replaces: write what it stands for"),
        ("~SEQ(A, 1, 2) 192.0.2.$A", "~SEQ, which stands for several lines: write them all"),
        ("  ~LST(A, 1, 2) 192.0.2.$A", "~LST, which stands for several lines: write them all"),
        ("priority 1\\", "\\, and versions of keepalived read a backslash in different ways: leave it out"),
        ("auth_pass a\\!b", "\\, and versions of keepalived read a backslash in different ways: leave it out"),
        ('router_id "lb1', 'a quotation mark without another one on its line: close it, as in "a b"'),
        (
            'includer "vips.conf"',
            "includer vips.conf, and the VIPs, VRIDs and passwords in there are not read: move them into this file",
        ),
        ("global_defs { vrrp_version three }", "vrrp_version three: write 2 or 3"),
    ],
)
def test_a_construct_that_only_keepalived_evaluates_is_named_once_with_its_mend(line, sentence):
    assert [*unread.unread(f"{line}\n{GOOD}{line} # again\n")] == [sentence]
    assert [*unread.unread(f"# {line}\n{GOOD}")] == []


@pytest.mark.parametrize(
    "before, after, sentence",
    [
        (
            "virtual_router_id 51",
            "virtual_router_id $VRID",
            f"virtual_router_id $VRID{IN_VI_1}write a number from 1 to 255",
        ),
        (
            "virtual_router_id 51",
            "virtual_router_id 256",
            f"virtual_router_id 256{IN_VI_1}write a number from 1 to 255",
        ),
        (
            "virtual_router_id 51",
            "virtual_router_id 51.5",
            f"virtual_router_id 51.5{IN_VI_1}write a number from 1 to 255",
        ),
        ("virtual_router_id 51", "", f"no virtual_router_id{IN_VI_1}write one"),
        ("priority 100", "priority high", f"priority high{IN_VI_1}write a number from 1 to 255"),
        ("advert_int 1", "advert_int often", f"advert_int often{IN_VI_1}write a number from 0.01 to 255"),
        ("advert_int 1", "version 4", f"version 4{IN_VI_1}write a number from 2 to 3"),
        (
            "auth_type PASS",
            "auth_type AH",
            f"auth_type AH, which this collection does not set up{IN_VI_1}change it to PASS on all members",
        ),
        (
            '"a@b~$c"',
            "a{b}",
            f"auth_pass without a plain value{IN_VI_1}write one word, or put it in quotes",
        ),
        (
            "192.0.2.10/24 dev eth0",
            "dev eth0 192.0.2.10/24",
            f"virtual_ipaddress dev eth0 192.0.2.10/24{IN_VI_1}begin with the address",
        ),
        (
            "192.0.2.10/24 dev eth0",
            "2001:db8::1\n}\nversion 2\n x {",
            f"version 2 and IPv6, of which keepalived takes what comes first{IN_VI_1}write version 3",
        ),
        ("2001:db8::10/64", "$VIP6", f"virtual_ipaddress_excluded $VIP6{IN_VI_1}begin with the address"),
        ("192.0.2.2\n", "lb2\n", f"unicast_peer lb2{IN_VI_1}begin with the address"),
    ],
)
def test_a_value_of_an_instance_that_is_not_understood_is_named_with_its_instance(before, after, sentence):
    assert [*unread.unread(GOOD.replace(before, after))] == [sentence]


def test_of_two_instances_with_one_name_keepalived_reads_one():
    assert [*unread.unread(GOOD + GOOD)] == ["two instances VI_1, of which keepalived reads one: take the other out"]


def test_no_instance_is_left_out_in_silence():
    text = GOOD.replace("51\n", "$VRID\n", 1).replace("virtual_router_id 51", "virtual_router_id $VRID")
    assert conf.instances(text) == [] and [*unread.unread(text)]
