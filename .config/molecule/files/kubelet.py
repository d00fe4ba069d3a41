"""A stand-in for the kubelet, which nothing that is packaged here provides: it runs the static pods of a folder.

As the kubelet does, it starts a pod whose manifest has come, ends one whose manifest has gone, and starts one anew
whose manifest has changed. What is not tested so: mirror pods, priorities, and the kubelet's delay before a container
is started again.

kubelet.py podman      podman runs the pods: it restarts their containers, and asks their probes.
kubelet.py processes   The command of each pod is a process of the host, in the cgroup of a static pod.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

MANIFESTS, RUNNING = pathlib.Path("/etc/kubernetes/manifests"), pathlib.Path("/var/lib/standin-kubelet")
COMMAND, VARIABLE = re.compile(r"command: (\[.*\])"), re.compile(r"- name: (\w+)\n\s+value: (\S+)")


class Podman:
    """An emptyDir in memory is one for all containers of a pod. podman 5 gives each its own, so here it is on disk."""

    every = 0.5  # seconds between two looks at the folder; the kubelet's fileCheckFrequency is 20 by default

    def __init__(self):
        """After a boot none of the pods runs that ran before."""
        for copy in RUNNING.iterdir():
            self.stop(copy)

    def text(self, manifest):
        return manifest.replace("medium: Memory", 'medium: ""')

    def start(self, copy):
        if not self.kube("play", "--network", "host", str(copy)):
            self.stop(copy)

    def stop(self, copy):
        """Let the containers end by themselves within their time, and remove them."""
        names = [line.split()[-1] for line in copy.read_text().splitlines() if line.startswith("  name: ")]
        subprocess.run(["podman", "pod", "stop", "--time", "15", *names], capture_output=True, check=False)
        if self.kube("down", str(copy)):
            copy.unlink()

    def revive(self):
        """Start pods that have ended: podman 5 stops a pod whose only container has, before it is started again."""
        ended = ["podman", "pod", "ps", "--filter", "status=exited", "--format", "{{.Name}}"]
        names = subprocess.run(ended, capture_output=True, text=True, check=False).stdout.split()
        if names:
            subprocess.run(["podman", "pod", "start", *names], capture_output=True, check=False)

    def kube(self, *arguments):
        done = subprocess.run(["podman", "kube", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.stderr.write(f"podman kube {' '.join(arguments)}: {done.stdout}{done.stderr}")
            sys.stderr.flush()
        return not done.returncode


class Processes:
    """Starts each pod once."""

    every = 0.1

    def __init__(self):
        self.pods = {}
        for copy in RUNNING.iterdir():
            copy.unlink()

    def text(self, manifest):
        return manifest

    def start(self, copy):
        manifest = copy.read_text()
        pod, container = (getattr(hashlib, kind)(manifest.encode()).hexdigest() for kind in ("md5", "sha256"))
        scope = [f"--slice=kubepods-pod{pod}.slice", f"--unit=cri-containerd-{container}.scope"]
        self.pods[copy] = subprocess.Popen(
            ["systemd-run", "--scope", "--quiet", *scope, *json.loads(COMMAND.search(manifest).group(1))],
            env={**os.environ, **dict(VARIABLE.findall(manifest))},
        )

    def stop(self, copy):
        process = self.pods.pop(copy)
        process.terminate()
        process.wait()
        copy.unlink()

    def revive(self):
        """Leave those that have ended."""


def sync(engine):
    found = MANIFESTS.glob("[!.]*") if MANIFESTS.exists() else ()
    wanted = {path.name: engine.text(path.read_text()) for path in found}
    for copy in RUNNING.iterdir():
        if copy.read_text() != wanted.get(copy.name):
            engine.stop(copy)
    for name, text in wanted.items():
        copy = RUNNING / name
        if not copy.exists():
            copy.write_text(text)
            engine.start(copy)


def main(kind):
    RUNNING.mkdir(parents=True, exist_ok=True)
    engine = {"podman": Podman, "processes": Processes}[kind]()
    while True:
        sync(engine)
        engine.revive()
        time.sleep(engine.every)


if __name__ == "__main__":
    main(sys.argv[1])
