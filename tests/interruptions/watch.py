# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches who holds the VIPs while runs are killed and repeated. `judge` is pure."""

from __future__ import annotations

import contextlib
import subprocess
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

EVERY_S = 0.2
MAX_TWO_S = 1.0  # two holders
MAX_NONE_S = 5.0  # none: a handover that waits for Active_Down_Interval, and a margin for a busy machine
# The lab's hosts are containers of one machine, so they have one clock.
LIST = 'ip -oneline address | tr -s " " | cut -d" " -f4 | tr "\\n" " "'
LOOP = f'while :; do echo "$(date +%s.%N) $({LIST})"; sleep {EVERY_S}; done'

Samples = Dict[str, List[Tuple[float, List[str]]]]  # by member: when, and the addresses, each with its prefix length


class Watch:
    """What was seen, once the watch is over."""

    def __init__(self) -> None:
        self.samples: Samples = {}

    def faults(self, vips: Sequence[str]) -> List[str]:
        return judge(self.samples, vips)


@contextlib.contextmanager
def watching(commands: Dict[str, List[str]]) -> Iterator[Watch]:
    """Watch members until the end of the block.

    :param commands: how to run a shell command on each member
    """
    watch, processes = Watch(), {}
    try:
        for name, command in commands.items():
            processes[name] = subprocess.Popen(
                [*command, LOOP], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
            )
        yield watch
    finally:
        for name, process in processes.items():
            process.terminate()
            output, _nothing = process.communicate()
            watch.samples[name] = [_sample(line) for line in output.splitlines() if line.endswith(" ")]


def _sample(line: str) -> Tuple[float, List[str]]:
    when, *addresses = line.split()
    return float(when), addresses


def judge(samples: Samples, vips: Sequence[str]) -> List[str]:
    """Return a sentence for each member that was not watched, and each VIP with two holders, or none, for too long."""
    faults = [f"{name} was not watched" for name, some in samples.items() if not some]
    for vip in vips:
        counts = list(_holders(samples, vip))
        none, two = _longest(counts, 0, 0), _longest(counts, 2, len(samples))
        if two > MAX_TWO_S:
            faults.append(f"two members held {vip} for {two:.1f} s")
        if none > MAX_NONE_S:
            faults.append(f"no member held {vip} for {none:.1f} s")
    return faults


def _holders(samples: Samples, vip: str) -> Iterator[Tuple[float, int]]:
    """Yield how many members held the VIP at the time of each sample."""
    events = sorted((when, name, _holds(addresses, vip)) for name, some in samples.items() for when, addresses in some)
    state = {name: _holds(some[0][1], vip) for name, some in samples.items() if some}
    for when, name, holds in events:
        state[name] = holds
        yield when, sum(state.values())


def _longest(counts: Sequence[Tuple[float, int]], least: int, most: int) -> float:
    """Return for how many seconds at most the count was in a range without a break."""
    since: Optional[float] = None
    longest = 0.0
    for when, count in counts:
        if not least <= count <= most:
            since = None
        else:
            since = when if since is None else since
            longest = max(longest, when - since)
    return longest


def _holds(addresses: Sequence[str], vip: str) -> bool:
    return any(address.partition("/")[0] == vip for address in addresses)
