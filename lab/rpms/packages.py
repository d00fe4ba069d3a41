"""The packages of the image `rpm`, one a row. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Tuple

VERSION = "9.4"  # of the family
# What a package takes of Debian's files, after the move of /bin, /sbin and /lib into /usr.
TAKEN = ("usr/bin", "usr/sbin", "usr/lib", "usr/share/dbus-1", "usr/share/polkit-1", "usr/share/yang")


@dataclass(frozen=True)
class Package:
    """A package as the family knows it. Its files are Debian's, moved, and those of `tree/NAME` over them.

    :ivar debs: Debian's packages that have its files; what these depend on is a part of the image
    :ivar moves: folders that the family has elsewhere
    :ivar user: the account that it creates, with this home
    :ivar paths: those with a mode of their own, and the owner; a path that no file makes is an empty folder
    :ivar unit: which its removal disables and stops, and its upgrade restarts
    :ivar releases: how many of them the repository has; each one's configuration differs in a comment
    :ivar installed: it is on a host from the start
    """

    name: str
    summary: str
    debs: Tuple[str, ...] = ()
    moves: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    home: str = "/"
    paths: Mapping[str, Tuple[str, str]] = field(default_factory=dict)
    unit: str = ""
    releases: int = 1
    installed: bool = False
    provides: Tuple[str, ...] = ()


PACKAGES = (
    Package(
        "lab-release",
        "Release files of the family",
        installed=True,
        provides=("system-release = " + VERSION, "system-release(releasever) = 9", "/bin/sh"),
    ),
    Package(
        "haproxy",
        "HAProxy reverse proxy for high availability environments",
        ("haproxy",),
        moves={"etc/haproxy/errors": "usr/share/haproxy"},
        user="haproxy",
        home="/var/lib/haproxy",
        paths={"/var/lib/haproxy": ("0755", "haproxy"), "/etc/haproxy/conf.d": ("0755", "root")},
        unit="haproxy.service",
        releases=2,
    ),
    Package(
        "keepalived",
        "Load balancer and high availability service",
        ("keepalived",),
        unit="keepalived.service",
        releases=2,
    ),
    Package("psmisc", "Utilities for managing processes on your system", ("psmisc",)),
    Package("nftables", "Netfilter Tables userspace utilities", ("nftables",), unit="nftables.service", installed=True),
    Package(
        "firewalld",
        "A firewall daemon with D-Bus interface providing a dynamic firewall",
        ("firewalld",),
        moves={"etc/firewalld": "etc/firewalld"},
        unit="firewalld.service",
        installed=True,
    ),
    Package(
        "dnsmasq",
        "A lightweight DHCP/caching DNS server",
        ("dnsmasq-base",),
        user="dnsmasq",
        home="/var/lib/dnsmasq",
        paths={"/var/lib/dnsmasq": ("0755", "dnsmasq"), "/etc/dnsmasq.d": ("0755", "root")},
        unit="dnsmasq.service",
    ),
    Package(
        "frr",
        "Routing daemon",
        ("frr", "frr-pythontools"),
        moves={"usr/lib/frr": "usr/libexec/frr", "etc/frr": "etc/frr", "etc/pam.d": "etc/pam.d"},
        user="frr",
        home="/var/run/frr",
        paths={
            "/etc/frr": ("0750", "frr"),
            **{f"/etc/frr/{name}": ("0640", "frr") for name in ("daemons", "frr.conf", "vtysh.conf")},
        },
        unit="frr.service",
    ),
    Package("curl", "A utility for getting files from remote servers", ("curl",), installed=True),
    Package("iputils", "Network monitoring tools including ping", ("iputils-ping",), installed=True),
    Package("ca-certificates", "The Mozilla CA root certificate bundle", installed=True),
)
