"""Prints a document of rxo-lab as text: figures and claims of experiments, or the rows of a benchmark.

`rxo-lab xen --json | python3 -m rxo_report.text` in this folder; needs no package.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from rxo_report.numbers import interval, number


def lines(document: dict[str, Any]) -> Iterator[str]:
    """Returns the lines of a document of results or of a benchmark."""
    if "experiments" in document:
        for experiment in document["experiments"]:
            yield from _experiment(experiment)
    else:
        yield from _values(document, "")


def table(rows: list[list[str]]) -> Iterator[str]:
    """Returns the lines of a table whose first row is its head; numbers are right-aligned."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(cell[:1] in "-0123456789" for cell in column[1:]) for column in columns]
    for row in rows:
        cells = zip(row, widths, right, strict=True)
        yield "  ".join(f"{c:>{w}}" if r else f"{c:<{w}}" for c, w, r in cells).rstrip()


def _experiment(experiment: dict[str, Any]) -> Iterator[str]:
    yield from (experiment["title"], "")
    for figure in experiment["figures"]:
        yield f"{figure['number']}: {figure['title']} ({figure['fixed']})"
        head = [figure["x_label"], *(series["name"] for series in figure["series"])]
        rows = [
            [x, *(_point(series, at) for series in figure["series"])]
            for at, x in enumerate(figure["x"])
        ]
        yield from (*table([head, *rows]), "")
    for claim in experiment["claims"]:
        ours = claim["ours"]
        value = interval(ours["value"], ours["low"], ours["high"]) if ours else "-"
        more = " ".join(filter(None, (claim["detail"], claim["why"])))
        yield f"{claim['status']} [{claim['id']}]: {claim['text']} Here: {value} {claim['unit']}. {more}"
    yield from ("", *experiment["notes"], *(f"Missing: {why}." for why in experiment["missing"]))


def _point(series: dict[str, Any], at: int) -> str:
    value = series["values"][at]
    if value is None:
        return "-"
    low, high = (series.get("ranges") or {at: None})[at] or (value, value)
    invalid = " !" if at in [n for n, it in enumerate(series.get("invalid", [])) if it] else ""
    return interval(value, low, high) + invalid


def _values(value: dict[str, Any], name: str) -> Iterator[str]:
    """Returns a line for each value, and a table for each list of objects."""
    for key, inner in value.items():
        if isinstance(inner, dict) and not _is_spread(inner):
            yield from _values(inner, f"{name}{key} ")
        elif isinstance(inner, list) and inner and isinstance(inner[0], dict):
            rows = [dict(_cells(row, "")) for row in inner]
            head = list(dict.fromkeys(column for row in rows for column in row))
            cells = [[row.get(column, "-") for column in head] for row in rows]
            yield from ("", f"{name}{key}", *table([head, *cells]), "")
        else:
            yield f"{name}{key}: {_shown(inner)}"


def _cells(row: dict[str, Any], name: str) -> Iterator[tuple[str, str]]:
    for key, value in row.items():
        if isinstance(value, dict) and not _is_spread(value):
            yield from _cells(value, f"{name}{key} ")
        else:
            yield f"{name}{key}", _shown(value)


def _is_spread(value: dict[str, Any]) -> bool:
    return value.keys() == {"median", "low", "high"}


def _shown(value: object) -> str:
    match value:
        case {"median": median, "low": low, "high": high}:
            return interval(median, low, high)
        case None:
            return "-"
        case bool():
            return str(value)
        case int() | float():
            return number(value)
        case list():
            return ", ".join(map(_shown, value))
    return str(value)


if __name__ == "__main__":
    print("\n".join(lines(json.load(sys.stdin))))
