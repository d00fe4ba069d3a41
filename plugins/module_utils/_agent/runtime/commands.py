# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs a program of the host to its end."""

from __future__ import annotations

import subprocess

TIMEOUT = 30  # seconds
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def run(*command: str) -> str:
    """Run a program; return the first line of its complaint if it fails, and '' if it does not."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False, env=ENVIRONMENT
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} has not ended within {TIMEOUT} s."
    except OSError as error:
        return f"{command[0]} cannot be run: {(error.strerror or str(error)).lower()}."
    if not done.returncode:
        return ""
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    # HAProxy's notices and warnings come before what it refuses.
    worst = next((line for line in lines if "[ALERT]" in line), lines[0] if lines else "")
    return f"{worst.rstrip('.') or f'exit code {done.returncode}'}."
