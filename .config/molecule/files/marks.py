"""Looks for a run's marks, which a scenario has put in place of everything that may be secret.

A mark is the word of the run and a name with a capital letter. `watch FILE WORD` looks at the processes and the
temporary files of this host until somebody deletes FILE.begun, and writes what it has found. `search FILE WORD SINCE
FOLDER...` looks in the journal, and in all files in these folders that have changed since a time in seconds since 1970.
It prints, with what was watched: the marks that are where they must be, and each one that is anywhere else.
"""

import base64
import contextlib
import fnmatch
import grp
import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from typing import NamedTuple

TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/root", "/home")
LEFT_OUT = ("/proc/", "/sys/", "/dev/", "/var/log/journal/", "/run/log/journal/")
KERNEL = ("proc", "sysfs", "devtmpfs", "cgroup", "cgroup2")  # file systems in which a read may never end
LARGEST = 1 << 26
# Units, which systemd shows to everybody.
OPEN = ("/etc/systemd/system/haproxy.service.d/onprem-lb.conf", "/etc/systemd/system/onprem-lb-proxy.service")
# Places, and which marks they must have, without the word.
KEPT = {
    "/etc/haproxy/haproxy.cfg": ".",
    "/etc/keepalived/keepalived.conf": ".",
    "/etc/onprem-lb-agent/*.json": ".",
    **dict.fromkeys(OPEN, "St(art|op)"),
    "/var/lib/onprem.lb/states/*.json": ".",
    "*/backups/*.json": ".",
    "/etc/onprem-lb-follow/*": "(Token|Key)",
    "*/marks/pods/*": ".",
    # What the user has programs run with.
    "arguments of */true": "(Script|Notify|Start|Stop)",
    "arguments of *systemd-run": "(Inject|Revert)",
    "arguments of /bin/sh": "(Inject|Revert)",
    "open file /run/systemd/transient/onprem-lb-drill-*.service": "(Inject|Revert)",
    "environment of /usr/sbin/haproxy": "Global",
}
BETWEEN = 0.02  # seconds between two looks at the processes
ENTER = stat.S_IXGRP | stat.S_IXOTH
SELDOM = 50  # of so many looks one is at old processes as well
SHARE = 10  # a look at the files takes at most one part in so many of the time


def content(path):
    """Return what a file has, or nothing where it is gone, or is none."""
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST)
    except OSError:
        return b""


class Sought(NamedTuple):
    """A word, and what finds its marks: typed, or in base64 to its end, which is a group for each place in a triple."""

    word: bytes
    marks: re.Pattern


def pattern(word):
    """Return what finds the marks of a word as they are typed and, whatever stands around them, in base64."""
    typed = word.encode()
    encoded = [base64.b64encode(b" " * lead + typed)[unsure(lead) : (lead + len(typed)) * 8 // 6] for lead in range(3)]
    in_base64 = [b"(" + re.escape(each) + rb"[A-Za-z0-9+/]*)" for each in encoded]
    return Sought(typed, re.compile(b"|".join([typed + rb"[A-Z]\w*", *in_base64])))


def unsure(lead):
    """Return how many characters of base64 depend on what stands before a word, of which they have so many bytes."""
    return -(-lead * 8 // 6)


def marks(sought, text):
    """Return the marks in a text. What is in base64 is named as well, unless the base64 ends with the word."""
    found = set()
    for each in sought.marks.finditer(text):
        inner = marks(sought, decoded(sought.word, each[0], each.lastindex - 1)) if each.lastindex else set()
        found |= inner or {each[0].decode()}
    return found


def decoded(word, encoded, lead):
    """Return a word, and what comes after it in base64.

    :param lead: how many bytes stand before the word in its triple
    """
    whole = b"A" * unsure(lead) + encoded
    return word + base64.b64decode(whole + b"A" * (-len(whole) % 4))[lead + len(word) :]


def is_private(gid):
    """Whether a group is root's, or that of a daemon of the agent, which nobody else is in."""
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == 0 or (group.gr_name.startswith("onprem-lb-") and not group.gr_mem)


def is_open(path):
    """Whether others than its owner and a private group may read a file, as neither it nor a folder keeps them out."""
    needed = stat.S_IROTH | (0 if is_private(os.lstat(path).st_gid) else stat.S_IRGRP)
    while os.lstat(path).st_mode & needed:
        if path == "/":
            return True
        path, needed = os.path.dirname(path), ENTER
    return False


def is_closed(folder):
    """Whether a folder keeps others than its owner out."""
    try:
        return not os.lstat(folder).st_mode & ENTER
    except OSError:
        return True  # it is gone


def of_kernel():
    """Return where the kernel shows itself, also to a tree that somebody has unpacked in a temporary folder."""
    mounts = [line.split() for line in content("/proc/self/mounts").decode(errors="replace").splitlines()]
    return {mount[1] for mount in mounts if mount[2] in KERNEL}


def changed(folder, since, left_out):
    """Yield the paths of files that have changed since a time. The time of a change of the inode cannot be set.

    :param left_out: says it of a folder in which nothing is looked for
    """
    kernel = of_kernel()
    for parent, folders, names in os.walk(folder):
        inner = {name: os.path.join(parent, name) for name in folders}
        looked = {name: path for name, path in inner.items() if not f"{path}/".startswith(LEFT_OUT)}
        folders[:] = [name for name, path in looked.items() if path not in kernel and not left_out(path)]
        for path in (os.path.join(parent, name) for name in names):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_ctime >= since:
                yield path


def in_files(sought, folders, since, left_out=lambda _folder: False):
    """Return the marks of each file, and whether others may read it."""
    found = {}
    for path in (path for folder in folders if not left_out(folder) for path in changed(folder, since, left_out)):
        there = marks(sought, content(path))
        try:
            found.update({path: {"marks": sorted(there), "open": is_open(path)}} if there else {})
        except OSError:
            continue  # it is gone
    return found


def in_processes(sought, known, look):
    """Return the marks of processes' arguments and environments: by what has them, and the program.

    :param known: what earlier looks have seen
    :param look: its number. An old process seldom becomes another program, so it is seldom looked at
    """
    found = {}
    pids = {*filter(str.isdigit, os.listdir("/proc"))} - {str(os.getpid())}
    for pid in pids:
        first, before = known.get(pid, (look, b""))
        if look - first > SELDOM and look % SELDOM:
            continue
        arguments = content(f"/proc/{pid}/cmdline")
        if not arguments:  # it is about to have some, or is one of the kernel's
            continue
        known[pid] = (first, arguments)
        if before != arguments:  # the environment is new with each program
            program = arguments.split(b"\0")[0].decode(errors="replace")
            for what, text in (("arguments", arguments), ("environment", content(f"/proc/{pid}/environ"))):
                for mark in marks(sought, text):
                    found.setdefault(f"{what} of {program}", set()).add(mark)
    for pid in known.keys() - pids:
        del known[pid]
    return found


def watch(path, sought):
    """Note what processes and open temporary files show, until the file that says so is deleted."""
    found, known, begun, due = {}, {}, f"{path}.begun", 0
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with open(begun, "w") as file:
        since = os.fstat(file.fileno()).st_ctime  # the clock of inodes is some milliseconds behind that of time()
    for look in itertools.count():
        goes_on = os.path.exists(begun)  # the last look comes after its end
        for place, there in in_processes(sought, known, look).items():
            found.setdefault(place, set()).update(there)
        if time.monotonic() >= due or not goes_on:
            before = time.monotonic()
            for place, file in in_files(sought, TEMPORARY, since, is_closed).items():
                if file["open"]:
                    found.setdefault(f"open file {place}", set()).update(file["marks"])
            due = time.monotonic() + SHARE * max(BETWEEN, time.monotonic() - before)
        if not goes_on:
            break
        time.sleep(BETWEEN)
    with open(path, "w") as file:
        json.dump({place: sorted(there) for place, there in found.items()}, file)


def is_kept(place, mark):
    """Whether a mark, without the word, must be there."""
    return any(fnmatch.fnmatch(place, places) and re.match(marks, mark) for places, marks in KEPT.items())


def search(watched, word, since, folders):
    """Return the marks that are where they must be, and `PLACE: MARK` for each other one."""
    journal = ("journalctl", "--output=export", "--all", "--no-pager", "--quiet", f"--since=@{since:.0f}")
    sought = pattern(word)
    found = {path: file for path, file in in_files(sought, folders, since).items() if path not in (watched, __file__)}
    places = [(path, mark, file["open"]) for path, file in found.items() for mark in file["marks"]]
    with open(watched) as file:
        places += [(place, mark, False) for place, there in json.load(file).items() for mark in there]
    if shutil.which("journalctl"):
        there = marks(sought, subprocess.run(journal, check=True, capture_output=True).stdout)
        places += [("the journal", mark, True) for mark in there]
    kept = {mark for place, mark, _is_open in places if is_kept(place, mark[len(word) :])}
    wrong = {
        f"{place}: {mark}{', which others may read' if is_open else ''}"
        for place, mark, is_open in places
        if not is_kept(place, mark[len(word) :]) or (is_open and place not in OPEN)
    }
    return {"kept": sorted(kept), "wrong": sorted(wrong)}


if __name__ == "__main__":
    if sys.argv[1] == "watch":
        watch(sys.argv[2], pattern(sys.argv[3]))
    else:
        print(json.dumps(search(*sys.argv[2:4], float(sys.argv[4]), sys.argv[5:])))
