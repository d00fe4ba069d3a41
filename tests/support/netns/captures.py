# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Advertisements, dissected by tshark."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest

FIELDS = (
    *("vrrp.version", "vrrp.type", "vrrp.virt_rtr_id", "vrrp.prio", "vrrp.addr_count", "vrrp.checksum.status"),
    *("vrrp.adver_int", "vrrp.short_adver_int", "vrrp.reserved_mbz", "vrrp.auth_type", "vrrp.auth_string"),
    *("vrrp.ip_addr", "vrrp.ipv6_addr", "_ws.malformed", "_ws.expert.message"),
)
GOOD, BAD = "1", "0"


def dissect(packets, folder):
    """Return the FIELDS that tshark reads from each of these IP packets."""
    if not shutil.which("tshark"):
        pytest.skip("tshark is not installed (package tshark)")
    capture = folder / "advertisements.pcap"
    raw_ip = 101
    records = [struct.pack("!IIII", 0, 0, len(data), len(data)) + data for data in packets]
    capture.write_bytes(struct.pack("!IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, raw_ip) + b"".join(records))
    options = [word for field in FIELDS for word in ("-e", field)]
    command = ["tshark", "-r", str(capture), "-T", "fields", "-E", "separator=/t", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return [dict(zip(FIELDS, line.split("\t"))) for line in done.stdout.splitlines()]
