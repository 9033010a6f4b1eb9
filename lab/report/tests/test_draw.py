"""Figures show the data: numeric axes, intervals, the paper's values, hollow points without verdict."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rxo_report import draw
from rxo_report.draw import axes, marks, theme
from rxo_report.draw.axes import Layout
from rxo_report.results import Experiment, Figure, Results, Series
from tests.conftest import EXAMPLE

SVG = "{http://www.w3.org/2000/svg}"


def line(*values: float | None, **more: object) -> Series:
    return Series("here", values, False, "line", **more)


def over(x: tuple[float, ...], *series: Series) -> Figure:
    """Returns a figure of `series` over the numbers `x`."""
    labels = tuple(f"{value:g}" for value in x)
    words = ("figure-1", "1", "A title", "fixed", "count", "x", "y")
    return Figure(*words, labels, x, series, (), (), (), None)


def texts(svg: str) -> list[str]:
    return ["".join(one.itertext()) for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_every_figure_of_the_example_is_drawn_with_its_words(example: Results) -> None:
    for experiment in example.experiments:
        for figure in experiment.figures:
            svg = draw.svg(figure, "a <description>")
            shown = " ".join(texts(svg))
            words = [series.name for series in figure.series] + [
                guide.meaning for guide in figure.guides
            ]
            words += [bracket.name for bracket in figure.brackets]
            for word in words:
                assert word in shown, f"{figure.id}: {word}"
            root = ElementTree.fromstring(svg)
            assert root.findtext(f"{SVG}title") == figure.heading()
            assert root.findtext(f"{SVG}desc") == "a <description>"


def test_a_figure_has_the_same_bytes_in_every_process(xen: Experiment) -> None:
    program = (
        "import sys; from pathlib import Path; from rxo_report import draw, results\n"
        f"figures = results.read(Path({str(EXAMPLE)!r})).experiments[0].figures\n"
        "sys.stdout.write(''.join(draw.svg(figure, '') for figure in figures))"
    )
    package = Path(__file__).parent.parent
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": str(package), "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    ]
    assert runs[0] == runs[1]
    assert runs[0].decode() == "".join(draw.svg(figure, "") for figure in xen.figures)


def test_a_figure_has_no_date_and_no_digits_that_depend_on_the_processor(sweep: Figure) -> None:
    svg = draw.svg(sweep, "")
    assert "metadata" not in svg
    assert not axes.re.search(r"\d\.\d{3}", svg)


def test_each_colour_has_one_for_dark_ground(xen: Experiment) -> None:
    style = theme._style()
    pairs = [theme.GROUND, theme.INK, theme.MUTED, theme.GRID, *theme.SERIES]
    known = {light for light, _ in pairs}
    for figure in xen.figures:
        used = set(
            axes.re.findall(r"(?:fill|stroke)(?:: |=\")(#[0-9a-f]{6})", draw.svg(figure, ""))
        )
        assert used <= known, used - known
    for light, dark in pairs:
        assert f'[style*="stroke: {light}"],[stroke="{light}"]{{stroke:{dark}!important}}' in style


def test_invalid_points_are_hollow_and_in_no_line(sweep: Figure) -> None:
    svg = draw.svg(sweep, "")
    assert marks.INVALID in texts(svg)
    valid = replace(sweep, series=tuple(replace(one, invalid=()) for one in sweep.series))
    assert marks.INVALID not in texts(draw.svg(valid, ""))
    hollow = f"fill: {theme.GROUND[0]}; stroke: {theme.SERIES[3][0]}"
    assert hollow in svg
    assert hollow not in draw.svg(valid, "")


def test_intervals_are_drawn_but_not_those_of_invalid_points(sweep: Figure) -> None:
    without = replace(sweep, series=tuple(replace(one, ranges=()) for one in sweep.series))
    assert draw.svg(sweep, "").count("LineCollection") > draw.svg(without, "").count(
        "LineCollection"
    )
    assert 0.95 not in axes.shown_values(sweep)  # of the invalid point
    assert 0.75 in axes.shown_values(sweep)


def test_numbers_lie_on_a_numeric_axis(sweep: Figure) -> None:
    layout = Layout.of(replace(sweep, x=("88", "128", "168"), x_values=(88, 128, 168)))
    assert (layout.is_numeric, layout.x_scale, layout.positions) == (True, "linear", [88, 128, 168])
    limits = (1, 2, 5, 10, 20, 35)
    assert Layout.of(over(limits, line(*limits))).x_scale == "log"
    entries = (1, 2, 3, 4, 5, 6, 7, 8)
    assert Layout.of(over(entries, line(*entries))).x_scale == "linear"


def test_sizes_with_units_are_numbers() -> None:
    sizes = replace(
        over((0, 0, 0, 0), line(1, 2, 3, 4)), x_values=None, x=("2 KB", "4 KB", "512 KB", "1 MB")
    )
    assert axes.x_values(sizes) == [2048, 4096, 524288, 1048576]
    assert Layout.of(sizes).ticks[-1] == (1048576, "1 MB")
    assert axes.x_values(replace(sizes, x=("LRO", "DA", "BO", "Xen"))) is None


def test_labels_that_would_touch_are_left_out_but_not_the_ends() -> None:
    x = tuple(float(value) for value in range(50))
    ticks = Layout.of(over(x, line(*x))).ticks
    assert ticks[0] == (0, "0")
    assert ticks[-1] == (49, "49")
    assert 10 < len(ticks) < 40


def test_a_curve_has_round_numbers_on_its_axis() -> None:
    x = tuple(index * 0.00957 for index in range(101))
    assert [label for _, label in Layout.of(over(x, line(*x))).ticks][:4] == [
        "0",
        "0.1",
        "0.2",
        "0.3",
    ]


def test_lines_are_zoomed_and_bars_begin_at_zero() -> None:
    figure = over((1, 2, 3), line(940, 941, 938))
    low, high = Layout.of(figure).y_limits
    assert low > 930
    assert high < 950
    bars = replace(figure, series=(replace(figure.series[0], shape="bars"),))
    assert Layout.of(bars).y_limits[0] == 0
    below = replace(bars, series=(Series("here", (-2, 1, 3), False, "bars"),))
    assert Layout.of(below).y_limits[0] < -2


def test_values_over_several_powers_of_ten_have_a_logarithmic_axis() -> None:
    assert Layout.of(over((1, 2, 3), line(0.15, 3, 130))).y_scale == "log"
    assert Layout.of(over((1, 2, 3), line(0, 3, 130))).y_scale == "linear"


def test_the_height_of_a_stack_is_that_of_its_parts(example: Results) -> None:
    stack = example.experiments[1].figures[1]
    assert 1000 in axes.shown_values(stack)
    assert Layout.of(stack).y_limits[0] == 0


def test_compared_series_share_a_colour_and_others_get_free_ones() -> None:
    series = [line(1), line(1, colour=0), line(1, colour=0), line(1)]
    assert marks.coloured(series) == [1, 0, 0, 2]


@pytest.mark.parametrize("shape", ["line", "bars", "stack", "boxes"])
def test_nothing_measured_is_an_empty_figure(shape: str) -> None:
    figure = over((1, 2), Series("here", (None, None), False, shape))
    assert "here" not in texts(draw.svg(figure, ""))
    assert draw.svg(replace(figure, x=(), x_values=(), series=()), "").startswith("<svg")


def test_bars_take_only_the_room_of_those_that_are_there() -> None:
    paper, ours = (
        Series(name, values, False, "bars") for name, values in (("p", (1, None)), ("o", (None, 2)))
    )
    figure = over((1, 2), paper, ours)
    layout = Layout.of(figure)
    assert marks._places(paper, figure.series, layout, 0.8)[0] == layout.positions[0]
    assert marks._places(ours, figure.series, layout, 0.8)[1] == layout.positions[1]
    both = over((1, 2), paper, Series("o", (1, 2), False, "bars"))
    left, right = (marks._places(one, both.series, layout, 0.8)[0] for one in both.series)
    assert left < layout.positions[0] < right


def test_a_series_that_is_only_invalid_has_its_colour_in_the_legend() -> None:
    figure = over((1, 2), Series("here", (1, 2), False, "bars", 4, invalid=(True, True)))
    svg = draw.svg(figure, "")
    assert "here" in texts(svg)
    assert "#1f77b4" not in svg
