# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads FRR through vtysh: its sessions of BGP, what BFD says of them, and the configuration that it runs."""

from __future__ import annotations

import time
from typing import List, Optional

from ..._agent.metrics.sessions import BFD, SUMMARY, Session, read
from .reader import Reader

VTYSH = "vtysh"
PATIENCE = "20"  # seconds, after which a daemon that does not answer is left alone


class NoAnswer(Exception):
    """FRR did not say what it was asked; the text is a sentence."""


def ask(reader: Reader, command: str) -> str:
    """Return what FRR says to a command.

    :raises NoAnswer: it is not installed, does not run, or hangs
    """
    vtysh = reader.find(VTYSH)
    if not vtysh:
        raise NoAnswer("FRR is not installed: vtysh is missing.")
    code, out, err = reader.run(["timeout", PATIENCE, vtysh, "-c", command])
    if code:
        said = " ".join(err.split())  # its other words may be a configuration, with passwords
        raise NoAnswer(f"FRR does not answer ({said or f'vtysh ended with code {code}'}): see `systemctl status frr`.")
    return out


def running_config(reader: Reader) -> str:
    """Return the configuration that FRR runs, whatever its file says.

    :raises NoAnswer: FRR does not say it
    """
    return ask(reader, "show running-config")


def sessions(reader: Reader, now: Optional[float] = None) -> List[Session]:
    """Return the sessions, by family and peer.

    :raises NoAnswer: FRR does not say them
    """
    summary = ask(reader, SUMMARY)
    return read(summary, _bfd(reader), time.time() if now is None else now)


def _bfd(reader: Reader) -> str:
    try:
        return ask(reader, BFD)
    except NoAnswer:  # without bfdd the sessions are there all the same
        return ""
