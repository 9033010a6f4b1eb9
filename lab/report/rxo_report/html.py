"""The report as one HTML file, which needs no other file and no script."""

import base64
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rxo_report import claims, draw, numbers
from rxo_report.bibliography import Bibliography, Work
from rxo_report.fault import Fault
from rxo_report.pages import cell, description
from rxo_report.results import Experiment, Figure, Results

FOLDER = Path(__file__).parent.parent / "templates"


@dataclass(frozen=True)
class Part:
    """The experiments of one paper; `work` is `None` for those that repeat no paper."""

    key: str
    work: Work | None
    experiments: list[Experiment]


def parts(results: Results, bibliography: Bibliography) -> list[Part]:
    """Returns the experiments by paper, in the bibliography's order; those of no paper are last.

    Raises `Fault` if the bibliography lacks a paper.
    """
    by_paper = {key: Part(key, work, []) for key, work in bibliography.items()}
    rest = Part("other", None, [])
    for experiment in results.experiments:
        if experiment.paper is not None and experiment.paper not in by_paper:
            raise Fault(f"{experiment.id}: bibliography.toml has no paper {experiment.paper!r}")
        part = by_paper[experiment.paper] if experiment.paper else rest
        part.experiments.append(experiment)
    return [part for part in [*by_paper.values(), rest] if part.experiments]


def render(results: Results, bibliography: Bibliography) -> str:
    """Returns the report."""
    templates = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"picture": lambda figure: _picture(figure, results)}
    style = (FOLDER / "report.css").read_text(encoding="utf-8")
    return templates.get_template("report.html.j2").render(
        results=results,
        style=Markup(style + colours()),  # Both are of this package.
        statuses=claims.STATUSES,
        bases=claims.BASES,
        tallies=claims.tallies(results, bibliography),
        parts=parts(results, bibliography),
        papers_value=claims.papers_value,
        our_value=claims.our_value,
        rule=claims.rule,
        cell=cell,
        number=numbers.number,
        duration=numbers.duration,
    )


def colours() -> str:
    """Returns the colours of verdicts as CSS, for light and dark."""
    light = "".join(f".{key}{{--status:{one.light}}}" for key, one in claims.STATUSES.items())
    dark = "".join(f".{key}{{--status:{one.dark}}}" for key, one in claims.STATUSES.items())
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _picture(figure: Figure, results: Results) -> str:
    """Returns a figure as an address that contains it, so that names of its parts stay its own."""
    svg = draw.svg(figure, description(figure, results))
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
