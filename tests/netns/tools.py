"""Installs the programs that these tests run; `make packages` calls it.

keepalived's unit does not start without a configuration. Those of BIND, FRR and HAProxy would start, so they are
masked.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.tools import Need, install_missing  # noqa: E402

NEEDS = (
    Need(("ip",), apt="iproute2", dnf="iproute"),
    Need(("nft",), apt="nftables", dnf="nftables"),
    Need(("keepalived",), apt="keepalived", dnf="keepalived"),
    Need(("killall",), apt="psmisc", dnf="psmisc"),
    Need(("tshark",), apt="tshark", dnf="wireshark-cli"),
    Need(("vtysh",), apt="frr", dnf="frr"),
    Need(("/usr/lib/frr/frr-reload.py", "/usr/libexec/frr/frr-reload.py"), apt="frr-pythontools", dnf="frr"),
    Need(("haproxy",), apt="haproxy", dnf="haproxy"),
    Need(("named",), apt="bind9", dnf="bind"),
    Need(("nsupdate",), apt="bind9-dnsutils", dnf="bind-utils"),
    Need(("dnsmasq",), apt="dnsmasq-base", dnf="dnsmasq"),
)


def main():
    install_missing("netns", NEEDS)


if __name__ == "__main__":
    main()
