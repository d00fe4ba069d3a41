# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills file systems, as logs or images do that nobody deletes.

A file of the drill takes what is free in each of them, for root as well. Nothing of others is touched.
"""

from __future__ import annotations

import re
from typing import Callable, List, NamedTuple, Sequence

from ..read.reader import Run
from .script import Refused, Script, first_line

NAME = ".onprem-lb-drill"  # of the file
FOLDER = re.compile(r"/[A-Za-z0-9_./@:+-]*")  # another one would need quoting, twice
IN_MEMORY = ("tmpfs", "ramfs")
MOST_OF_MEMORY = 0.5  # of what is available: more of it could end other programs
MIB = 1 << 20


class Disk(NamedTuple):
    """A file system to fill, by a folder in it, and how many bytes are free there."""

    folder: str
    free: int


def read(folders: Sequence[str], run: Run, memory: Callable[[], int]) -> List[Disk]:
    """Return the file systems of folders, each once.

    :param memory: returns how many bytes of memory are available
    :raises Refused: a folder that there is not, or in which somebody could have put a link in the file's place; a file
        system in memory that would take too much of it
    """
    found = {}
    for folder in folders:
        if not FOLDER.fullmatch(folder):
            raise Refused(f"disk_full needs folders, and {folder!r} is none that can be written in a command.")
        rc, out, err = run(["df", "--block-size=1", "--output=fstype,avail,target", folder])
        if rc:
            raise Refused(f"disk_full cannot fill {folder}: {first_line(err)}")
        if run(["find", folder, "-maxdepth", "0", "-perm", "/002"])[1].strip():
            raise Refused(f"disk_full does not fill world-writable folders, such as {folder}: name one above it.")
        kind, free, target = out.splitlines()[-1].split(None, 2)
        if kind in IN_MEMORY and int(free) > MOST_OF_MEMORY * memory():
            asked, there = int(free) // MIB, memory() // MIB
            raise Refused(
                f"disk_full would take {asked} MiB of memory to fill {folder}, and {there} MiB are available: "
                "name another folder."
            )
        found[target] = Disk(folder, int(free))
    return list(found.values())


def available_memory(path: str = "/proc/meminfo") -> int:
    """Return how many bytes of memory are available."""
    with open(path, encoding="ascii") as file:
        (kilobytes,) = [line.split()[1] for line in file if line.startswith("MemAvailable:")]
    return int(kilobytes) * 1024


def file_in(folder: str) -> str:
    return f"{folder.rstrip('/')}/{NAME}"


def full(disks: Sequence[Disk]) -> Script:
    """Return the failure of file systems that are full until it is reverted."""
    files = [file_in(disk.folder) for disk in disks]
    fills = [
        # At once, and then what others freed since, and what is kept for root.
        f"fallocate --length {max(disk.free, 1)} {file}; dd if=/dev/zero of={file} bs=4096 oflag=append conv=notrunc"
        for disk, file in zip(disks, files)
    ]
    return Script((), "; ".join([*fills, "true"]), f"rm --force {' '.join(files)}")
