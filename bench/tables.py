"""Tables that compare the agent with keepalived, and the ratios that are out of their bounds."""

from __future__ import annotations

import statistics

WIDTH = 54
missed: list[str] = []  # a line for each ratio that was greater than its bound


def heading(unit: str) -> None:
    print(f"\n{unit:<{WIDTH}}{'agent':>18}{'keepalived':>18}{'ratio':>8}   aim", flush=True)


def row(what: str, ours, theirs, aim: str = "", form: str = "{:.2f}", at_most: float = 0) -> None:
    """Print the medians, each with the worst value, and the ratio of the medians.

    :param at_most: the bound of the ratio; 0 is none
    """
    values = [list(each) if isinstance(each, (list, tuple)) else [each] for each in (ours, theirs)]
    middle = [statistics.median(each) for each in values]
    cells = [
        form.format(median) + (f" ({form.format(max(each))})" if len(each) > 1 else "")
        for each, median in zip(values, middle)
    ]
    ratio = f"{middle[0] / middle[1]:.3f}" if middle[1] else "-"
    if at_most:
        aim = f"ratio {at_most}"
        if middle[0] > at_most * middle[1]:
            missed.append(f"{what.strip()}: {ratio}, {aim} at most")
    print(f"{what:<{WIDTH}}{cells[0]:>18}{cells[1]:>18}{ratio:>8}   {aim}".rstrip(), flush=True)
