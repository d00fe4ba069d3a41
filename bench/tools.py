"""Installs the programs that the comparisons run, beside those that `make packages` installs; `make bench` calls it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.tools import Need, install_missing  # noqa: E402

NEEDS = (
    Need(("iperf3",), apt="iperf3", dnf="iperf3"),
    Need(("wrk",), apt="wrk", dnf="wrk"),
    Need(("curl",), apt="curl", dnf="curl"),
    Need(("sysctl",), apt="procps", dnf="procps-ng"),
)


def main() -> None:
    install_missing("bench", NEEDS)


if __name__ == "__main__":
    main()
