# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our advertisements are decoded by tshark and by keepalived on a real link, and we decode those of keepalived."""

from __future__ import annotations

import ipaddress
import itertools
import json
import struct

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import Advertisement
from support.netns.adverts import ADVERTS, keepalived, path_of
from support.netns.captures import BAD, GOOD, dissect
from support.waiting import LIMIT_S, until

SOURCE, SOURCE6 = "192.0.2.1", "fe80::ff:fe00:1"

# --- tshark -----------------------------------------------------------------------------------------------------


def cases():
    lists4 = [("192.0.2.100",), ("192.0.2.100", "198.51.100.7"), tuple(f"10.0.{n}.255" for n in range(20))]
    lists6 = [("fe80::100", "2001:db8::100"), ("fe80::1",), tuple(f"2001:db8:ffff::{n:x}" for n in range(1, 15))]
    for priority, addresses in itertools.product((0, 1, 100, 254, 255), lists4):
        yield Advertisement(2, 51, priority, packet.SECOND, addresses)
        yield Advertisement(2, 1, priority, 255 * packet.SECOND, addresses, packet.PASSWORD, b"secret")
        yield Advertisement(2, 255, priority, 3 * packet.SECOND, addresses, packet.PASSWORD, b"12345678")
        yield Advertisement(3, 51, priority, packet.CENTISECOND, addresses)
        yield Advertisement(3, 255, priority, 4095 * packet.CENTISECOND, addresses)
    for priority, addresses in itertools.product((0, 1, 100, 254, 255), lists6):
        yield Advertisement(3, 52, priority, 100 * packet.CENTISECOND, addresses)


def ends(advertisement):
    v6 = ":" in advertisement.addresses[0]
    return (SOURCE6, packet.GROUP6) if v6 else (SOURCE, packet.GROUP)


def ip_packet(message, source, destination):
    addresses = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    if ":" in source:
        return struct.pack("!IHBB", 6 << 28, len(message), packet.PROTOCOL, 255) + addresses + message
    return struct.pack("!BBHHHBBH", 0x45, 0xC0, 20 + len(message), 0, 0, 255, packet.PROTOCOL, 0) + addresses + message


def expected_fields(advertisement):
    v2, v6 = advertisement.version == 2, ":" in advertisement.addresses[0]
    addresses = ",".join(advertisement.addresses)
    return {
        "vrrp.version": str(advertisement.version),
        "vrrp.type": "1",
        "vrrp.virt_rtr_id": str(advertisement.vrid),
        "vrrp.prio": str(advertisement.priority),
        "vrrp.addr_count": str(len(advertisement.addresses)),
        "vrrp.checksum.status": GOOD,
        "vrrp.adver_int": str(advertisement.interval // packet.SECOND) if v2 else "",
        "vrrp.short_adver_int": "" if v2 else str(advertisement.interval // packet.CENTISECOND),
        "vrrp.reserved_mbz": "" if v2 else "0",
        "vrrp.auth_type": str(advertisement.auth_type) if v2 else "",
        "vrrp.auth_string": advertisement.auth_pass.decode(),
        "vrrp.ip_addr": "" if v6 else addresses,
        "vrrp.ipv6_addr": addresses if v6 else "",
        "_ws.malformed": "",
        "_ws.expert.message": "",
    }


def test_tshark_reads_every_field_and_finds_the_checksums_good(tmp_path):
    sent = list(cases())
    fields = dissect([ip_packet(packet.encode(a, *ends(a)), *ends(a)) for a in sent], tmp_path)
    assert fields == [expected_fields(advertisement) for advertisement in sent]


def test_tshark_detects_a_wrong_checksum(tmp_path):
    """Without this, the test above would prove nothing."""
    packets = []
    for advertisement in cases():
        message = bytearray(packet.encode(advertisement, *ends(advertisement)))
        message[7] ^= 1
        packets.append(ip_packet(bytes(message), *ends(advertisement)))
    assert {read["vrrp.checksum.status"] for read in dissect(packets, tmp_path)} == {BAD}


# --- keepalived -------------------------------------------------------------------------------------------------

# Prints "ready", and then each VRRP packet of other hosts as [source, destination, hop limit, message in hex].
LISTEN = """
import json, select, socket, sys, time
until = time.monotonic() + float(sys.argv[1])
link = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
link.bind(("eth0", 3))
print("ready", flush=True)
while select.select([link], [], [], max(0, until - time.monotonic()))[0]:
    data, origin = link.recvfrom(65535)
    if origin[2] == socket.PACKET_OUTGOING:
        continue
    if data[0] >> 4 == 4 and data[9] == 112:
        family, hops, ends, begin = socket.AF_INET, data[8], (data[12:16], data[16:20]), (data[0] & 15) * 4
    elif data[0] >> 4 == 6 and data[6] == 112:
        family, hops, ends, begin = socket.AF_INET6, data[7], (data[8:24], data[24:40]), 40
    else:
        continue
    print(json.dumps([*(socket.inet_ntop(family, end) for end in ends), hops, data[begin:].hex()]), flush=True)
"""

# Sends each [source, destination, message in hex] as a VRRP packet.
SEND = """
import json, socket, sys
for source, destination, message in json.loads(sys.argv[1]):
    v6 = ":" in source
    with socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_RAW, 112) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
        if v6:
            link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        else:
            link.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
            link.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 255)
        link.bind((source, 0))
        link.sendto(bytes.fromhex(message), (destination, 0))
"""


def decoded(line):
    source, destination, hops, message = json.loads(line)
    return source, destination, hops, packet.decode(bytes.fromhex(message), source, destination, hops)


def receive(listener, resignations):
    """Return the next packet of each VRID of ADVERTS: only resignations, or none."""
    packets = {}
    for line in listener.stdout:
        received = decoded(line)
        assert isinstance(received[3], Advertisement), (line, received)
        if (received[3].priority == 0) == resignations:
            packets.setdefault(received[3].vrid, received)
        if packets.keys() == ADVERTS.keys():
            return packets
    raise AssertionError(f"within {LIMIT_S} s only these VRIDs were received: {sorted(packets)}")


def test_the_advertisements_of_keepalived_are_decoded_as_configured(link, tmp_path):
    listener = link.client.python(LISTEN, LIMIT_S)
    assert listener.stdout.readline() == "ready\n"
    with keepalived(link.lb1, link.client, tmp_path) as (process, _log):
        first = receive(listener, resignations=False)
        process.terminate()
        last = receive(listener, resignations=True)
    for vrid, advert in ADVERTS.items():
        envelope = (*path_of(advert, link.lb1, link.client), 255)
        assert first[vrid] == (*envelope, advert)
        assert last[vrid] == (*envelope, advert._replace(priority=0))
        assert packet.mismatch(first[vrid][3], advert) is None


def test_keepalived_yields_to_our_advertisements(link, tmp_path):
    """It validates the length, version, authentication, interval and checksum first."""
    listener = link.client.python(LISTEN, LIMIT_S)
    assert listener.stdout.readline() == "ready\n"
    ours = []
    for advert in ADVERTS.values():
        path = path_of(advert, link.client, link.lb1)
        ours.append([*path, packet.encode(advert._replace(priority=255), *path).hex()])
    with keepalived(link.lb1, link.client, tmp_path) as (_process, log):
        receive(listener, resignations=False)
        assert link.client.python(SEND, json.dumps(ours)).wait(LIMIT_S) == 0
        expected = [f"(V{vrid}) Master received advert from" for vrid in ADVERTS]
        until(lambda: all(text in log.read_text() for text in expected), log.read_text)
        assert "checksum" not in log.read_text()
