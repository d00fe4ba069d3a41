"""Brings the programs that the tests here run, as root or through sudo; `make netns` calls it.

Where that cannot be, it says what is missing, and fails.
keepalived's unit does not start without a configuration, so installing it starts nothing. FRR's would: it is masked.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab import machine, shell  # noqa: E402
from lab.machine import Need  # noqa: E402

NEEDS = (
    Need(("ip",), apt="iproute2", dnf="iproute"),
    Need(("nft",), apt="nftables", dnf="nftables"),
    Need(("keepalived",), apt="keepalived", dnf="keepalived"),
    Need(("killall",), apt="psmisc", dnf="psmisc"),
    Need(("tshark",), apt="tshark", dnf="wireshark-cli"),
    Need(("vtysh",), apt="frr", dnf="frr"),
)
SYSTEMD = Path("/run/systemd/system")


def missing():
    return [need for need in NEEDS if not any(map(machine.exists, need.found_as))]


def main():
    facts = machine.observe()
    wanted = tuple(need.apt for need in missing())
    if wanted and facts.package_manager == "apt-get" and facts.privilege in machine.AS_ROOT:
        as_root = machine.AS_ROOT[facts.privilege]
        with shell.step("install " + " ".join(wanted)):
            if "frr" in wanted and SYSTEMD.is_dir():
                shell.run([*as_root, "systemctl", "mask", "frr.service"])
            machine.install(as_root, wanted)
    left = missing()
    if left:
        names = ", ".join(need.dnf if facts.package_manager == "dnf" else need.apt for need in left)
        sys.exit(f"netns: these packages are missing and cannot be installed from here: {names}.")


if __name__ == "__main__":
    main()
