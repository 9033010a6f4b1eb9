"""The axes of a figure: scales, limits and ticks, decided from the data before anything is drawn."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, pstdev

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from rxo_report.numbers import number
from rxo_report.results import Figure

PLOT_CHARACTERS = 92
"""The number of characters of a tick label that fit along the x axis."""

CURVE = 60
"""A series of more values is a curve over time: no value is marked or named by itself."""

UNITS = {"": 1, "B": 1, "KB": 2**10, "KIB": 2**10, "MB": 2**20, "MIB": 2**20}


@dataclass(frozen=True)
class Layout:
    """Where values lie: positions of x, scales, limits of y, and labelled ticks of x."""

    positions: list[float]
    is_numeric: bool
    x_scale: str
    y_scale: str
    y_limits: tuple[float, float]
    ticks: list[tuple[float, str]]

    @classmethod
    def of(cls, figure: Figure) -> "Layout":
        """Decides the layout of `figure`."""
        shapes = {series.shape for series in figure.series}
        # Bars stand side by side at each x, so they are drawn at equal distances.
        values = None if shapes & {"bars", "stack"} else x_values(figure)
        if values is None:
            positions = [float(index) for index in range(len(figure.x))]
            labels = [wrapped(label, len(figure.x)) for label in figure.x]
            ticks = list(zip(positions, labels, strict=True))
            return cls(positions, False, "linear", *y_axis(figure), ticks)
        scale = "log" if is_geometric(values) else "linear"
        if scale == "linear" and len(values) > CURVE:
            round_values = MaxNLocator(10).tick_values(min(values), max(values))
            ticks = [(x, number(x)) for x in round_values if min(values) <= x <= max(values)]
        else:
            ticks = thinned(list(zip(values, figure.x, strict=True)), scale)
        return cls(values, True, scale, *y_axis(figure), ticks)

    def apply(self, plot: Axes) -> None:
        """Sets the axes of `plot`."""
        plot.set_xscale(self.x_scale)
        plot.set_yscale(self.y_scale)
        plot.set_ylim(*self.y_limits)
        plot.grid(axis="x", visible=self.is_numeric)
        plot.minorticks_off()
        places, labels = zip(*self.ticks, strict=True) if self.ticks else ((), ())
        is_crowded = not self.is_numeric and crowded(labels)
        slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if is_crowded else {}
        if is_crowded:
            # Slanted lines of one label would touch those of the next.
            labels = tuple(label.replace("\n", " ") for label in labels)
        plot.set_xticks(places, labels, **slant)
        if not self.is_numeric:
            plot.set_xlim(-0.6, len(self.positions) - 0.4)
        if self.y_scale == "linear":
            plot.yaxis.set_major_formatter(lambda value, _: number(value) if value else "0")
        else:
            plot.yaxis.set_major_formatter(lambda value, _: number(value))

    def width(self) -> float:
        """Returns the room of an x on the axis, in its own units; not for logarithmic scales."""
        ordered = sorted(self.positions)
        least = min((b - a for a, b in pairwise(ordered) if b > a), default=1.0)
        return min(least, (ordered[-1] - ordered[0]) / 4 or least) if self.is_numeric else least


def x_values(figure: Figure) -> list[float] | None:
    """Returns the numbers of x, also of sizes such as `64 KB`; `None` for categories."""
    if figure.x_values is not None:
        return list(figure.x_values)
    found = [re.fullmatch(r"([\d.,]+)(?: ([A-Za-z]+))?", label) for label in figure.x]
    if not found or not all(match and (match[2] or "").upper() in UNITS for match in found):
        return None
    sizes = [(float(m[1].replace(",", "")), UNITS[(m[2] or "").upper()]) for m in found if m]
    values = [value * unit for value, unit in sizes]
    return values if all(a < b for a, b in pairwise(values)) else None


def is_geometric(values: list[float]) -> bool:
    """Returns `True` if `values` lie more evenly on a logarithmic scale than on a linear one."""
    ordered = sorted(set(values))
    if len(ordered) < 3 or ordered[0] <= 0 or ordered[-1] < 8 * ordered[0]:
        return False
    logs = [math.log(value) for value in ordered]
    return unevenness(logs) < unevenness(ordered)


def unevenness(ordered: list[float]) -> float:
    """Returns the deviation of the gaps between values, as a share of their mean."""
    gaps = [b - a for a, b in pairwise(ordered)]
    return pstdev(gaps) / mean(gaps)


def thinned(ticks: list[tuple[float, str]], scale: str) -> list[tuple[float, str]]:
    """Leaves out ticks whose labels would touch the label before; the last tick always stays."""
    ticks = sorted(ticks)
    if len(ticks) < 2:
        return ticks
    along = [math.log(value) if scale == "log" else value for value, _ in ticks]
    span = (along[-1] - along[0]) or 1.0
    places = [(value - along[0]) / span * PLOT_CHARACTERS for value in along]

    def touch(a: int, b: int) -> bool:
        return places[b] - places[a] < (len(ticks[a][1]) + len(ticks[b][1])) / 2 + 1.5

    last = len(ticks) - 1
    kept = [0]
    for index in range(1, last):
        if not touch(kept[-1], index) and not touch(index, last):
            kept.append(index)
    return [ticks[index] for index in [*kept, last]]


def wrapped(label: str, count: int) -> str:
    """Returns a label of a category in lines that fit beside `count - 1` others.

    Lines end at spaces, not at no-break spaces.
    """
    room = max(8, PLOT_CHARACTERS // max(count, 1) - 2)
    lines: list[str] = []
    for word in label.split(" "):
        if lines and len(lines[-1]) + len(word) < room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def crowded(labels: Iterable[str]) -> bool:
    """Returns `True` if labels of categories would touch each other."""
    widest = [max(map(len, label.splitlines()), default=0) for label in labels]
    return sum(widest) + 2 * len(widest) > PLOT_CHARACTERS + 8 or False


def y_axis(figure: Figure) -> tuple[str, tuple[float, float]]:
    """Returns the scale of y and its limits: as close to the data as the shapes permit."""
    values = shown_values(figure)
    if not values:
        return "linear", (0.0, 1.0)
    low, high = min(values), max(values)
    is_lines = all(series.shape in ("line", "boxes") for series in figure.series)
    if is_lines and low > 0 and high >= 60 * low:
        return "log", (low / 1.25, high * 1.25)
    # Bars must begin at zero, or their lengths would say nothing. A line does so if its range is most
    # of its height anyway.
    begins_at_zero = low >= 0 and (not is_lines or low < 0.5 * high)
    margin = 0.06 * ((high - low) or abs(high) or 1.0)
    top = high + margin if high > 0 else 0.0
    if begins_at_zero:
        return "linear", (0.0, 1.06 * high or 1.0)
    return "linear", (min(low - margin, 0.0) if not is_lines else low - margin, top)


def shown_values(figure: Figure) -> list[float]:
    """Returns the values that y must show: valid ones with their intervals, the paper's, and guides."""
    found: list[float] = [guide.value for guide in figure.guides]
    found += [bracket.to for bracket in figure.brackets]
    stacked = [series for series in figure.series if series.shape == "stack"]
    for index in range(len(figure.x)):
        found += [sum(series.values[index] or 0.0 for series in stacked)] if stacked else []
        for series in figure.series:
            value = series.values[index]
            if value is None or series.shape == "stack":
                continue
            found.append(value)
            if not series.is_invalid(index):
                found += series.range(index) or ()
    return [value for value in found if math.isfinite(value)]
