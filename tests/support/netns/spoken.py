# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A keepalived that says one thing of each kind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import Advertisement

# What keepalived is set to say, by VRID. Its checksums are RFC 5798's: before 2.2.8 it knows, and takes, no other.
UNICAST = 55
SPOKEN = {
    51: Advertisement(2, 51, 250, packet.SECOND, ("192.0.2.151",), packet.PASSWORD, b"secret", packet.RFC3768),
    52: Advertisement(2, 52, 251, packet.SECOND, ("192.0.2.152", "192.0.2.162"), checksum=packet.RFC3768),
    53: Advertisement(3, 53, 252, 10 * packet.CENTISECOND, ("192.0.2.153",), checksum=packet.RFC5798),
    54: Advertisement(3, 54, 253, packet.CENTISECOND, ("fe80::154", "2001:db8::154"), checksum=packet.RFC5798),
    UNICAST: Advertisement(3, UNICAST, 254, 20 * packet.CENTISECOND, ("192.0.2.155",), checksum=packet.RFC5798),
}


def way_of(spoken, sender, receiver):
    """From where to where an advertisement of SPOKEN goes."""
    if ":" in spoken.addresses[0]:
        return f"fe80::ff:fe00:{sender.number}", packet.GROUP6
    return f"192.0.2.{sender.number}", f"192.0.2.{receiver.number}" if spoken.vrid == UNICAST else packet.GROUP


def configuration(node, peer):
    lines = ["global_defs {", "  vrrp_garp_master_repeat 1", "}"]
    for vrid, spoken in SPOKEN.items():
        lines += [f"vrrp_instance V{vrid} {{", "  state MASTER", "  interface eth0", f"  version {spoken.version}"]
        lines += [f"  virtual_router_id {vrid}", f"  priority {spoken.priority}"]
        lines += [f"  advert_int {spoken.interval / packet.SECOND:g}"]
        if spoken.auth_type:
            lines += ["  authentication {", "    auth_type PASS", f"    auth_pass {spoken.auth_pass.decode()}", "  }"]
        if vrid == UNICAST:
            own, other = way_of(spoken, node, peer)
            lines += [f"  unicast_src_ip {own}", "  unicast_peer {", f"    {other}", "  }"]
        lines += ["  virtual_ipaddress {", *(f"    {address}" for address in spoken.addresses), "  }", "}"]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def keepalived(node, peer, folder):
    """keepalived in the node's namespace, and the file of its log. Ended as an administrator would."""
    program = shutil.which("keepalived")
    if not program:
        pytest.skip("keepalived is not installed (package keepalived)")
    settings, log = folder / "keepalived.conf", folder / "keepalived.log"
    settings.write_text(configuration(node, peer))
    command = [program, "--dont-fork", "--log-console", "--log-detail", "--vrrp", "--use-file", str(settings)]
    command += ["--pid", str(folder / "main.pid"), "--vrrp_pid", str(folder / "vrrp.pid")]
    with log.open("w") as output:
        process = subprocess.Popen(
            ["ip", "netns", "exec", node.namespace, *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process, log
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            # With its child, which sends and holds the addresses.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
