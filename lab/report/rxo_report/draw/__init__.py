"""Figures as SVG: one picture for light and dark, with the same bytes on every run.

`axes` decides scales, limits and ticks, without drawing; `marks` draws series; `theme` has the colours and
turns matplotlib's SVG into one that follows the reader's colour scheme.
"""

import functools
import io
import textwrap

import matplotlib
from matplotlib.figure import Figure as Canvas

from rxo_report.draw import axes, marks, theme
from rxo_report.results import Figure

WIDTH_IN = 7.2
PLOT_HEIGHT_IN = 3.4
LINE_IN = 0.2
"""The height of a line of the title or the legend."""


@functools.cache
def svg(figure: Figure, description: str) -> str:
    """Returns `figure` as an SVG document. `description` is for readers who cannot see it."""
    title = textwrap.wrap(figure.heading(), 82)
    with matplotlib.rc_context(theme.SETTINGS):
        lines = len(title) + _legend_rows(figure)
        canvas = Canvas((WIDTH_IN, PLOT_HEIGHT_IN + lines * LINE_IN), layout="constrained")
        plot = canvas.add_subplot()
        layout = axes.Layout.of(figure)
        marks.draw(plot, figure, layout)
        layout.apply(plot)
        canvas.suptitle("\n".join(title), x=0.01, ha="left", fontsize=11, fontweight="bold")
        plot.set_xlabel(textwrap.fill(f"{figure.x_label} ({figure.fixed})", 100))
        plot.set_ylabel(textwrap.fill(figure.y_label, 44))
        _legend(canvas, plot, figure)
        text = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        canvas.savefig(text, format="svg", metadata=nothing)
    return theme.finish(text.getvalue(), figure.heading(), description)


def _legend(canvas: Canvas, plot: "matplotlib.axes.Axes", figure: Figure) -> None:
    handles, labels = plot.get_legend_handles_labels()
    if labels:
        canvas.legend(
            handles, labels, loc="outside lower left", ncols=_columns(figure), handlelength=2.6
        )


def _names(figure: Figure) -> list[str]:
    names = [series.name for series in figure.series if marks.is_measured(series)]
    names += [guide.meaning for guide in figure.guides]
    return names + [marks.INVALID] * marks.has_invalid(figure)


def _columns(figure: Figure) -> int:
    widest = max((len(name) for name in _names(figure)), default=1)
    return max(1, min(4, 104 // (widest + 8)))


def _legend_rows(figure: Figure) -> int:
    return -(-len(_names(figure)) // _columns(figure))
