# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers for the scenarios' tests, which get the lab's hosts from testinfra."""

from __future__ import annotations


def holders(hosts, names, vip):
    """Return which of these hosts have the VIP."""
    return [name for name in names if f" {vip}/" in hosts[name].check_output("ip -oneline address")]


def fetch(host, address, port, scheme="http", limit=3):
    """Request a page from a host, for at most `limit` seconds; the result has curl's exit code and the page."""
    name = f"[{address}]" if ":" in address else address
    return host.run(f"curl --silent --insecure --max-time {limit} {scheme}://{name}:{port}/")
