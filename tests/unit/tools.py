# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installs the programs that the unit tests run; `make packages` calls it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.tools import Need, install_missing  # noqa: E402

NEEDS = (
    Need(("openssl",), apt="openssl", dnf="openssl"),
    Need(("gpg",), apt="gnupg", dnf="gnupg2"),
    # It reads what the playbook writes for it; as a service it is in another package.
    Need(("dnsmasq",), apt="dnsmasq-base", dnf="dnsmasq"),
    # It makes packages and brings them into every state that there is, in a folder of the test.
    Need(("dpkg",), apt="dpkg", dnf="dpkg"),
    # They are asked what they read in the files that the roles write.
    Need(("haproxy",), apt="haproxy", dnf="haproxy"),
    Need(("keepalived",), apt="keepalived", dnf="keepalived"),
    Need(("nft",), apt="nftables", dnf="nftables"),
    Need(("systemd-analyze",), apt="systemd", dnf="systemd"),
    # It reads the alerts, and tries them.
    Need(("promtool",), apt="prometheus", dnf="golang-github-prometheus"),
    Need(("nsupdate",), apt="bind9-dnsutils", dnf="bind-utils"),
)


def main():
    install_missing("unit", NEEDS)


if __name__ == "__main__":
    main()
