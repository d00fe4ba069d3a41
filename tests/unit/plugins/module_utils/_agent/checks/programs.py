# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small programs for the tests, and what is known of processes."""

from __future__ import annotations

import os
import pwd

ME = pwd.getpwuid(os.geteuid()).pw_name


def shell(line: str):
    return ("/bin/sh", "-c", line)


def alive(pid) -> bool:
    """A process is there and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


def pids(path):
    """Return the process numbers that programs have left in a file, as far as they are complete."""
    return [int(line) for line in text(path).splitlines(True) if line.endswith("\n")]


def text(path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
