# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The counters of all workers together, including those that have ended. Pure; times are microseconds.

A key is SERVICE or SERVICE/SERVER, and its counts are those of ``worker.servers``.
"""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from ...runtime.loop import MILLION

Counts = Dict[str, int]

REPORT_INTERVAL = MILLION  # of a worker's changed counters
CURRENT = "current"
LIVE = (CURRENT, "qcur")  # those that decrease, and end with the worker
PEAK = "qmax"  # of several workers that ended one after the other, the highest counts
RATED = ("sessions", "bytes_in", "bytes_out")  # also shown per second
ALL = (*RATED, *LIVE, PEAK, "connect_errors", "retries", "resets", "refused")


class Sample(NamedTuple):
    """A worker's latest counts for a key."""

    counts: Counts
    at: int
    rates: Dict[str, float]  # per second


class Counters:
    """Sums over workers, each known by its process number."""

    def __init__(self, ended: Dict[str, Counts]) -> None:
        self.ended = ended  # the sums of workers that have ended
        self._samples: Dict[int, Dict[str, Sample]] = {}

    def update(self, worker: int, counters: Dict[str, Counts], now: int) -> None:
        """Take a worker's counts since its start."""
        samples = self._samples.setdefault(worker, {})
        for key, counts in counters.items():
            samples[key] = Sample(counts, now, _rates(samples.get(key), counts, now))

    def fold_in(self, worker: int) -> None:
        """Add the counts of a worker that has ended to the sums; its current sessions are over."""
        for key, sample in self._samples.pop(worker, {}).items():
            ended = self.ended.setdefault(key, {})
            for what, count in sample.counts.items():
                if what == PEAK:
                    ended[what] = max(ended.get(what, 0), count)
                elif what not in LIVE:
                    ended[what] = ended.get(what, 0) + count

    def of(self, key: str, now: int) -> Dict[str, Any]:
        """Return the sums for a key, and the ``rates`` of some."""
        ended = self.ended.get(key, {})
        sums: Dict[str, Any] = {**dict.fromkeys(ALL, 0), **ended, PEAK: 0}
        rates = dict.fromkeys(RATED, 0.0)
        for of_worker in self._samples.values():
            sample = of_worker.get(key)
            if sample is None:
                continue
            for what, count in sample.counts.items():
                sums[what] += count
            if now - sample.at < 2 * REPORT_INTERVAL:  # a worker does not report unchanged counters
                for what, rate in sample.rates.items():
                    rates[what] += rate
        return {**sums, PEAK: max(sums[PEAK], ended.get(PEAK, 0)), "rates": rates}

    def current(self, worker: int) -> int:
        """Return a worker's current sessions."""
        samples = self._samples.get(worker, {})
        return sum(sample.counts.get(CURRENT, 0) for key, sample in samples.items() if "/" not in key)

    def by_worker(self) -> Dict[int, Dict[str, Counts]]:
        return {worker: {key: each.counts for key, each in known.items()} for worker, known in self._samples.items()}


def _rates(before: Any, counts: Counts, now: int) -> Dict[str, float]:
    """A counter that was silent for more than one interval did not change until the latest one."""
    old, gap = (before.counts, now - before.at) if before else ({}, REPORT_INTERVAL)
    duration = gap if REPORT_INTERVAL / 2 < gap < 1.5 * REPORT_INTERVAL else REPORT_INTERVAL
    return {what: max(0, counts.get(what, 0) - old.get(what, 0)) * MILLION / duration for what in RATED}
