"""Looks for marks, words that begin with `Qzmark`, which a scenario has put in place of everything that may be secret.

`watch FILE` looks at the processes and the temporary files of this host until somebody deletes FILE.begun, and writes
what it has found. `search FILE SINCE FOLDER...` looks in the journal, and in all files in these folders that have
changed since a time, in seconds since 1970. It prints, with what was watched: the marks that are where they must be,
and each one that is anywhere else.
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

WORD = "Qzmark"
# What base64 makes of it, whatever stands around it, at each of the three places where it may begin.
ENCODED = [
    base64.b64encode((" " * lead + WORD).encode())[-(-lead * 8 // 6) : (lead + len(WORD)) * 8 // 6] for lead in range(3)
]
MARKS = re.compile(b"|".join([WORD.encode() + rb"\w*", *ENCODED]))
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/root", "/home")
KERNEL = ("/proc", "/sys", "/dev/", "/var/log/journal", "/run/log/journal")
LARGEST = 1 << 26
# Places, and which marks they must have.
KEPT = {
    "/etc/haproxy/haproxy.cfg": ".",
    "/etc/keepalived/keepalived.conf": ".",
    "/etc/onprem-lb-agent/*.json": ".",
    "/etc/systemd/system/haproxy.service.d/onprem-lb.conf": "QzmarkSt(art|op)",  # systemd shows it to everybody
    "/var/lib/onprem.lb/states/*.json": ".",
    "*/backups/*.json": ".",
    "/etc/onprem-lb-follow/*": "Qzmark(Token|Key)",
    "*/marks/pods/*": ".",
    # What the user has programs run with.
    "arguments of */true": "Qzmark(Script|Notify|Start|Stop)",
    "arguments of *systemd-run": "Qzmark(Inject|Revert)",
    "arguments of /bin/sh": "Qzmark(Inject|Revert)",
    "open file /run/systemd/transient/onprem-lb-drill-*.service": "Qzmark(Inject|Revert)",
    "environment of /usr/sbin/haproxy": "QzmarkGlobal",
}
OPEN = ("/etc/systemd/system/haproxy.service.d/onprem-lb.conf",)
# Where the marks come from: the machine that runs the playbooks may have other copies of this repository.
SOURCES = ("*/.config/molecule/*", "*/molecule/*/secrets*", "*/tests/*", "*/support/*")
BETWEEN = 0.02  # seconds between two looks at the processes
SELDOM = 50  # of so many looks one is at the files, and at old processes, as well


def content(path):
    """Return what a file has, or nothing where it is gone, or is none."""
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST)
    except OSError:
        return b""


def marks(text):
    return {found.decode() for found in MARKS.findall(text)}


def is_private(gid):
    """Whether a group is root's, or that of a daemon of the agent, which nobody else is in."""
    group = grp.getgrgid(gid)
    return gid == 0 or (group.gr_name.startswith("onprem-lb-") and not group.gr_mem)


def is_open(path):
    """Whether others than its owner and a private group may read a file, as neither it nor a folder keeps them out."""
    needed = stat.S_IROTH | (0 if is_private(os.lstat(path).st_gid) else stat.S_IRGRP)
    while os.lstat(path).st_mode & needed:
        if path == "/":
            return True
        path, needed = os.path.dirname(path), stat.S_IXGRP | stat.S_IXOTH
    return False


def changed(folder, since):
    """Yield the paths of files that have changed since a time. The time of a change of the inode cannot be set."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not os.path.join(parent, name, "").startswith(KERNEL)]
        for path in (os.path.join(parent, name) for name in names):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_ctime >= since:
                yield path


def in_files(folders, since):
    """Return the marks of each file, and whether others may read it."""
    found = {}
    for path in (path for folder in folders for path in changed(folder, since)):
        there = marks(content(path))
        try:
            found.update({path: {"marks": sorted(there), "open": is_open(path)}} if there else {})
        except OSError:
            continue  # it is gone
    return found


def in_processes(known, look):
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
                for mark in marks(text):
                    found.setdefault(f"{what} of {program}", set()).add(mark)
    for pid in known.keys() - pids:
        del known[pid]
    return found


def watch(path):
    """Note what processes and open temporary files show, until the file that says so is deleted."""
    found, known, since, begun = {}, {}, time.time(), f"{path}.begun"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with open(begun, "w"):
        pass
    for look in itertools.count():
        goes_on = os.path.exists(begun)  # the last look comes after its end
        for place, there in in_processes(known, look).items():
            found.setdefault(place, set()).update(there)
        for place, file in in_files(TEMPORARY, since).items() if look % SELDOM == 0 or not goes_on else ():
            if file["open"] and not any(fnmatch.fnmatch(place, source) for source in SOURCES):
                found.setdefault(f"open file {place}", set()).update(file["marks"])
        if not goes_on:
            break
        time.sleep(BETWEEN)
    with open(path, "w") as file:
        json.dump({place: sorted(there) for place, there in found.items()}, file)


def is_kept(place, mark):
    """Whether a mark must be there."""
    return any(fnmatch.fnmatch(place, pattern) and re.match(marks, mark) for pattern, marks in KEPT.items())


def search(watched, since, folders):
    """Return the marks that are where they must be, and `PLACE: MARK` for each other one."""
    journal = ("journalctl", "--output=export", "--all", "--no-pager", "--quiet", f"--since=@{since:.0f}")
    found = {path: file for path, file in in_files(folders, since).items() if path not in (watched, __file__)}
    places = [(path, mark, file["open"]) for path, file in found.items() for mark in file["marks"]]
    with open(watched) as file:
        places += [(place, mark, False) for place, there in json.load(file).items() for mark in there]
    if shutil.which("journalctl"):
        there = marks(subprocess.run(journal, check=True, capture_output=True).stdout)
        places += [("the journal", mark, True) for mark in there]
    kept = {mark for place, mark, _is_open in places if is_kept(place, mark)}
    wrong = {
        f"{place}: {mark}{', which others may read' if is_open else ''}"
        for place, mark, is_open in places
        if not is_kept(place, mark) or (is_open and place not in OPEN)
    }
    return {"kept": sorted(kept), "wrong": sorted(wrong)}


if __name__ == "__main__":
    if sys.argv[1] == "watch":
        watch(sys.argv[2])
    else:
        print(json.dumps(search(sys.argv[2], float(sys.argv[3]), sys.argv[4:])))
