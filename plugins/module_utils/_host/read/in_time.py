# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One function for several arguments at once, of which those count that it answers in time."""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, Iterable, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def answers(function: Callable[[Asked], Answer], asked: Iterable[Asked], timeout: float) -> Dict[Asked, Answer]:
    """Return what a function returns for each argument, as far as it does so in time.

    It runs in daemon threads, because a resolver without an answer tries for longer than any timeout.
    """
    found: Dict[Asked, Answer] = {}

    def run(argument: Asked) -> None:
        found[argument] = function(argument)

    threads = [threading.Thread(target=run, args=(argument,), daemon=True) for argument in asked]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeout
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return dict(found)
