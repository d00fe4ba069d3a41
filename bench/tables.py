"""Tables that compare the agent with keepalived."""

from __future__ import annotations

import statistics

WIDTH = 54


def heading(unit: str) -> None:
    print(f"\n{unit:<{WIDTH}}{'agent':>18}{'keepalived':>18}{'ratio':>8}   aim", flush=True)


def row(what: str, ours, theirs, aim: str = "", form: str = "{:.2f}") -> None:
    """Print the medians, each with the worst value, and the ratio of the medians."""
    values = [list(each) if isinstance(each, (list, tuple)) else [each] for each in (ours, theirs)]
    middle = [statistics.median(each) for each in values]
    cells = [
        form.format(median) + (f" ({form.format(max(each))})" if len(each) > 1 else "")
        for each, median in zip(values, middle)
    ]
    ratio = f"{middle[0] / middle[1]:.3f}" if middle[1] else "-"
    print(f"{what:<{WIDTH}}{cells[0]:>18}{cells[1]:>18}{ratio:>8}   {aim}".rstrip(), flush=True)
