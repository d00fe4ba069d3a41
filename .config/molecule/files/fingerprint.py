"""Prints one line for each file, unit, process and setting of this host that a run of the collection may change.

The arguments are addresses to omit, because they may move between two calls.
"""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys

TREES = ("/etc", "/usr/local", "/var/lib/apt/lists")  # as far as they are there
# Prefixes of the engines' names in /run.
RUNTIME = ("haproxy", "keepalived", "onprem")
# A reload starts new ones. An old one ends with its last session.
WORKERS = ("haproxy", "onprem-lb-proxy", "proxy-worker")
# systemd starts these on demand, or at a login.
ON_DEMAND = ("systemd-", "user@", "user-runtime-dir@")
LOGIN = re.compile(r"session-\w+\.scope ")
SYSTEMCTL = ("systemctl", "--no-legend", "--no-pager", "--plain")


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def describe(path):
    status = os.lstat(path)
    content = ""
    if stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read()).hexdigest()
    return f"file {path} {stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid} {content}"


def files():
    starts = [*TREES, *(f"/run/{name}" for name in os.listdir("/run") if name.startswith(RUNTIME))]
    for start in filter(os.path.lexists, starts):
        yield describe(start)
        for folder, folders, names in os.walk(start):
            yield from (describe(os.path.join(folder, name)) for name in folders + names)


def units():
    # Each login has its own scope. Every other transient unit counts, such as a drill's timers.
    yield from (f"unit {line}" for line in lines(*SYSTEMCTL, "list-unit-files") if not LOGIN.match(line))
    for line in lines(*SYSTEMCTL, "list-units", "--type=service", "--state=running"):
        unit = line.split()[0]
        if not unit.startswith(ON_DEMAND):
            yield f"running {unit} {lines('systemctl', 'show', '--property=MainPID', unit)[0]}"


def workers():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as file:
                name = file.read().strip()
        except FileNotFoundError:  # it has ended meanwhile
            continue
        if name in WORKERS:
            yield f"process {name} {pid}"


def kernel():
    yield from (f"setting {line}" for line in lines("sysctl", "--all", "--ignore", "--pattern", r"^net\.ipv[46]\."))
    for line in lines("ip", "-brief", "address"):
        words = [word for word in line.split() if word.partition("/")[0] not in sys.argv[1:]]
        yield f"address {' '.join(words)}"
    yield from (f"route {line}" for line in lines("ip", "route"))
    if shutil.which("nft"):
        yield from (f"rule {line.strip()}" for line in lines("nft", "--stateless", "list", "ruleset"))


def packages():
    query = ("dpkg-query", "--show") if shutil.which("dpkg-query") else ("rpm", "--query", "--all")
    yield from (f"package {line}" for line in lines(*query))


for section in (files, units, workers, kernel, packages):
    print("\n".join(sorted(section())))
