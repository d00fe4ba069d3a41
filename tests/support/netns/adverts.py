# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""keepalived with an instance for each kind of Advertisement."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import Advertisement

from support.waiting import LIMIT_S

# The Advertisements that keepalived is configured to send, by VRID. Their checksums are RFC 5798's, the only ones that
# keepalived before 2.2.8 sends and accepts.
UNICAST = 55
ADVERTS = {
    51: Advertisement(2, 51, 250, packet.SECOND, ("192.0.2.151",), packet.PASSWORD, b"secret", packet.RFC3768),
    52: Advertisement(2, 52, 251, packet.SECOND, ("192.0.2.152", "192.0.2.162"), checksum=packet.RFC3768),
    53: Advertisement(3, 53, 252, 10 * packet.CENTISECOND, ("192.0.2.153",), checksum=packet.RFC5798),
    54: Advertisement(3, 54, 253, packet.CENTISECOND, ("fe80::154", "2001:db8::154"), checksum=packet.RFC5798),
    UNICAST: Advertisement(3, UNICAST, 254, 20 * packet.CENTISECOND, ("192.0.2.155",), checksum=packet.RFC5798),
}


def path_of(advert, sender, receiver):
    """Return the source and the destination of an Advertisement of ADVERTS."""
    if ":" in advert.addresses[0]:
        return f"fe80::ff:fe00:{sender.number}", packet.GROUP6
    return f"192.0.2.{sender.number}", f"192.0.2.{receiver.number}" if advert.vrid == UNICAST else packet.GROUP


def configuration(node, peer):
    lines = ["global_defs {", "  vrrp_garp_master_repeat 1", "}"]
    for vrid, advert in ADVERTS.items():
        lines += [f"vrrp_instance V{vrid} {{", "  state MASTER", "  interface eth0", f"  version {advert.version}"]
        lines += [f"  virtual_router_id {vrid}", f"  priority {advert.priority}"]
        lines += [f"  advert_int {advert.interval / packet.SECOND:g}"]
        if advert.auth_type:
            lines += ["  authentication {", "    auth_type PASS", f"    auth_pass {advert.auth_pass.decode()}", "  }"]
        if vrid == UNICAST:
            own, other = path_of(advert, node, peer)
            lines += [f"  unicast_src_ip {own}", "  unicast_peer {", f"    {other}", "  }"]
        lines += ["  virtual_ipaddress {", *(f"    {address}" for address in advert.addresses), "  }", "}"]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def keepalived(node, peer, folder):
    """Run keepalived in a node's namespace; yield its process and its log. At the end it gets SIGTERM."""
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
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            # The child, too: it sends, and holds the addresses.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
