# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches who holds the VIPs while runs are killed and repeated. `judge` is pure."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from typing import IO, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from support.waiting import happens

EVERY_S = 0.2
MAX_TWO_S = 1.0  # two holders
MAX_UNSEEN_S = 1.0  # no sample of a member
MAX_NONE_S = 5.0  # none: a handover that waits for Active_Down_Interval, and a margin for a busy machine
CONNECTED_S = 15.0  # until ssh has connected to a host
# The lab's hosts are containers of one machine, so they have one clock.
LIST = 'ip -oneline address | tr -s " " | cut -d" " -f4 | tr "\\n" " "'
# Where it may, it runs before the runs that it watches, which keep the machine busy.
FIRST = "sudo --non-interactive renice -n -15 -p $$ >/dev/null 2>&1"
LOOP = f'{FIRST}; while :; do echo "$(date +%s.%N) $({LIST})"; sleep {EVERY_S}; done'

Samples = Dict[str, List[Tuple[float, List[str]]]]  # by member: when, and the addresses, each with its prefix length


class Watch:
    """What was seen, once the watch is over."""

    def __init__(self) -> None:
        self.samples: Samples = {}
        self.read: Callable[[], Samples] = dict  # what was seen so far

    def faults(self, vips: Sequence[str]) -> List[str]:
        return judge(self.samples, vips)


@contextlib.contextmanager
def watching(commands: Dict[str, List[str]]) -> Iterator[Watch]:
    """Watch members until the end of the block.

    :param commands: how to run a shell command on each member, over a connection that the killed runs do not share
    """
    watch = Watch()
    with contextlib.ExitStack() as stack:
        # Files, because a pipe that nobody reads takes 64 KiB: what comes later would be lost with ssh.
        outputs = {name: stack.enter_context(tempfile.TemporaryFile()) for name in commands}
        watch.read = lambda: {name: _read(output) for name, output in outputs.items()}
        for name, command in commands.items():
            process = subprocess.Popen([*command, LOOP], stdin=subprocess.DEVNULL, stdout=outputs[name])
            stack.callback(process.wait)
            stack.callback(process.terminate)
        happens(lambda: all(os.fstat(output.fileno()).st_size for output in outputs.values()), CONNECTED_S)
        try:
            yield watch
        finally:
            watch.samples = watch.read()


def _read(output: IO[bytes]) -> List[Tuple[float, List[str]]]:
    """Return the samples so far. The last line may be incomplete."""
    text = os.pread(output.fileno(), os.fstat(output.fileno()).st_size, 0).decode()
    return [_sample(line) for line in text.split("\n") if line.endswith(" ")]


def _sample(line: str) -> Tuple[float, List[str]]:
    when, *addresses = line.split()
    return float(when), addresses


def judge(samples: Samples, vips: Sequence[str]) -> List[str]:
    """Return a sentence for each member that was not watched, and each VIP with two holders, or none, for too long."""
    faults = [fault for name in samples for fault in _unseen(samples, name)]
    for vip in vips:
        counts = list(_holders(samples, vip))
        none, two = _longest(counts, 0, 0), _longest(counts, 2, len(samples))
        if two > MAX_TWO_S:
            faults.append(f"two members held {vip} for {two:.1f} s ({_spans(samples, vip)})")
        if none > MAX_NONE_S:
            faults.append(f"no member held {vip} for {none:.1f} s ({_spans(samples, vip)})")
    return faults


def _unseen(samples: Samples, name: str) -> List[str]:
    """Say for how long there was no sample of a member: its last one would count as what it holds all that time."""
    if not samples[name]:
        return [f"{name} was not watched"]
    begin, end = (choose(when for some in samples.values() for when, _each in some) for choose in (min, max))
    times = [begin, *(when for when, _each in samples[name]), end]
    longest = max(later - earlier for earlier, later in zip(times, times[1:]))
    return [f"{name} was not watched for {longest:.1f} s"] if longest > MAX_UNSEEN_S else []


def _spans(samples: Samples, vip: str) -> str:
    """Say when each member held the VIP, in seconds since the watch began."""
    begin = min(when for some in samples.values() for when, _each in some)
    found = []
    for name, some in samples.items():
        states = [(when - begin, _holds(addresses, vip)) for when, addresses in some]
        turns = [here for before, here in zip([(0.0, False), *states], states) if before[1] != here[1]]
        spans = [f"{'from' if held else 'to'} {when:.1f}" for when, held in turns]
        found += [f"{name} {' '.join(spans)}"] if spans else []
    return ", ".join(found) or "no member did"


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
