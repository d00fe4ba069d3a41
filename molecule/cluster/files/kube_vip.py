"""Stands in for kube-vip: holds the addresses in `address` until SIGTERM, where `leader` is yes."""

import os
import pathlib
import signal
import subprocess


def main() -> None:
    pathlib.Path("/proc/self/comm").write_text("kube-vip")
    given = dict(os.environ)
    held = given["address"].split(",") if given["leader"] == "yes" else []
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    change(held, "add", "nodad")
    signal.sigwait([signal.SIGTERM])
    change(held, "delete")


def change(addresses: "list[str]", verb: str, *options: str) -> None:
    for address in addresses:
        with_prefix = f"{address}/{128 if ':' in address else 32}"
        subprocess.run(["ip", "address", verb, with_prefix, "dev", "eth0", *options], check=True)


if __name__ == "__main__":
    main()
