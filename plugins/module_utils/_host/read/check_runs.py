# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs a check once, as its router would run it: without a shell, as its user, and for no longer than its timeout."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from typing import Any, Mapping

from ..._agent.config import shell_words
from ..._agent.runtime import accounts

PRINTED = 200  # characters of what it prints that are repeated


def fault(check: Mapping[str, Any]) -> str:
    """Return why a check fails, in words that follow its name; '' if it succeeds.

    :param check: ``{command, timeout, user}``
    """
    timeout = float(check["timeout"])
    with tempfile.TemporaryFile() as output:
        try:
            process = _start(check, output)
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            why = f"takes longer than its timeout of {timeout:g} s"
        except (OSError, LookupError, ValueError) as error:
            return f"cannot be run as {check['user']}: {getattr(error, 'strerror', None) or str(error).rstrip('.')}"
        else:
            if not code:
                return ""
            why = f"ends with signal {-code}" if code < 0 else f"fails with exit code {code}"
        output.seek(0)
        printed = " ".join(output.read(10 * PRINTED).decode(errors="replace").split())
    return f"{why}, and prints: {printed[:PRINTED]}" if printed else why


def _start(check: Mapping[str, Any], output: Any) -> subprocess.Popen[bytes]:
    """Not with a pipe: what a check leaves running would keep it open."""
    account = accounts.named(check["user"])
    return subprocess.Popen(
        shell_words.split(check["command"]),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd="/",
        env=account.environment(),
        preexec_fn=account.assume,
        start_new_session=True,
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
