# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which distributions the roles know. Pure."""

from __future__ import annotations

import re

FAMILIES = ("Debian", "RedHat")  # whose packages and paths the roles know
# What Ansible needs on a host to set a boolean of SELinux there.
SEBOOLEAN_PACKAGES = {"Debian": "python3-semanage", "RedHat": "python3-libsemanage"}
PING_PACKAGES = {"Debian": "iputils-ping", "RedHat": "iputils"}


def os_family(os_release: str) -> str:
    """Return Debian or RedHat, or the distribution's own ID when it is of neither family."""
    found = dict(re.findall(r'^(ID|ID_LIKE)="?([^"\n]*)"?$', os_release, re.M))
    words = f"{found.get('ID', '')} {found.get('ID_LIKE', '')}".split()
    if {"debian", "ubuntu"} & set(words):
        return "Debian"
    if {"rhel", "fedora", "centos"} & set(words):
        return "RedHat"
    return found.get("ID", "unknown")


def family_problem(family: str) -> str:
    """Return why haproxy and keepalived cannot be installed on a distribution; '' where they can."""
    if family in FAMILIES:
        return ""
    return f"this is {family}: the roles know the families {' and '.join(FAMILIES)}."
