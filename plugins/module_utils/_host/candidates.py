# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file that is to take the place of another one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import IO, Any, Callable, Iterator, NamedTuple, Optional

Move = Callable[[str, str], None]  # from a path to another, atomic


class Candidate(NamedTuple):
    path: str
    file: IO[bytes]


@contextlib.contextmanager
def candidate_of(
    path: str, folder: Optional[str] = None, prefix: str = "", suffix: str = ".new"
) -> Iterator[Candidate]:
    """Open one, which only its owner may read, for a body that may move it into place; it is closed in the end.

    :param folder: another one than that of the file
    :param prefix: by default a dot, because of which programs that read whole folders ignore it, as for the suffix
    :raises OSError: with the file that it is for, as a full disk's own names none; the candidate is gone then
    """
    candidate = ""
    try:
        own = prefix or f".{os.path.basename(path)}."
        handle, candidate = tempfile.mkstemp(prefix=own, suffix=suffix, dir=folder or os.path.dirname(path))
        with os.fdopen(handle, "wb") as file:
            yield Candidate(candidate, file)
    except OSError as error:
        if candidate:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(candidate)
        raise OSError(error.errno, error.strerror, path) from None


def mover(module: Any) -> Move:
    """Return a move that keeps the destination's SELinux context, but not its permissions as AnsibleModule's does."""

    def move(source: str, destination: str) -> None:
        if module.selinux_enabled():
            known = os.path.exists(destination)
            context = module.selinux_context(destination) if known else module.selinux_default_context(destination)
            module.set_context_if_different(source, context, False)
        os.rename(source, destination)

    return move
