"""How long one VRRP advertisement takes to read and to write, ours beside scapy, in turn, in one run.

    python3 bench/packet.py
    ROUNDS=21 python3 bench/packet.py

Prints the medians in microseconds and, what alone means anything on a noisy machine, the ratios. Ours checks a message
as it reads it, checksum and all; scapy takes its fields apart when they are asked for, and checks nothing.
"""

from __future__ import annotations

import os
import statistics
import sys
import timeit
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import collection  # noqa: E402

collection.make_importable()
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet  # noqa: E402
from scapy.layers.inet import IP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402
from scapy.layers.vrrp import VRRP, VRRPv3  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "9"))
# So many calls make one round: long enough for the clock, short enough to be fair to both.
OURS, SCAPYS = 5000, 200
V4, V6 = ("192.0.2.1", packet.GROUP), ("fe80::1", packet.GROUP6)
CASES = {
    "v2, password": (packet.Advertisement(2, 51, 100, 1_000_000, ("192.0.2.100",), 1, b"secret"), V4),
    "v3, IPv4": (packet.Advertisement(3, 51, 100, 10_000, ("192.0.2.100",)), V4),
    "v3, IPv6": (packet.Advertisement(3, 51, 100, 10_000, ("fe80::100", "2001:db8::100")), V6),
    "v3, 20 addresses": (packet.Advertisement(3, 51, 100, 10_000, tuple(f"192.0.2.{n}" for n in range(20))), V4),
}


def scapys(advertisement: packet.Advertisement, source: str, destination: str) -> tuple[Any, Callable[[bytes], Any]]:
    """The same advertisement as scapy's layer, and how scapy reads its bytes."""
    ip = (IPv6 if ":" in source else IP)(src=source, dst=destination)
    kind, unit = (VRRP, packet.SECOND) if advertisement.version == 2 else (VRRPv3, packet.CENTISECOND)
    fields = {"vrid": advertisement.vrid, "priority": advertisement.priority, "adv": advertisement.interval // unit}
    if advertisement.auth_type:
        fields["authtype"] = advertisement.auth_type
        fields["auth1"], fields["auth2"] = (
            int.from_bytes(advertisement.auth_pass.ljust(8, b"\x00")[at : at + 4], "big") for at in (0, 4)
        )
    layer = kind(addrlist=list(advertisement.addresses), _underlayer=ip, **fields)
    return layer, lambda message: kind(message, _underlayer=ip)


def contenders(advertisement: packet.Advertisement, way: tuple[str, str]) -> dict[str, tuple[Callable[[], Any], int]]:
    message = packet.encode(advertisement, *way)
    layer, read = scapys(advertisement, *way)
    assert bytes(layer) == message, "scapy writes something else"
    return {
        "decode, ours": (lambda: packet.decode(message, *way), OURS),
        "decode, scapy": (lambda: read(message), SCAPYS),
        "encode, ours": (lambda: packet.encode(advertisement, *way), OURS),
        "encode, scapy": (lambda: bytes(layer), SCAPYS),
    }


def main() -> None:
    print(f"{'microseconds':<18}{'decode':>8}{'scapy':>8}{'ratio':>8}{'encode':>10}{'scapy':>8}{'ratio':>8}")
    for name, (advertisement, way) in CASES.items():
        rivals = contenders(advertisement, way)
        times: dict[str, list[float]] = {what: [] for what in rivals}
        for _round in range(ROUNDS):
            for what, (call, calls) in rivals.items():
                times[what].append(timeit.timeit(call, number=calls) / calls * 1e6)
        decode, peer_decode, encode, peer_encode = (statistics.median(values) for values in times.values())
        print(
            f"{name:<18}{decode:>8.1f}{peer_decode:>8.1f}{decode / peer_decode:>8.3f}"
            f"{encode:>10.1f}{peer_encode:>8.1f}{encode / peer_encode:>8.3f}"
        )


if __name__ == "__main__":
    main()
