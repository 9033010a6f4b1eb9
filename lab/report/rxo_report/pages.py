"""The Markdown pages of docs/, from the templates in `pages/`.

Prose stands in the templates. Whatever comes from a result is written by the functions of `Voice`, so that
no page repeats a number by hand. The result is a listing: text by path below the repository's root.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rxo_report import draw
from rxo_report.bibliography import Bibliography
from rxo_report.claims import BASES, STATUSES, Tally, our_value, papers_value, rule, tallies
from rxo_report.fault import Fault
from rxo_report.numbers import duration, interval, number
from rxo_report.results import Claim, Experiment, Figure, Results, Run, Series, runs_of

FOLDER = Path(__file__).parent.parent / "pages"

BOOKS = Path(__file__).parents[2] / "rxo-lab" / "claims"
"""The claims of each experiment, a file for each."""

OVERVIEW, SCALE = "repro.md.j2", "scale.md.j2"
"""The templates of docs/repro.md and docs/scale.md, which need no results. All others are of docs/repro/."""

HEAD = "<!-- `cargo xtask report --docs` writes this page from lab/report/pages/{}. -->\n"

ABSENT = "*Not in this run: {}.*"

Listing = dict[str, str]


def environment(folder: Path) -> Environment:
    """Returns Jinja2 for the templates in `folder`; an unknown name is an error."""
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(
    results: Results, bibliography: Bibliography, folder: Path = FOLDER, *, only_whole: bool = False
) -> Listing:
    """Returns every page of docs/repro/ and the figures that pages show.

    With `only_whole` a page is left out if the results lack one of its experiments.
    """
    templates = environment(folder)
    listing: Listing = {}
    for name in sorted(templates.list_templates(extensions=["j2"])):
        if name in (OVERVIEW, SCALE):
            continue
        voice = Voice(results, bibliography)
        text = templates.get_template(name).render(voice.functions())
        if only_whole and voice.absent:
            continue
        listing[f"docs/repro/{name.removesuffix('.j2')}"] = HEAD.format(name) + text
        for path, figure in voice.shown.items():
            listing[f"docs/repro/{path}"] = draw.svg(figure, description(figure, results))
    return listing


def overview(bibliography: Bibliography) -> Listing:
    """Returns docs/repro.md: how to repeat the experiments, and the papers."""
    template = environment(FOLDER).get_template(OVERVIEW)
    text = template.render(
        cite=lambda key: bibliography[key].full(), short=lambda key: bibliography[key].short()
    )
    return {"docs/repro.md": HEAD.format(OVERVIEW) + text}


def description(figure: Figure, results: Results) -> str:
    """Returns what a figure shows, for readers who cannot see it."""
    shown = set(figure.claims)
    said = [
        f"{claim.text} Here: {our_value(claim)} {claim.unit}."
        for experiment in results.experiments
        for claim in experiment.claims
        if claim.id in shown
    ]
    condition = [f"Invalid points: {figure.condition}"] if figure.condition else []
    return " ".join([f"{figure.y_label} by {figure.x_label}.", *said, *condition])


class Voice:
    """What templates can say of the results.

    `shown` has the figures of the page by their paths, `absent` the experiments that the results lack.
    """

    def __init__(self, results: Results, bibliography: Bibliography) -> None:
        """Speaks of `results`."""
        self.results = results
        self.bibliography = bibliography
        self.shown: dict[str, Figure] = {}
        self.absent: set[str] = set()
        self.experiments = {experiment.id: experiment for experiment in results.experiments}

    def functions(self) -> dict[str, Callable[..., str]]:
        """Returns the functions of templates, by name."""
        names = [
            "cite",
            "short",
            "run",
            "claims",
            "figure",
            "others",
            "notes",
            "ours",
            "verdicts",
            "missing",
        ]
        return {name: getattr(self, name) for name in names}

    def cite(self, key: str) -> str:
        """Returns the complete citation of the paper `key`."""
        return self.bibliography[key].full()

    def short(self, key: str) -> str:
        """Returns the citation of the paper `key` in a text."""
        return self.bibliography[key].short()

    def run(self, *experiment_ids: str) -> str:
        """Returns when, where and with what experiments were measured; all of them without an id."""
        wanted = experiment_ids or tuple(self.experiments)
        found = filter(None, map(self._experiment, wanted))
        return "\n\n".join(map(line_of, runs_of(found)))

    def ours(self, claim_id: str) -> str:
        """Returns the value measured here for a claim, with its unit."""
        for experiment in self.results.experiments:
            for claim in experiment.claims:
                if claim.id == claim_id:
                    return f"{our_value(claim)} {claim.unit}"
        return self._absent(claim_id)

    def claims(self, experiment_id: str) -> str:
        """Returns the claims of an experiment as tables, the paper's before the project's own aims."""
        experiment = self._experiment(experiment_id)
        if experiment is None:
            return ABSENT.format(experiment_id)
        said = [claim for claim in experiment.claims if claim.origin == "paper"]
        aims = [claim for claim in experiment.claims if claim.origin == "aim"]
        parts = [table_of_claims(said)] if said else []
        parts += (
            ["Aims of this project, which the paper does not state:", table_of_claims(aims)]
            if aims
            else []
        )
        return "\n\n".join([*parts, *self._why(experiment)]) or "No claims."

    def _why(self, experiment: Experiment) -> list[str]:
        said = [(claim.id, claim.detail, claim.why) for claim in experiment.claims]
        reasons = [
            f"* `{name}`: {' '.join(filter(None, more))}" for name, *more in said if any(more)
        ]
        missing = [f"* Missing: {reason}" for reason in experiment.missing]
        busy = [turn for turn in experiment.load if not turn.permits_verdict]
        share = f"{len(busy)} of {len(experiment.load)} measurements"
        load = (
            [f"* Other processes kept the machine busy in {share}, which have no verdict."]
            if busy
            else []
        )
        lines = reasons + missing + load
        return ["\n".join(lines)] if lines else []

    def figure(self, experiment_id: str, figure_id: str) -> str:
        """Returns a figure as a picture, followed by its values as a table."""
        experiment = self._experiment(experiment_id)
        figures = experiment.figures if experiment else []
        for figure in figures:
            if figure.id == figure_id:
                return self._shown(experiment_id, figure)
        return self._absent(f"{experiment_id}/{figure_id}")

    def _shown(self, experiment_id: str, figure: Figure) -> str:
        path = f"{experiment_id}/{figure.id}.svg"
        self.shown[path] = figure
        condition = (
            f"\n\nHollow points are in no verdict: {figure.condition}" if figure.condition else ""
        )
        values = details("Values", table_of_values(figure))
        return f"![{figure.heading()}]({path}){condition}\n\n{values}"

    def others(self, experiment_id: str) -> str:
        """Returns the figures of an experiment that the page has not shown before."""
        experiment = self._experiment(experiment_id)
        figures = experiment.figures if experiment else []
        paths = {f"{experiment_id}/{figure.id}.svg": figure for figure in figures}
        rest = [figure for path, figure in paths.items() if path not in self.shown]
        if not rest:
            return ""
        return details("More figures", "\n\n".join(self._shown(experiment_id, one) for one in rest))

    def notes(self, experiment_id: str) -> str:
        """Returns the notes on the method that the experiment prints."""
        experiment = self._experiment(experiment_id)
        return "\n".join(f"* {note}" for note in experiment.notes) if experiment else ""

    def verdicts(self) -> str:
        """Returns the number of claims with each verdict, by paper, as a table."""
        names = [status.name for status in STATUSES.values()]
        rows = [
            [self._link(tally), *(str(tally.counts[key] or "") for key in STATUSES)]
            for tally in tallies(self.results, self.bibliography)
        ]
        return table(["paper", *names], rows)

    def missing(self) -> str:
        """Returns the experiments of which there are no results."""
        names = sorted(
            book.stem for book in BOOKS.glob("*.json") if book.stem not in self.experiments
        )
        return (
            f"No results are kept of {', '.join(f'`{name}`' for name in names)}." if names else ""
        )

    def _link(self, tally: Tally) -> str:
        work = self.bibliography.get(tally.anchor)
        return f"[{tally.name}]({work.page}.md)" if work else tally.name

    def _experiment(self, experiment_id: str) -> Experiment | None:
        if experiment_id not in self.experiments:
            self.absent.add(experiment_id)
        return self.experiments.get(experiment_id)

    def _absent(self, what: str) -> str:
        """Says that the results lack `what`, which is an error if its experiment is there and complete."""
        if self.results.is_complete and not self.absent:
            raise Fault(
                f"{what} is not in the results, though they are complete; a template names it"
            )
        return ABSENT.format(what)


def line_of(run: Run) -> str:
    """Returns when, where and with what a run measured."""
    commit = f", commit {run.commit}" if run.commit else ""
    text = (
        f"Measured by `{' '.join(run.command)}` ({run.extent}), rxo {run.version}"
        f"{commit}, on {run.started[:10]} in {duration(run.seconds)}: "
        f"{run.machine_line()}."
    )
    return text + (f" The run is incomplete: {run.partial}." if run.partial else "")


def table_of_claims(some: Iterable[Claim]) -> str:
    """Returns claims with the paper's value, ours, the rule and the verdict."""
    head = ["claim", "statement", "row", "paper", "here", "unit", "rule", "basis", "verdict"]
    rows = [
        [
            f"`{claim.id}`, {claim.section}",
            claim.text,
            claim.row or "",
            papers_value(claim),
            our_value(claim),
            claim.unit,
            rule(claim),
            BASES[claim.basis],
            f"**{STATUSES[claim.status].name}**",
        ]
        for claim in some
    ]
    return table(head, rows)


def table_of_values(figure: Figure) -> str:
    """Returns the values of a figure, a row for each x; `!` marks those that are in no verdict."""
    rows = [
        [x, *(cell(series, index) for series in figure.series)] for index, x in enumerate(figure.x)
    ]
    unit = f"{figure.y_label}, {figure.fixed}:" if figure.fixed else f"{figure.y_label}:"
    return f"{unit}\n\n{table([figure.x_label, *(series.name for series in figure.series)], rows)}"


def cell(series: Series, index: int) -> str:
    """Returns a value of a series with its range."""
    value, ends = series.values[index], series.range(index)
    if value is None:
        return "–"
    text = interval(value, *ends) if ends else number(value)
    return f"{text} !" if series.is_invalid(index) else text


def table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(text.replace('|', '&#124;') for text in line)} |" for line in lines
    )


def details(summary: str, text: str) -> str:
    """Returns text that a reader opens."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"
