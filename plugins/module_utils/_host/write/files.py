# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Replaces configuration files all together or not at all.

Every new file is written beside its target and checked by the program that will read it. Only when all of them pass is
the first one moved into place, so a bad file never reaches its path.

A file of others is kept beside it, whole, with its owner and its SELinux context: a second name for it is made before
the new one takes its place.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import grp
import os
import pwd
import re
import tempfile
from types import MappingProxyType
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._shared import mark, paths
from ..._shared.engines import HAPROXY
from .. import masking, records
from ..candidates import Move, candidate_of
from ..read import expiry, loaded_files, ownership
from ..read.reader import Find, Run
from .verdicts import CHECKS


class Refused(Exception):
    """A file cannot be as wanted, or its program refuses it; nothing was changed."""


class Change(NamedTuple):
    """A file before and after; None where there is no file."""

    path: str
    before: Optional[str]
    after: Optional[str]
    mode: int
    check: str
    group: str = ""  # its owning group; the writer's own if empty, likewise its owner
    owner: str = ""
    keeps: bool = False  # what is there is kept beside it
    served_elsewhere: Collection[str] = ()  # checksums of what other members' haproxy has loaded
    puts_back: bool = False  # what was kept comes back; `mode`, `check` and `group` have no effect
    shown: bool = True  # whether `diff` has the texts

    @property
    def is_certificate(self) -> bool:
        """Whether it is one whose text is in the inventory, which haproxy is to read."""
        return os.path.dirname(self.path) == paths.CERTIFICATES

    @property
    def diff(self) -> Dict[str, str]:
        return {
            "before_header": self.path if self.before is not None else f"{self.path} (absent)",
            "after_header": self.path if self.after is not None else f"{self.path} (absent)",
            "before": masking.of_before(masking.masked(self.before or ""), self.after or "") if self.shown else "",
            "after": masking.masked(self.after or "") if self.shown else "",
        }


def changes(wanted: List[Dict[str, Any]]) -> List[Change]:
    """Compare each wanted file with the one on disk and return those that differ in content or mode.

    :raises Refused: when a mode is none
    """
    found = []
    for item in wanted:
        own_only = item["state"] == "absent" and item.get("own_only")
        if own_only and not os.path.isfile(item["path"]):
            continue
        before, mode, *owners = on_disk(item["path"])
        is_marked = mark.is_marked(before or "")
        if own_only and not (is_marked or mark.is_down_file(before or "")):
            continue
        after = item["content"] if item["state"] == "present" else None
        new_mode = _permissions(item["mode"], item["path"])
        owner, group = item.get("owner") or "", item.get("group") or ""
        other_owners = _others(owners, [_uid_of(owner), _gid_of(group)])
        if before != after or (after is not None and (mode != new_mode or other_owners)):
            keeps = bool(item.get("keep")) and before is not None and not is_marked
            change = Change(item["path"], before, after, new_mode, item["check"], group, owner, keeps)
            served = item.get("served_elsewhere") or ()
            found.append(change._replace(shown=item.get("diff", True), served_elsewhere=served))
    return found


def set_aside(paths: Iterable[str]) -> List[Change]:
    """Return the changes that keep files beside their places, which they leave."""
    return [Change(path, on_disk(path)[0], None, 0, "none", keeps=True) for path in paths if os.path.lexists(path)]


def put_back(paths: Iterable[str], gone: Collection[str] = ()) -> List[Change]:
    """Return the changes that bring kept files back. One whose place is taken stays where it is.

    :param gone: places that are taken, and will be free by then
    """
    return [
        Change(path, None, on_disk(ownership.kept(path))[0], 0, "none", puts_back=True)
        for path in paths
        if os.path.lexists(ownership.kept(path)) and (not os.path.lexists(path) or _is_kept(path) or path in gone)
    ]


def _is_kept(path: str) -> bool:
    """Whether a file has its second name already, as an interrupted run may leave it."""
    kept = ownership.kept(path)
    return os.path.exists(path) and os.path.exists(kept) and os.path.samefile(path, kept)


def _permissions(mode: Any, path: str) -> int:
    if not re.fullmatch("[0-7]{3,4}", str(mode)):
        raise Refused(f"The mode of {path} is {mode}: write an octal one in quotes, such as '0640'.")
    return int(str(mode), 8)


def on_disk(path: str) -> Tuple[Optional[str], Optional[int], Optional[int], Optional[int]]:
    """Return a file's text, permissions, owner and group."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            status = os.fstat(file.fileno())
            return file.read(), status.st_mode & 0o7777, status.st_uid, status.st_gid
    except (FileNotFoundError, NotADirectoryError):
        return None, None, None, None


def _uid_of(owner: str) -> Optional[int]:
    """Return the user's number: -1 for no user, None for one that is not there yet."""
    try:
        return pwd.getpwnam(owner).pw_uid if owner else -1
    except KeyError:
        return None


def _gid_of(group: str) -> Optional[int]:
    try:
        return grp.getgrnam(group).gr_gid if group else -1
    except KeyError:
        return None


def _others(found: Sequence[Optional[int]], wanted: Sequence[Optional[int]]) -> bool:
    """Whether a file belongs to others than wanted."""
    return any(want != -1 and have != want for have, want in zip(found, wanted))


def check(
    change: Change, candidate: str, find: Find, run: Run, others: Mapping[str, str] = MappingProxyType({})
) -> Optional[List[str]]:
    """Let the program check a candidate. Return its warnings; None if the program is not installed yet.

    :param others: the candidates of other files by their paths, if it is to be read with these
    :raises Refused: with the program's own message, the candidates' paths replaced by the real ones
    """
    if change.check == "none" or change.after is None:
        return []
    new = change.path if candidate == change.path else f"the new {change.path}"
    expired = {}
    if change.check == HAPROXY:
        certificates = loaded_files.certificates(change.after, change.path)
        expired = expiry.refusals(certificates, change.served_elsewhere)
    for path, wrong in expired.items():
        raise Refused(f"{path}, which {new} names, is refused, so nothing was changed: {wrong}")
    program = find(change.check)
    if program is None:
        return None
    with _read_with(change, candidate, others) as tested:
        verdict = CHECKS[change.check](program, tested, run)
    places = {tested: change.path, candidate: change.path, **{new: path for path, new in others.items()}}
    refusal, *warnings = (
        masking.hidden(_replaced(said, places), change.after, loaded_files.named_in(said, tested))
        for said in (verdict.refusal or "", *verdict.warnings)
    )
    if verdict.refusal is not None:
        raise Refused(f"{change.check} refuses {new}, so nothing was changed. It says: {refusal}")
    return [f"{change.check} accepts {new} with a warning: {warning}" for warning in warnings]


def _replaced(text: str, places: Mapping[str, str]) -> str:
    return functools.reduce(lambda found, new: found.replace(new, places[new]), places, text)


@contextlib.contextmanager
def _read_with(change: Change, candidate: str, others: Mapping[str, str]) -> Iterator[str]:
    """Yield the path of a candidate that names the candidates of other files: those are at their places after it."""
    text = change.after or ""
    for path, new in others.items():
        text = re.sub(rf"{re.escape(path)}(?![\w.-])", new, text)
    if text == change.after:
        yield candidate
        return
    with tempfile.NamedTemporaryFile() as copy:  # which only its owner may read
        copy.write(_encoded(text))
        copy.flush()
        yield copy.name


class Checked(NamedTuple):
    """The paths of files whose program is not installed yet, and the programs' warnings about the others."""

    unchecked: List[str]
    warnings: List[str]


def as_it_is(path: str, program: str) -> Change:
    """Return a file that is as wanted, for its program to check with all that it names."""
    text = on_disk(path)[0]
    return Change(path, text, text, 0, program)


def replace_all(
    pending: List[Change], find: Find, run: Run, move: Move, dry: bool, unloaded: Sequence[Change] = ()
) -> Checked:
    """Check every change, then make them all.

    :param dry: check only
    :param unloaded: files that are as wanted, and that their programs are to load again
    :raises Refused: before the first file is touched
    """
    candidates: Dict[str, str] = {}
    try:
        checked = Checked([], [])
        written = [change for change in pending if change.after is not None and not change.puts_back]
        for change in written:
            candidates[change.path] = _write_candidate(change, beside=not dry)
        named = {change.path: candidates[change.path] for change in written if change.is_certificate}
        for change in unloaded:
            checked.warnings.extend(check(change, change.path, find, run, named) or [])
        for change in written:
            warnings = check(change, candidates[change.path], find, run, named)
            checked.warnings.extend(warnings or [])
            checked.unchecked.extend([change.path] if warnings is None else [])
        if not dry:
            _move_all(pending, candidates, move)
        return checked
    finally:
        for leftover in candidates.values():
            if os.path.exists(leftover):
                os.unlink(leftover)


def _write_candidate(change: Change, beside: bool) -> str:
    """Write the new text where it can be renamed into place, or, for a dry run, into a temporary folder.

    There only its owner may read it, whatever its mode is to be.
    """
    _refuse_without_folder(change.path)
    folder = os.path.dirname(change.path) if beside else tempfile.gettempdir()
    if beside:
        os.makedirs(folder, mode=0o755, exist_ok=True)
    with candidate_of(change.path, folder) as candidate:
        candidate.file.write(_encoded(change.after or ""))
        if beside:
            os.fchmod(candidate.file.fileno(), change.mode)
        if beside and (change.group or change.owner):
            owner, group = _uid_of(change.owner), _gid_of(change.group)
            if owner is None or group is None:
                raise Refused(f"{change.path} is to belong to {change.owner}:{change.group}, which this host lacks.")
            os.fchown(candidate.file.fileno(), owner, group)
    return candidate.path


def _refuse_without_folder(path: str) -> None:
    """Refuse a file in whose path something is that is no folder, and leads to none."""
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise Refused(f"{folder} is no folder, and {path} is to be in it: rename it. Nothing was changed.")


def is_left(path: str) -> bool:
    """Whether there is something to remove. A mount point stays, so of an empty one there is nothing."""
    return os.path.lexists(path) and not (_is_mount_point(path) and not os.listdir(path))


def remove(path: str) -> None:
    """Delete a file, a link, or a folder with all that it contains, if it is there.

    A folder on which a file system is mounted stays, empty. One that is mounted further down is somebody else's, and
    stays as it is.
    """
    if os.path.islink(path) or not os.path.isdir(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    for each in (os.path.join(path, name) for name in os.listdir(path)):
        if not _is_mount_point(each):
            remove(each)
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.ENOTEMPTY):
            raise


def _is_mount_point(path: str) -> bool:
    """Ask the kernel, which knows those of the same file system as well; it escapes blanks in octal."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mounted = {re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), line.split()[4]) for line in file}
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) in mounted


def refuse_after_return() -> None:
    """Refuse what a run wants that has sent no heartbeat for too long."""
    if records.has_returned():
        raise Refused(
            "This member has returned to its previous settings, because the run sent no heartbeat for too long: "
            "repeat onprem.lb.site."
        )


def _move_all(pending: List[Change], candidates: Dict[str, str], move: Move) -> None:
    """Move every candidate into place; if one cannot be moved, restore the earlier files."""
    if pending:
        refuse_after_return()
        records.note_written({change.path: _encoded(change.after) for change in pending if change.after is not None})
    done: List[Change] = []
    try:
        for change in pending:
            if change.keeps:
                _keep(change.path)
            if change.puts_back:
                _bring_back(change.path)
            elif change.after is None:
                os.unlink(change.path)
            else:
                move(candidates[change.path], change.path)
            done.append(change)
    except OSError:
        restore(done, move)
        raise
    _leave_no_empty_folders(change.path for change in pending if change.after is None)


def _leave_no_empty_folders(gone: Iterable[str]) -> None:
    """Delete the folder of a unit's drop-ins, and that of certificates, with the last one."""
    for folder in {os.path.dirname(path) for path in gone}:
        if folder.endswith(".service.d") or folder == paths.CERTIFICATES:
            with contextlib.suppress(OSError):  # there are others
                os.rmdir(folder)


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _keep(path: str) -> None:
    if not _is_kept(path):
        os.link(path, ownership.kept(path), follow_symlinks=False)


def _bring_back(path: str) -> None:
    kept = ownership.kept(path)
    os.rename(kept, path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(kept)  # of two names for one file rename(2) leaves both


def _restore(change: Change, move: Move) -> None:
    if change.puts_back:
        os.rename(change.path, ownership.kept(change.path))
    elif change.keeps:
        _bring_back(change.path)
    elif change.before is None:
        os.unlink(change.path)
    else:
        move(_write_candidate(change._replace(after=change.before), beside=True), change.path)


def restore(done: Sequence[Change], move: Move) -> None:
    """Take changes back that have been made, the last one first."""
    for change in reversed(done):
        _restore(change, move)
