# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test that plays many orders of events: all of them in the full scope, a tenth in the quick one."""

from __future__ import annotations

import itertools
import random
from typing import Any, Callable, Iterable

from support.scope import FULL


def in_each_order(*axes: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make one test of a function that is called with an order, a value of each axis. A failure names the order."""

    def decorate(judge: Callable[..., None]) -> Callable[..., None]:
        def test(record_property: Callable[[str, int], None]) -> None:
            orders = list(itertools.product(*axes))
            played = orders if FULL else random.Random(judge.__name__).sample(orders, -(-len(orders) // 10))
            record_property("orders", len(played))
            for order in played:
                try:
                    judge(*order)
                except AssertionError as error:
                    error.add_note(f"The order: {order}")
                    raise

        return test

    return decorate
