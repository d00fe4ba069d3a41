"""The command of wrk, which loads a web server, and what it prints."""

from __future__ import annotations

import re

UNITS = {"us": 1e-3, "ms": 1, "s": 1e3}


def command(connections: int, seconds, url: str, *options: str) -> list[str]:
    return [
        *("wrk", "--threads", "1", "--connections", str(connections), "--duration", str(seconds), "--latency"),
        *options,
        url,
    ]


def checked(output: str) -> str:
    """Return the output if every request was answered."""
    assert "errors" not in output, output
    return output


def rate(output: str) -> float:
    """Return how many requests were answered per second."""
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])


def answered(output: str) -> int:
    return int(re.search(r"(\d+) requests in", output)[1])


def lasted(output: str) -> float:
    """Return for how many seconds it ran."""
    return float(re.search(r"requests in ([\d.]+)s", output)[1])


def latency(output: str, percent: int) -> float:
    """Return a percentile of the latency in milliseconds: the 50th, 75th, 90th or 99th."""
    number, unit = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s)", output).groups()
    return float(number) * UNITS[unit]
