"""Reads the documents of `rxo-lab`: validates them against the schema and returns them as typed values."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from jsonschema import Draft202012Validator

from rxo_report.fault import Fault

SCHEMA = Path(__file__).parent.parent / "schema" / "results.schema.json"

Interval = tuple[float, float]

T = TypeVar("T")


@dataclass(frozen=True)
class Paper:
    """The paper's value: a number, for which `low` and `high` are equal, or a range."""

    low: float
    high: float


@dataclass(frozen=True)
class Ours:
    """The value measured here: a median, the least and the most, and the number of measurements."""

    value: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Rule:
    """The rule that decides a claim; `tolerance` is a share of `bound`."""

    kind: str
    bound: float | None
    tolerance: float | None


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, or an aim of this project, with its verdict."""

    id: str
    section: str
    text: str
    origin: str
    row: str | None
    unit: str
    paper: Paper | None
    ours: Ours | None
    rule: Rule
    basis: str
    detail: str | None
    status: str
    why: str | None


@dataclass(frozen=True)
class Guide:
    """A value of y with its meaning."""

    value: float
    meaning: str


@dataclass(frozen=True)
class Bracket:
    """A name for the parts of the stack at the index `place`, up to the value `to`."""

    place: int
    to: float
    name: str


@dataclass(frozen=True)
class Series:
    """A series of a figure: a value, or none, for each x."""

    name: str
    values: tuple[float | None, ...]
    is_reference: bool
    shape: str
    colour: int | None = None
    ranges: tuple[Interval | None, ...] = ()
    quartiles: tuple[Interval | None, ...] = ()
    invalid: tuple[bool, ...] = ()

    def is_invalid(self, index: int) -> bool:
        """Returns `True` if the value at `index` violates the figure's condition."""
        return index < len(self.invalid) and self.invalid[index]

    def range(self, index: int) -> Interval | None:
        """Returns the least and the most behind the value at `index`, if it was measured often."""
        return self.ranges[index] if index < len(self.ranges) else None


@dataclass(frozen=True)
class Figure:
    """A figure of a paper with the values measured here."""

    id: str
    number: str
    title: str
    fixed: str
    basis: str
    x_label: str
    y_label: str
    x: tuple[str, ...]
    x_values: tuple[float, ...] | None
    series: tuple[Series, ...]
    guides: tuple[Guide, ...]
    brackets: tuple[Bracket, ...]
    claims: tuple[str, ...]
    condition: str | None

    def heading(self) -> str:
        """Returns the title, after the paper's number if there is one."""
        if self.number.startswith("Table"):
            return f"{self.number}. {self.title}"
        return f"Figure {self.number}. {self.title}" if self.number[:1].isdigit() else self.title


@dataclass(frozen=True)
class Turn:
    """The load that other processes caused during one measurement, in percent of all cores."""

    turn: str
    others_percent: float
    stolen_percent: float
    permits_verdict: bool


@dataclass(frozen=True)
class Run:
    """When, where and with what `rxo-lab` measured: the head of a document."""

    version: str
    commit: str | None
    build: str
    command: tuple[str, ...]
    extent: str
    machine: dict[str, Any]
    started: str
    seconds: float
    partial: str | None

    @property
    def is_complete(self) -> bool:
        """`True` if everything was measured, as often as the papers' verdicts need it, in a release build."""
        return (self.extent, self.partial, self.build) == ("full", None, "optimised")

    def machine_line(self) -> str:
        """Returns the machine in a line."""
        machine = self.machine
        memory = machine["memory_mib"]
        parts = [machine["processor"], f"{machine['cores']} cores"]
        parts += [f"{memory / 1024:.0f} GiB"] if memory else []
        parts += [f"Linux {machine['kernel']}"]
        parts += ["virtual machine"] if machine["hypervisor"] else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Experiment:
    """An experiment: the claims and figures of a paper, or of a part of one."""

    run: Run
    id: str
    paper: str | None
    title: str
    seconds: float
    load: tuple[Turn, ...]
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    measured: dict[str, Any]


@dataclass(frozen=True)
class Results:
    """The results of one or several runs of `rxo-lab`, each experiment once."""

    experiments: tuple[Experiment, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, each once, in the order of their experiments."""
        return runs_of(self.experiments)

    @property
    def is_complete(self) -> bool:
        """`True` if every run is complete."""
        return all(run.is_complete for run in self.runs)


def runs_of(experiments: Iterable[Experiment]) -> tuple[Run, ...]:
    """Returns the runs of `experiments`, each once."""
    found: list[Run] = []
    for experiment in experiments:
        if experiment.run not in found:
            found.append(experiment.run)
    return tuple(found)


def read(path: Path) -> Results:
    """Reads and validates the file `path`, or every `.json` file of the folder `path`.

    Raises `Fault` if a file cannot be read, is no JSON, or does not follow the schema, if an experiment
    is in two files, or if there is no file.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    parts = [(file, _read_file(file)) for file in files]
    if not parts:
        raise Fault(f"{path} has no .json file; `rxo-lab all --out DIR` writes one")
    places: dict[str, Path] = {}
    for file, part in parts:
        for experiment in part.experiments:
            other = places.setdefault(experiment.id, file)
            if other != file:
                raise Fault(f"{experiment.id} is in {other} and {file}; remove the older one")
    return Results(tuple(experiment for _, part in parts for experiment in part.experiments))


def _read_file(path: Path) -> Results:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise Fault(f"cannot read {path}: {reason}; `rxo-lab all --out DIR` writes one") from error
    except ValueError as error:
        raise Fault(f"{path} is not JSON: {error}") from error
    validate(document, str(path))
    results = of(document)
    known = {claim.id for experiment in results.experiments for claim in experiment.claims}
    for experiment in results.experiments:
        for figure in experiment.figures:
            check(figure, known, f"{path}: {experiment.id}/{figure.id}")
    return results


def validate(document: object, name: str) -> None:
    """Raises `Fault` if `document` violates the schema; the error names the first place."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    errors = Draft202012Validator(schema).iter_errors(document)
    error = min(errors, key=lambda error: list(map(str, error.absolute_path)), default=None)
    if error is not None:
        raise Fault(f"{name}: {error.json_path}: {error.message[:200]}")


def check(figure: Figure, known: set[str], name: str) -> None:
    """Raises `Fault` if the parts of `figure` do not fit together, which no schema can say."""
    count = len(figure.x)
    if figure.x_values is not None and len(figure.x_values) != count:
        raise Fault(f"{name}: {len(figure.x_values)} x_values for {count} x")
    for series in figure.series:
        if len(series.values) != count:
            raise Fault(f"{name}: {len(series.values)} values of {series.name!r} for {count} x")
    unknown = [claim for claim in figure.claims if claim not in known]
    if unknown:
        raise Fault(f"{name}: no claim {unknown[0]!r}")


def of(document: dict[str, Any]) -> Results:
    """Returns a valid document as typed values."""
    run = _made(Run, document | document["rxo"])
    return Results(tuple(_experiment(value, run) for value in document["experiments"]))


def _made(kind: type[T], value: dict[str, Any], **parts: object) -> T:
    """Returns the fields of `value` that `kind` has, with `parts` in place of those of that name."""
    names = {field.name for field in fields(kind)}
    kept = {name: _fixed(value[name]) for name in value if name in names}
    return kind(**(kept | parts))


def _fixed(value: object) -> object:
    """Returns a list as a tuple, so that what was read can be compared, hashed and not changed."""
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


def _experiment(value: dict[str, Any], run: Run) -> Experiment:
    return _made(
        Experiment,
        value,
        run=run,
        load=tuple(_made(Turn, turn) for turn in value["load"]),
        claims=tuple(_claim(claim) for claim in value["claims"]),
        figures=tuple(_figure(figure) for figure in value["figures"]),
    )


def _claim(value: dict[str, Any]) -> Claim:
    paper, ours = value["paper"], value["ours"]
    if isinstance(paper, dict):
        paper = _made(Paper, paper)
    elif paper is not None:
        paper = Paper(paper, paper)
    measured = _made(Ours, ours) if ours else None
    return _made(Claim, value, paper=paper, ours=measured, rule=_made(Rule, value["rule"]))


def _figure(value: dict[str, Any]) -> Figure:
    return _made(
        Figure,
        value,
        series=tuple(_made(Series, series) for series in value["series"]),
        guides=tuple(_made(Guide, guide) for guide in value["guides"]),
        brackets=tuple(_made(Bracket, bracket) for bracket in value["brackets"]),
    )
