# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is in the way of a deployment and is found before it begins: each a sentence with its mend."""

from __future__ import annotations

import errno
import os
import tempfile
from typing import Dict, Iterable, List, Tuple

from ..._shared.pods import MANIFESTS

ROOM = 1 << 20  # bytes: more than the largest file that a run writes, an archive of the agent
MENDS = {
    errno.EROFS: "mount its file system read-write",
    errno.EPERM: "remove the immutable attribute (`chattr -i`) from it or its folder",
    errno.EACCES: "use become",
    errno.ENOSPC: "make room on its file system",
    errno.EDQUOT: "make room within the quota of its file system",
}


def of_masked_units(units: Iterable[str]) -> Dict[str, str]:
    return {unit: f"{unit} is masked, so that it cannot start: run `systemctl unmask {unit}`." for unit in units}


def of_pods(names: Iterable[str]) -> Dict[str, str]:
    """Return why no kubelet would run these static pods, if that shows."""
    if os.path.isdir(MANIFESTS):
        return {}
    wrong = f"There is no folder {MANIFESTS}: create it, and name it in the kubelet's configuration (staticPodPath)."
    return dict.fromkeys(names, wrong)


def of_files(paths: Iterable[str]) -> Dict[str, str]:
    """Return, for each file that cannot be replaced, why.

    Permissions do not tell, as they mean nothing to root. So the file is opened for writing, though not written, and
    another one without a name is created in its folder, with room for what a run writes.
    """
    found = {path: _of_file(path) for path in paths}
    return {path: sentence for path, sentence in found.items() if sentence}


def _of_file(path: str) -> str:
    try:
        if os.path.isfile(path) and not os.path.islink(path):
            os.close(os.open(path, os.O_WRONLY))
        with tempfile.TemporaryFile(dir=_existing_folder(path)) as file:
            os.posix_fallocate(file.fileno(), 0, ROOM)
            return ""
    except OSError as error:
        mend = MENDS.get(error.errno or 0, "make it writable")
        return f"{path} cannot be written ({os.strerror(error.errno or 0)}): {mend}."


def of_folders(folders: Iterable[str]) -> List[str]:
    """Return a sentence for each file system that has no room for what is written in these folders. Writes nothing."""
    found: Dict[Tuple[int, int], List[str]] = {}
    for folder in folders:
        place = _existing_folder(f"{folder}/")
        wrong = _of_file_system(os.statvfs(place))
        if wrong:
            found.setdefault((wrong, os.stat(place).st_dev), []).append(folder)
    return [
        f"{' and '.join(names)} cannot be written ({os.strerror(wrong)}): {MENDS[wrong]}."
        for (wrong, _device), names in found.items()
    ]


def _of_file_system(seen: os.statvfs_result) -> int:
    """Return with which error a write would fail; 0 with none. One without blocks, or inodes, does not count them."""
    if seen.f_flag & os.ST_RDONLY:
        return errno.EROFS
    is_full = seen.f_blocks and seen.f_bfree * seen.f_frsize < ROOM or seen.f_files and not seen.f_ffree
    return errno.ENOSPC if is_full else 0


def _existing_folder(path: str) -> str:
    """Return the nearest folder above a file that exists."""
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder
