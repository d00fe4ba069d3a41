# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Replaces configuration files all together or not at all.

Every new file is written beside its target and checked by the program that will read it. Only when all of them pass is
the first one moved into place, so a bad file never reaches its path.
"""

from __future__ import annotations

import grp
import os
import re
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import keepalived_test
from .reader import Find, Run

# What precedes a password in keepalived.conf and haproxy.cfg, and in the agent's JSON.
PASSWORD = re.compile(r"\b(auth_pass|insecure-password|password)([ \t]+)\S+")
JSON_PASSWORD = re.compile(r'("auth_pass":\s*)"(?:[^"\\]|\\.)+"')


def masked(text: str) -> str:
    """Return a text without its passwords, even those that no module argument names as a secret."""
    return JSON_PASSWORD.sub(r'\1"********"', PASSWORD.sub(r"\1\2********", text))


class Refused(Exception):
    """A file cannot be as wanted, or its program refuses it; nothing was changed."""


class Change(NamedTuple):
    """A file before and after; None where there is no file."""

    path: str
    before: Optional[str]
    after: Optional[str]
    mode: int
    check: str
    group: str = ""  # its owning group; the writer's own if empty

    @property
    def diff(self) -> Dict[str, str]:
        return {
            "before_header": self.path if self.before is not None else f"{self.path} (absent)",
            "after_header": self.path if self.after is not None else f"{self.path} (absent)",
            "before": masked(self.before or ""),
            "after": masked(self.after or ""),
        }


def changes(wanted: List[Dict[str, Any]]) -> List[Change]:
    """Compare each wanted file with the one on disk and return those that differ in content or mode.

    :raises Refused: when a mode is none
    """
    found = []
    for item in wanted:
        before, mode, group = _on_disk(item["path"])
        after = item["content"] if item["state"] == "present" else None
        new_mode = _permissions(item["mode"], item["path"])
        other_group = "group" in item and group != _gid_of(item["group"])
        if before != after or (after is not None and (mode != new_mode or other_group)):
            ownership = {"group": item["group"]} if "group" in item else {}
            found.append(Change(item["path"], before, after, new_mode, item["check"], **ownership))
    return found


def _permissions(mode: Any, path: str) -> int:
    if not re.fullmatch("[0-7]{3,4}", str(mode)):
        raise Refused(f"The mode of {path} is {mode}: an octal one is wanted, in quotes, such as '0640'.")
    return int(str(mode), 8)


def _on_disk(path: str) -> Tuple[Optional[str], Optional[int], Optional[int]]:
    """Return a file's text, permissions and group."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            status = os.fstat(file.fileno())
            return file.read(), status.st_mode & 0o7777, status.st_gid
    except FileNotFoundError:
        return None, None, None


def _gid_of(group: str) -> Optional[int]:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def check(change: Change, candidate: str, find: Find, run: Run) -> bool:
    """Let the program check a candidate. Return False if the program is not installed yet.

    :raises Refused: with the program's own message, the candidate's path replaced by the real one
    """
    if change.check == "none" or change.after is None:
        return True
    program = find(change.check)
    if program is None:
        return False
    wrong = CHECKS[change.check](program, candidate, run)
    if wrong is not None:
        reason = wrong.replace(candidate, change.path)
        raise Refused(f"{change.check} refuses the new {change.path}, so nothing was changed. It says: {reason}")
    return True


def _haproxy(program: str, candidate: str, run: Run) -> Optional[str]:
    code, out, err = run([program, "-c", "-f", candidate])
    lines = [line.strip() for line in (err + out).splitlines()]
    alerts = [line for line in lines if "[ALERT]" in line] or lines
    return None if code == 0 else " ".join([*alerts, f"(exit code {code})"])


def _keepalived_test(program: str, candidate: str, run: Run) -> Optional[str]:
    _code, out, err = run([program, "--version"])
    found = keepalived_test.version(out + err)
    code, out, err = run([program, "-t", "-f", candidate])
    return keepalived_test.refusal(found, code % 256, err + out)


def _nft(program: str, candidate: str, run: Run) -> Optional[str]:
    """nft asks the kernel, too: it refuses what the kernel cannot do, and everything if it lacks the privilege."""
    code, out, err = run([program, "--check", "--file", candidate])
    lines = [line.strip() for line in (err + out).splitlines()]
    # Without the lines that quote the file.
    errors = [line for line in lines if "Error:" in line] or lines
    return None if code == 0 else " ".join([*errors, f"(exit code {code})"])


CHECKS: Dict[str, Callable[[str, str, Run], Optional[str]]] = {
    "haproxy": _haproxy,
    "keepalived": _keepalived_test,
    "nft": _nft,
}


def replace_all(pending: List[Change], find: Find, run: Run, move: Callable[[str, str], None], dry: bool) -> List[str]:
    """Check every change, then make them all; return the paths that could not be checked (program not installed).

    :param move: (source, destination), atomic
    :param dry: check only
    :raises Refused: before the first file is touched
    """
    candidates: Dict[str, str] = {}
    try:
        unchecked = []
        for change in pending:
            if change.after is not None:
                candidates[change.path] = _write_candidate(change, beside=not dry)
                if not check(change, candidates[change.path], find, run):
                    unchecked.append(change.path)
        if not dry:
            _move_all(pending, candidates, move)
        return unchecked
    finally:
        for leftover in candidates.values():
            if os.path.exists(leftover):
                os.unlink(leftover)


def _write_candidate(change: Change, beside: bool) -> str:
    """Write the new text where it can be renamed into place, or, for a dry run, into a temporary folder."""
    folder = os.path.dirname(change.path) if beside else None
    if folder:
        os.makedirs(folder, mode=0o755, exist_ok=True)
    # Because of the dot and the suffix, programs that read whole folders ignore it.
    handle, candidate = tempfile.mkstemp(prefix=f".{os.path.basename(change.path)}.", suffix=".new", dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(change.after or "")
        os.fchmod(file.fileno(), change.mode)
        if beside and change.group:
            os.fchown(file.fileno(), -1, grp.getgrnam(change.group).gr_gid)
    return candidate


def _move_all(pending: List[Change], candidates: Dict[str, str], move: Callable[[str, str], None]) -> None:
    """Move every candidate into place; if one cannot be moved, restore the earlier files."""
    done: List[Change] = []
    try:
        for change in pending:
            if change.after is None:
                os.unlink(change.path)
            else:
                move(candidates[change.path], change.path)
            done.append(change)
    except OSError:
        for change in reversed(done):
            _restore(change, move)
        raise


def _restore(change: Change, move: Callable[[str, str], None]) -> None:
    if change.before is None:
        os.unlink(change.path)
    else:
        move(_write_candidate(change._replace(after=change.before), beside=True), change.path)


def mover(module: Any) -> Callable[[str, str], None]:
    """Return a move that keeps the destination's SELinux context, but not its permissions as AnsibleModule's does."""

    def move(source: str, destination: str) -> None:
        if module.selinux_enabled():
            known = os.path.exists(destination)
            context = module.selinux_context(destination) if known else module.selinux_default_context(destination)
            module.set_context_if_different(source, context, False)
        os.rename(source, destination)

    return move
