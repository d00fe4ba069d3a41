"""Stands in for a kubelet and for kube-vip: runs a program called so in the cgroup of a static pod, as long as there is
a manifest for it.

static_pods.py kubelet
"""

import hashlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

FOLDER = pathlib.Path("/etc/kubernetes/manifests")
VARIABLE = re.compile(r"- name: (\w+)\n\s+value: (\S+)")


def kubelet() -> None:
    pods = {}
    while True:
        there = {path for path in FOLDER.iterdir() if not path.name.startswith(".")}
        for path in there - {*pods}:
            pods[path] = start(path.read_text())
        for path in {*pods} - there:
            pods[path].terminate()
            pods.pop(path).wait()
        time.sleep(0.1)


def start(manifest: str) -> subprocess.Popen:
    pod, container = (getattr(hashlib, kind)(manifest.encode()).hexdigest() for kind in ("md5", "sha256"))
    scope = [f"--slice=kubepods-pod{pod}.slice", f"--unit=cri-containerd-{container}.scope"]
    return subprocess.Popen(
        ["systemd-run", "--scope", "--quiet", *scope, sys.executable, __file__, "kube-vip"],
        env={**os.environ, **dict(VARIABLE.findall(manifest))},
    )


def kube_vip() -> None:
    """Hold the addresses until SIGTERM, where this is the leader."""
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
    {"kubelet": kubelet, "kube-vip": kube_vip}[sys.argv[1]]()
