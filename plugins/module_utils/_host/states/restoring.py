# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Puts a state of a member in the place of what it has."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Callable, List

from ..._shared import paths
from ..candidates import candidate_of
from ..firewall import core, model
from ..firewall.system import Host
from ..read.reader import Reader, Run
from ..write import frr
from . import changes, snapshot
from .snapshot import File, Snapshot

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Failed(Exception):
    """Something cannot be restored; the text is a sentence."""


def files(now: Snapshot, then: Snapshot, root: str = "") -> List[str]:
    """Restore the files, each atomically; return the paths that changed.

    :param root: a folder in place of /, for tests
    """
    todo = changes.of_files(now, then)
    for file in todo.write:
        _write(file, root)
    for path in todo.delete:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(root + path)
    return todo.paths


def _write(file: File, root: str) -> None:
    path = root + file.path
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with candidate_of(path) as candidate:
        handle = candidate.file.fileno()
        candidate.file.write(file.content)
        candidate.file.flush()
        os.fchmod(handle, file.mode)
        os.fchown(handle, file.uid, file.gid)
        if file.label:
            with contextlib.suppress(OSError):
                os.setxattr(handle, snapshot.LABEL, file.label)
        os.fsync(handle)
        if file.target:
            os.unlink(candidate.path)
            os.symlink(file.target, candidate.path)
        os.rename(candidate.path, path)


def openings(firewall: Host, then: Snapshot) -> List[str]:
    """Restore the openings in the firewall; return what was done.

    :raises Failed: with the firewall's own words
    """
    try:
        todo = core.plan(firewall, "auto", [opening(text) for text in then.openings], then.interfaces)
        model.apply(todo.actions, firewall)
    except model.FirewallError as error:
        raise Failed(str(error)) from None
    return ["change the firewall"] if todo.actions else []


def opening(text: str) -> model.Opening:
    """Return the opening that prints as this text."""
    what, _from, source = text.partition(" from ")
    port = int(what.partition(" ")[2]) if what.startswith("tcp") else 0
    return model.Opening(port, "" if source == "anywhere" else source)


def current_openings(firewall: Host) -> List[str]:
    """Return the openings that this collection has made, as text.

    :raises Failed: with the firewall's own words
    """
    try:
        return snapshot.openings_of(core.plan(firewall, "auto", []).before)
    except model.FirewallError as error:
        raise Failed(str(error)) from None


def _load_frr(run: Run) -> str:
    """Have FRR run its file; return why it does not, or ''."""
    try:
        with open(paths.FRR_CONFIG, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError as error:
        return f"FRR goes on with what it runs: {error}."
    return frr.take(frr.Frr(Reader(run, lambda name: shutil.which(name, path=PATH))), text)


def commands(run: Run, todo: List[List[str]], say: Callable[[str], None]) -> List[str]:
    """Run commands one after the other, and go on after one that fails; return what failed."""
    failed: List[str] = []
    for command in todo:
        say(" ".join(command))
        if command == changes.LOAD_FRR:
            failed += filter(None, [_load_frr(run)])
            continue
        code, out, err = run(command)
        if code:
            failed.append(f"{' '.join(command)} failed: {' '.join((err or out).split()) or f'exit code {code}'}")
    return failed
