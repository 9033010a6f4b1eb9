"""The marks of a figure: lines, bars, stacks and boxes, with their intervals.

A point that is in no verdict is hollow. The paper's values are dashed and hatched, in the colour of the
series to which they belong.
"""

from collections.abc import Sequence
from itertools import count

from matplotlib.axes import Axes

from rxo_report.draw import theme
from rxo_report.draw.axes import CURVE, Layout
from rxo_report.results import Figure, Interval, Series

INVALID = "hollow: in no verdict, see the text"

Points = list[tuple[int, float]]


def has_invalid(figure: Figure) -> bool:
    """Returns `True` if a value of `figure` is in no verdict."""
    return any(
        series.is_invalid(index) and value is not None
        for series in figure.series
        for index, value in enumerate(series.values)
    )


def is_measured(series: Series) -> bool:
    """Returns `True` if a series has a value. Others are not drawn, and have no place in the legend."""
    return any(value is not None for value in series.values)


def draw(plot: Axes, figure: Figure, layout: Layout) -> None:
    """Draws all series and guides of `figure` into `plot`."""
    colours = coloured(figure.series)
    bars = [series for series in figure.series if series.shape == "bars"]
    boxes = [series for series in figure.series if series.shape == "boxes"]
    stack = [0.0] * len(figure.x)
    for index, (series, colour) in enumerate(zip(figure.series, colours, strict=True)):
        if not is_measured(series):
            continue
        match series.shape:
            case "bars":
                _bars(plot, series, layout, colour, bars)
            case "stack":
                _part(plot, series, layout, colour, stack)
            case "boxes":
                _boxes(plot, series, layout, colour, boxes)
            case _:
                _line(plot, series, layout, colour, index)
    _brackets(plot, figure)
    for style, guide in zip(
        ((0, (2, 3)), (0, (6, 3)), (0, (1, 1))) * 9, figure.guides, strict=False
    ):
        plot.axhline(guide.value, color=theme.MUTED[0], lw=1.2, ls=style, label=guide.meaning)
    if has_invalid(figure):
        hollow = {"mfc": "none", "mec": theme.MUTED[0], "mew": 1.4}
        plot.plot([], [], ls="none", marker="o", label=INVALID, **hollow)


def coloured(series: Sequence[Series]) -> list[int]:
    """Returns the index of each series' colour: its own, or the next that no series has."""
    own = {one.colour for one in series if one.colour is not None}
    free = (index for index in count() if index not in own)
    chosen = (one.colour if one.colour is not None else next(free) for one in series)
    return [index % len(theme.SERIES) for index in chosen]


def _points(series: Series) -> tuple[Points, Points]:
    """Returns the valid and the invalid points of a series, each with its index."""
    there = [(index, value) for index, value in enumerate(series.values) if value is not None]
    valid = [point for point in there if not series.is_invalid(point[0])]
    return valid, [point for point in there if series.is_invalid(point[0])]


def _line(plot: Axes, series: Series, layout: Layout, colour: int, rank: int) -> None:
    ink, marker = theme.SERIES[colour][0], theme.MARKERS[colour]
    # Each line is thinner than those before, which are below it: so equal values hide no series.
    width, size = max(1.4, 3.0 - 0.3 * rank), max(4.0, 8.0 - 0.7 * rank)
    valid, invalid = _points(series)
    if len(series.values) > CURVE:  # Markers would hide the line.
        marker, width = "", 1.2
    look = {"ls": "-", "marker": marker, "color": ink, "lw": width, "ms": size}
    if series.is_reference:
        look |= {"ls": (0, (5, 2)), "marker": "*" if marker else "", "ms": 10, "lw": 1.4}
    x = [layout.positions[index] for index, _ in valid]
    plot.plot(x, [value for _, value in valid], label=series.name, zorder=3, **look)
    for index, value in invalid:
        hollow = {"mfc": theme.GROUND[0], "mec": ink, "mew": 1.4, "marker": marker or "o"}
        plot.plot([layout.positions[index]], [value], ls="none", zorder=4, clip_on=False, **hollow)
    _whiskers(
        plot, [(layout.positions[index], value, series.range(index)) for index, value in valid], ink
    )


def _whiskers(plot: Axes, points: list[tuple[float, float, Interval | None]], ink: str) -> None:
    ranged = [(x, value, ends) for x, value, ends in points if ends and ends[0] < ends[1]]
    if not ranged:
        return
    x, values, ends = zip(*ranged, strict=True)
    below = [max(value - low, 0.0) for value, (low, _) in zip(values, ends, strict=True)]
    above = [max(high - value, 0.0) for value, (_, high) in zip(values, ends, strict=True)]
    plot.errorbar(x, values, yerr=[below, above], fmt="none", color=ink, elinewidth=1.1, capsize=3)


def _places(of: Series, among: Sequence[Series], layout: Layout, share: float) -> list[float]:
    """Returns the middle of each mark of `of`, beside those that others of `among` have at the same x."""
    width = _width(among, layout, share)
    middles = []
    for index, x in enumerate(layout.positions):
        there = [one for one in among if one.values[index] is not None]
        rank = there.index(of) if of in there else 0
        middles.append(x + (rank - (len(there) - 1) / 2) * width)
    return middles


def _width(among: Sequence[Series], layout: Layout, share: float) -> float:
    """Returns the width of a mark if the marks of one x take `share` of its room."""
    present = [
        sum(value is not None for value in at)
        for at in zip(*(one.values for one in among), strict=True)
    ]
    return share * layout.width() / max([1, *present])


def _bars(plot: Axes, series: Series, layout: Layout, colour: int, among: Sequence[Series]) -> None:
    ink = theme.SERIES[colour][0]
    places, width = _places(series, among, layout, 0.82), _width(among, layout, 0.82)
    valid, invalid = _points(series)
    look = {"facecolor": ink, "edgecolor": ink}
    if series.is_reference:
        look = {"facecolor": theme.GROUND[0], "edgecolor": ink, "hatch": "////"}
    hollow = {"facecolor": theme.GROUND[0], "edgecolor": ink, "linestyle": (0, (3, 2))}
    named = valid or invalid
    for points, style in ((valid, look), (invalid, hollow)):
        x, heights = [places[index] for index, _ in points], [value for _, value in points]
        label = series.name if points is named else None
        plot.bar(x, heights, 0.9 * width, label=label, linewidth=1.2, zorder=2, **style)
    whiskers = [(places[index], value, series.range(index)) for index, value in valid]
    _whiskers(plot, whiskers, theme.INK[0])


def _part(plot: Axes, series: Series, layout: Layout, colour: int, stack: list[float]) -> None:
    ink = theme.SERIES[colour][0]
    heights = [value or 0.0 for value in series.values]
    look = {"facecolor": ink, "edgecolor": theme.GROUND[0]}
    plot.bar(layout.positions, heights, 0.55, stack.copy(), label=series.name, zorder=2, **look)
    stack[:] = [below + height for below, height in zip(stack, heights, strict=True)]


def _boxes(
    plot: Axes, series: Series, layout: Layout, colour: int, among: Sequence[Series]
) -> None:
    ink = theme.SERIES[colour][0]
    middles, width = _places(series, among, layout, 0.5), _width(among, layout, 0.5)
    stats, places = [], []
    for index, value in _points(series)[0]:
        low, high = series.range(index) or (value, value)
        quartiles = series.quartiles[index] if index < len(series.quartiles) else None
        q1, q3 = quartiles or (value, value)
        stats.append({"med": value, "q1": q1, "q3": q3, "whislo": low, "whishi": high})
        places.append(middles[index])
    line = {"color": ink, "linewidth": 1.3}
    box = {"facecolor": theme.GROUND[0], "edgecolor": ink, "linewidth": 1.3}
    plot.bxp(
        stats,
        positions=places,
        widths=0.9 * width,
        showfliers=False,
        patch_artist=True,
        boxprops=box,
        zorder=3,
        medianprops={"color": ink, "linewidth": 2.4},
        whiskerprops=line,
        capprops=line,
        manage_ticks=False,
    )
    plot.plot([], [], color=ink, marker="s", mfc=theme.GROUND[0], lw=2.4, label=series.name)


def _brackets(plot: Axes, figure: Figure) -> None:
    for bracket in figure.brackets:
        x = bracket.place + 0.33
        plot.plot([x, x], [0, bracket.to], color=theme.MUTED[0], lw=1.2, marker="_", zorder=3)
        look = {"va": "bottom", "rotation": 90, "fontsize": 8}
        plot.annotate(bracket.name, (x, 0), (4, 3), textcoords="offset points", **look)
