# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks haproxy as a user does at its runtime socket, where it answers also while it has all connections that it may."""

from __future__ import annotations

from . import network

SHOW_INFO = b"show info\n"


def show_info(stream: network.Stream) -> network.Steps:
    """Any line is an answer."""
    stream.expect("no answer")
    yield from stream.send(SHOW_INFO)
    if not (yield from stream.receive(1)):
        raise network.BadResponse("closed without an answer")
    return "answered"
