"""Compares our decoder and encoder of VRRP advertisements with scapy's, in turns.

    python3 bench/packet.py
    ROUNDS=21 python3 bench/packet.py

Prints medians in microseconds and ratios; on a noisy machine only the ratios are meaningful. Our decoder validates the
message, including its checksum; scapy parses fields on access and validates nothing.
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
# The calls in one round: enough for the clock's resolution, and few enough to alternate often.
OURS, SCAPYS = 5000, 200
V4, V6 = ("192.0.2.1", packet.GROUP), ("fe80::1", packet.GROUP6)
CASES = {
    "v2, password": (packet.Advertisement(2, 51, 100, 1_000_000, ("192.0.2.100",), 1, b"secret"), V4),
    "v3, IPv4": (packet.Advertisement(3, 51, 100, 10_000, ("192.0.2.100",)), V4),
    "v3, IPv6": (packet.Advertisement(3, 51, 100, 10_000, ("fe80::100", "2001:db8::100")), V6),
    "v3, 20 addresses": (packet.Advertisement(3, 51, 100, 10_000, tuple(f"192.0.2.{n}" for n in range(20))), V4),
}


def scapys(advertisement: packet.Advertisement, source: str, destination: str) -> tuple[Any, Callable[[bytes], Any]]:
    """Return the same advertisement as scapy's layer, and a function that decodes it with scapy."""
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


def contenders(advertisement: packet.Advertisement, path: tuple[str, str]) -> dict[str, tuple[Callable[[], Any], int]]:
    message = packet.encode(advertisement, *path)
    layer, read = scapys(advertisement, *path)
    assert bytes(layer) == message, "scapy encodes it differently"
    return {
        "decode, ours": (lambda: packet.decode(message, *path), OURS),
        "decode, scapy": (lambda: read(message), SCAPYS),
        "encode, ours": (lambda: packet.encode(advertisement, *path), OURS),
        "encode, scapy": (lambda: bytes(layer), SCAPYS),
    }


def main() -> None:
    print(f"{'microseconds':<18}{'decode':>8}{'scapy':>8}{'ratio':>8}{'encode':>10}{'scapy':>8}{'ratio':>8}")
    for name, (advertisement, path) in CASES.items():
        codecs = contenders(advertisement, path)
        times: dict[str, list[float]] = {what: [] for what in codecs}
        for _round in range(ROUNDS):
            for what, (call, calls) in codecs.items():
                times[what].append(timeit.timeit(call, number=calls) / calls * 1e6)
        decode, peer_decode, encode, peer_encode = (statistics.median(values) for values in times.values())
        print(
            f"{name:<18}{decode:>8.1f}{peer_decode:>8.1f}{decode / peer_decode:>8.3f}"
            f"{encode:>10.1f}{peer_encode:>8.1f}{encode / peer_encode:>8.3f}"
        )


if __name__ == "__main__":
    main()
