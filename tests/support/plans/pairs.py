"""Members and settings for tests of the pair, with facts as `host_info` returns them on two ordinary hosts."""

from __future__ import annotations

import copy

SETTINGS = {
    "vips": ["192.0.2.10"],
    "vrid": 51,
    "masters": ["192.0.2.21", "192.0.2.22"],
    "infra_nodes": ["192.0.2.31", "192.0.2.32"],
}
# How two members may exchange Advertisements.
VRRP_KINDS = {
    "version 2": {},
    "version 3": {"vrrp_version": 3},
    "multicast": {"multicast": True},
    "IPv6": {"vips": ["2001:db8::10"]},
    "IPv6, multicast": {"vips": ["2001:db8::10"], "multicast": True},
}


def member(number, **settings):
    """Member lbN with the address 192.0.2.N on eth0."""
    return {
        "name": f"lb{number}",
        "settings": {**copy.deepcopy(SETTINGS), **settings},
        "host": {
            "addresses": [
                {"interface": "lo", "address": "127.0.0.1", "prefix": 8, "mac": "00:00:00:00:00:00"},
                {"interface": "eth0", "address": f"192.0.2.{number}", "prefix": 24, "mac": f"02:00:00:00:00:0{number}"},
                {
                    "interface": "eth0",
                    "address": f"2001:db8::{number}",
                    "prefix": 64,
                    "mac": f"02:00:00:00:00:0{number}",
                },
            ],
            "listeners": [{"address": "0.0.0.0", "port": 22, "program": "sshd", "pid": 1}],
            "answering": {},
            "instances": [],
            "problems": [],
        },
    }


def on_two_links(number, **settings):
    """Member lbN that is also on a second link, whose interface has another name on lb3."""
    found = member(number, **settings)
    second = {"interface": "ens7" if number == 3 else "eth1", "mac": f"02:00:00:00:01:0{number}"}
    found["host"]["addresses"] += [
        {**second, "address": f"198.51.100.{number}", "prefix": 24},
        {**second, "address": f"2001:db8:0:1::{number}", "prefix": 64},
    ]
    if found["settings"].get("vrrp_interface") == "eth1":
        found["settings"]["vrrp_interface"] = second["interface"]
    return found


def running(name="vip-192.0.2.10", **values):
    """An instance that a member runs already, as `host_info` returns it."""
    defaults = {"interface": "eth0", "vrid": 51, "version": 2, "advert_interval": 1.0, "auth_pass": ""}
    defaults.update({"priority": 254, "preempt": True, "multicast": False, "source": ""})
    return {"name": name, **defaults, "addresses": ["192.0.2.10/32"], "peers": ["192.0.2.2"], **values}


def pair(**settings):
    """Two members with the same settings."""
    return [member(1, **settings), member(2, **settings)]
