"""A foreign VRRP router: advertises VRID 9 until it is stopped. It needs packet.py in the same folder."""

import socket
import sys
import time

import packet

GROUP = "224.0.0.18"
source = sys.argv[1]
advert = packet.Advertisement(2, 9, 100, packet.SECOND, ("203.0.113.9",))
rogue = socket.socket(socket.AF_INET, socket.SOCK_RAW, packet.PROTOCOL)
rogue.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
rogue.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(source))
while True:
    rogue.sendto(packet.encode(advert, source, GROUP), (GROUP, 0))
    time.sleep(1)
