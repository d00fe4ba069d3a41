# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instances of a keepalived.conf, as this collection writes it and as others do."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf as keepalived_conf
from support.paths import GOLDEN

BY_HAND = """\
! written by hand
global_defs { vrrp_version 3 }   # for all
vrrp_script alive { script "/usr/bin/killall -0 haproxy"
  interval 2 }
vrrp_instance VI_1
{
    interface eth0
    virtual_router_id 51
    advert_int 0.5
    authentication { auth_type PASS
      auth_pass "s3cret {" }
    virtual_ipaddress {
        192.0.2.10/24 dev eth0 label eth0:vip
        192.0.2.11
    }
    unicast_peer { 192.0.2.2
      192.0.2.3 }
}
vrrp_instance no_vrid {
    interface eth0
}
"""


def test_what_this_collection_writes_is_read_back():
    (found,) = keepalived_conf.instances((GOLDEN / "pair.lb1.keepalived.conf").read_text())
    assert found == {
        "name": "vip-192.0.2.10",
        "interface": "eth0",
        "vrid": 51,
        "version": 2,
        "priority": 254,
        "preempt": True,
        "advert_interval": 1.0,
        "auth_pass": "0f3a9c1e",
        "multicast": False,
        "source": "192.0.2.1",
        "addresses": ["192.0.2.10/32"],
        "excluded_addresses": [],
        "peers": ["192.0.2.2"],
    }


def test_a_file_written_by_hand_is_read_too():
    (found,) = keepalived_conf.instances(BY_HAND)
    assert found == {
        "name": "VI_1",
        "interface": "eth0",
        "vrid": 51,
        "version": 3,
        "priority": 100,
        "preempt": True,
        "advert_interval": 0.5,
        "auth_pass": "s3cret {",
        "multicast": False,
        "source": "",
        "addresses": ["192.0.2.10/24", "192.0.2.11"],
        "excluded_addresses": [],
        "peers": ["192.0.2.2", "192.0.2.3"],
    }


@pytest.mark.parametrize(
    "text", ["", "}", "{", "vrrp_instance", "vrrp_instance {\n", '"', "}}}\nvrrp_instance x { vrid y"]
)
def test_what_is_no_configuration_has_no_instances(text):
    assert keepalived_conf.instances(text) == []


def test_a_router_sends_and_holds_what_its_instance_says():
    front, back, weighted = keepalived_conf.routers((GOLDEN / "every-instance.keepalived.conf").read_text())
    assert front == keepalived_conf.Router(
        name="front",
        interface="eth0",
        vrid=16,
        version=3,
        interval=0.1,
        auth_pass="",
        source="192.0.2.1",
        peers=(),
        advertised=("192.0.2.10", "192.0.2.11"),
        held=(("eth0", "192.0.2.10", 24), ("eth0", "192.0.2.11", 24)),
        priority=200,
    )
    assert (back.version, back.auth_pass, back.source) == (2, "abcd1234", "")
    assert back.peers == ("198.51.100.2", "198.51.100.3")
    assert weighted.advertised == ("198.51.100.11",)  # without those that are excluded
    assert weighted.held == (
        ("eth0", "198.51.100.11", 32),
        ("eth1", "2001:db8::11", 64),
        ("ens192", "203.0.113.11", 32),
    )


def test_a_router_has_its_addresses_as_the_kernel_writes_them_and_no_others():
    text = BY_HAND.replace("192.0.2.11\n", "2001:DB8:0::B\n nonsense\n 192.0.2.12/x\n")
    (found,) = keepalived_conf.routers(text)
    assert found.held == (("eth0", "192.0.2.10", 24), ("eth0", "2001:db8::b", 128))


def test_an_instance_has_every_address_as_the_kernel_writes_it_so_that_it_is_known_again():
    text = BY_HAND.replace("192.0.2.11\n", "2001:DB8:0::B/64\n").replace("192.0.2.3 }", "2001:DB8::0:C\n nonsense }")
    (found,) = keepalived_conf.instances(text.replace("advert_int", "unicast_src_ip FE80::0A\n advert_int"))
    assert found["addresses"] == ["192.0.2.10/24", "2001:db8::b/64"]
    assert (found["peers"], found["source"]) == (["192.0.2.2", "2001:db8::c", "nonsense"], "fe80::a")


def test_a_router_of_ipv6_speaks_version_3_whatever_is_written():
    text = BY_HAND.replace("vrrp_version 3", "vrrp_version 2").replace("192.0.2.10/24", "fe80::10/64")
    (found,) = keepalived_conf.routers(text)
    assert (found.version, found.family) == (3, 6)


def test_an_instance_without_addresses_is_no_router():
    text = BY_HAND.replace("virtual_ipaddress", "virtual_ipaddress_excluded")
    assert keepalived_conf.instances(text) and keepalived_conf.routers(text) == []


@pytest.mark.parametrize(
    "written, read",
    [
        ("ab!cd", "ab"),
        ("ab#cd", "ab"),
        ('"a!c#d"', "a!c#d"),
        ('"a{b} c"', "a{b} c"),
        ('ab"cd"', "ab"),
        ("'ab", "'ab"),
        ("a$b", "a$b"),
    ],
)
def test_a_password_ends_where_keepalived_ends_it(written, read):
    (found,) = keepalived_conf.instances(BY_HAND.replace('"s3cret {"', f"{written}\n"))
    assert found["auth_pass"] == read


def test_without_the_type_of_keepaliveds_simple_password_there_is_none():
    (found,) = keepalived_conf.instances(BY_HAND.replace("auth_type PASS", "auth_type pass"))
    assert found["auth_pass"] == ""


@pytest.mark.parametrize("written, of_2, of_3", [("1", 1, 1), ("0.5", 1, 0.5), ("1.5", 2, 1.5), ("2.255", 2, 2.26)])
def test_an_interval_is_rounded_as_keepalived_does(written, of_2, of_3):
    for version, expected in (("2", of_2), ("3", of_3)):
        text = BY_HAND.replace("vrrp_version 3", f"vrrp_version {version}").replace(
            "advert_int 0.5", f"advert_int {written}"
        )
        assert keepalived_conf.instances(text)[0]["advert_interval"] == expected


def test_addresses_that_are_not_advertised_are_read_beside_the_others():
    text = BY_HAND.replace("unicast_peer", "virtual_ipaddress_excluded {\n 2001:db8::10/64 dev eth0\n }\n unicast_peer")
    (found,) = keepalived_conf.instances(text)
    assert (found["excluded_addresses"], found["version"]) == (["2001:db8::10/64"], 3), "as global_defs says"
    (found,) = keepalived_conf.instances(text.replace("vrrp_version 3", ""))
    assert found["version"] == 2, "what is not advertised has no part in it"


def test_an_address_on_another_interface_says_so_and_one_on_the_instances_own_does_not():
    text = BY_HAND.replace("192.0.2.11\n", "198.51.100.11 dev eth1\n203.0.113.11/24 label eth2:x dev eth2\n")
    (found,) = keepalived_conf.instances(text)
    assert found["addresses"] == ["192.0.2.10/24", "198.51.100.11/32 dev eth1", "203.0.113.11/24 dev eth2"]


def test_a_number_that_is_none_is_no_error():
    (found,) = keepalived_conf.instances(BY_HAND.replace("0.5", "often"))
    assert found["advert_interval"] == 0.0


def test_the_election_and_the_tracked_files_are_read():
    text = (GOLDEN / "pair.lb1.keepalived.conf").read_text()
    assert elections(text) == {"vip-192.0.2.10": (254, True)}
    assert keepalived_conf.track_files(text) == ["/run/haproxy.down", "/run/onprem-lb-haproxy_answers.failing"]
    assert keepalived_conf.weights(text, "haproxy_answers") == {"vip-192.0.2.10": -253}
    assert keepalived_conf.weights(text, "haproxy_down") == {"vip-192.0.2.10": 0}
    assert keepalived_conf.weights(text, "another") == {}
    lax = text.replace("    priority 254", "    nopreempt")
    assert elections(lax) == {"vip-192.0.2.10": (100, False)}
    assert keepalived_conf.track_files("vrrp_track_file a {\n file /run/a\n}") == ["/run/a"]


def elections(text):
    return {each["name"]: (each["priority"], each["preempt"]) for each in keepalived_conf.instances(text)}


SCRIPTS = """
global_defs {
    script_user watch
}
vrrp_script storage {
    script "/bin/storage 'a b'"   # in quotes
    interval 5
    timeout 3
    fall 2
    user ops
}
vrrp_script plain
{
    script /bin/plain
}
vrrp_script
"""


def test_scripts_are_read_with_keepaliveds_defaults_and_the_files_user():
    storage = {"interval": 5, "timeout": 3, "rise": 1, "fall": 2, "command": "/bin/storage 'a b'", "user": "ops"}
    plain = {**dict.fromkeys(["interval", "timeout", "rise", "fall"], 1), "command": "/bin/plain", "user": "watch"}
    assert keepalived_conf.scripts(SCRIPTS) == [{"name": "storage", **storage}, {"name": "plain", **plain}]
