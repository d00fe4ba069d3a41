# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of tasks, read at once where `prepared_ansible.Worker` does all tasks in Ansible's own process.

Ansible sends each result through a pipe to a thread, and looks every millisecond whether that has read it: up to a
tenth of a play's processor time.
"""

from __future__ import annotations

from collections import deque
from multiprocessing.reduction import ForkingPickler
from typing import Any, Deque, List, Tuple

from ansible.executor import task_queue_manager
from ansible.plugins import strategy as strategies

read_results = strategies.results_thread_main
begin_strategy = strategies.StrategyBase.__init__


class Results(task_queue_manager.FinalQueue):
    """What tasks have returned, and what callbacks are told of them."""

    def __init__(self) -> None:
        self.sent: Deque[Any] = deque()
        self.strategy: Any = None

    def put(self, obj: Any) -> None:
        """Have the strategy read a copy of a result, as it would come out of the pipe."""
        self.sent.append(ForkingPickler.dumps(obj))
        read_results(self.strategy)

    def get(self) -> Any:
        """Return the next one. Without one this is a pipe that has been closed, so its reader ends."""
        if not self.sent:
            raise EOFError
        return ForkingPickler.loads(self.sent.popleft())

    def close(self) -> None:
        pass


def begin(strategy: strategies.StrategyBase, manager: Any) -> None:
    """Have a strategy read its results as they come; the thread that Ansible starts for that finds nothing to do."""
    begin_strategy(strategy, manager)
    strategy._final_q.strategy = strategy


REPLACED: List[Tuple[Any, str, Any]] = [
    (task_queue_manager, "FinalQueue", Results),
    (strategies, "results_thread_main", lambda _strategy: None),
    (strategies.StrategyBase, "__init__", begin),
]
