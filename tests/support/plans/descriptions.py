# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster and a pair as the filter `dns_records` takes them."""

from __future__ import annotations

CLUSTER = {
    "layout": "cluster",
    "name": "lab",
    "domain": "example.com",
    "api_vips": ["192.0.2.10"],
    "ingress_vips": ["192.0.2.20", "2001:db8::20", "192.0.2.21"],
    "nodes": {"master-0": ["192.0.2.31", "2001:db8::31"], "worker-0": "198.51.100.4"},
    "bootstrap": "192.0.2.30",
}
PAIR = {
    "layout": "pair",
    "domain": "example.com",
    "vips": ["192.0.2.10/24", {"address": "2001:db8::10", "vrid": 7}],
    "members": {"lb2": "192.0.2.12", "lb1": ["192.0.2.11", "2001:db8::11"]},
}
