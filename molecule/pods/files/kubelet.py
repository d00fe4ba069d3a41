"""A stand-in for the kubelet, which nothing that is packaged here provides: it runs the static pods of a folder.

As the kubelet does, it starts a pod whose manifest has come, ends one whose manifest has gone, and starts one anew
whose manifest has changed. podman restarts containers, and asks their probes. What podman does not know is not tested:
mirror pods, priorities, and the kubelet's delay before a container is started again.

An emptyDir in memory is one for all containers of a pod. podman 5 gives each of them its own, so here it is on disk.
"""

import pathlib
import subprocess
import sys
import time

MANIFESTS, RUNNING = pathlib.Path("/etc/kubernetes/manifests"), pathlib.Path("/var/lib/standin-kubelet")
EVERY = 0.5  # seconds; the kubelet's fileCheckFrequency is 20 by default


def podman(*arguments):
    done = subprocess.run(["podman", "kube", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(f"podman kube {' '.join(arguments)}: {done.stdout}{done.stderr}")
        sys.stderr.flush()
    return not done.returncode


def stop(copy):
    """Let the containers end by themselves within their time, and remove them."""
    names = [line.split()[-1] for line in copy.read_text().splitlines() if line.startswith("  name: ")]
    subprocess.run(["podman", "pod", "stop", "--time", "15", *names], capture_output=True, check=False)
    if podman("down", str(copy)):
        copy.unlink()


def revive():
    """Start pods that have ended: podman 5 stops a pod whose only container has, before it is started again."""
    ended = ["podman", "pod", "ps", "--filter", "status=exited", "--format", "{{.Name}}"]
    names = subprocess.run(ended, capture_output=True, text=True, check=False).stdout.split()
    if names:
        subprocess.run(["podman", "pod", "start", *names], capture_output=True, check=False)


def sync():
    found = MANIFESTS.glob("[!.]*.yaml") if MANIFESTS.exists() else ()
    wanted = {path.name: path.read_text().replace("medium: Memory", 'medium: ""') for path in found}
    for copy in RUNNING.iterdir():
        if copy.read_text() != wanted.get(copy.name):
            stop(copy)
    for name, text in wanted.items():
        copy = RUNNING / name
        if not copy.exists():
            copy.write_text(text)
            if not podman("play", "--network", "host", str(copy)):
                stop(copy)


RUNNING.mkdir(parents=True, exist_ok=True)
while True:
    sync()
    revive()
    time.sleep(EVERY)
