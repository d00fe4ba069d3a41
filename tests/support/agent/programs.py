# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs small programs for tests, and inspects processes."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import traceback
from pathlib import Path

from support.paths import MODULE_UTILS, ROOT

# How tests start the agent; UNCHANGED is for those that make one of its processes hang.
PATIENT = (sys.executable, "-m", "support.agent.patient")
UNCHANGED = (sys.executable, "-m", "_agent.cli")
PYTHONPATH = os.pathsep.join(map(str, (MODULE_UTILS, ROOT / "tests")))

ME = pwd.getpwuid(os.geteuid()).pw_name


def shell(line: str):
    return ("/bin/sh", "-c", line)


def alive(pid) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


def pids(path):
    """Return the process ids that programs have written to a file, without an incomplete last line."""
    return [int(line) for line in text(path).splitlines(True) if line.endswith("\n")]


def text(path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def is_there(pid) -> bool:
    """Return whether a process exists, or its zombie."""
    return os.path.exists(f"/proc/{pid}")


def run(command):
    """Return the exit code, the output and the errors of a program, as ``AnsibleModule.run_command`` does."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def in_a_child(function):
    """Return the result of a function that runs in a child process, because it changes its process for good."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, json.dumps(function()).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        result = pipe.read()
    os.waitpid(child, 0)
    assert result, "the child has failed"
    return json.loads(result)


def status(pid):
    """Return what the kernel says of a process, each field as a list of words."""
    fields = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _colon, value = line.partition(":")
        fields[key] = value.split()
    return fields


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()
