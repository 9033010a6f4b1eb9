"""Claims in words: the paper's value, ours, the rule, and the verdict; counts of verdicts by paper."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rxo_report.bibliography import Bibliography
from rxo_report.numbers import interval, number
from rxo_report.results import Claim, Results


@dataclass(frozen=True)
class Status:
    """A verdict: its name in words, its meaning, and its colours on light and dark ground."""

    name: str
    meaning: str
    light: str
    dark: str


STATUSES = {
    "reproduced": Status("reproduced", "the rule holds", "#0b6e4f", "#4cd3a5"),
    "exceeds": Status(
        "exceeds", "the whole interval is better than the paper's value", "#1558b0", "#7ab4ff"
    ),
    "weaker": Status("weaker", "the paper's effect, but less of it", "#8a5a00", "#f0b849"),
    "contradicted": Status(
        "contradicted", "no such effect here, or the opposite", "#b3261e", "#ff8a80"
    ),
    "calibration": Status(
        "calibration", "the value is an input here, so it cannot fail", "#5b4b8a", "#c3b1f5"
    ),
    "not-repeated": Status("not repeated", "not measured, with the reason", "#57606a", "#a3acb8"),
    "no-verdict": Status(
        "no verdict", "the interval does not decide, or the machine was busy", "#57606a", "#a3acb8"
    ),
}

SYMBOLS = {
    "at-least": "≥ {bound}",
    "at-most": "≤ {bound}",
    "within": "{bound}",
    "more-than": "> {bound}",
    "less-than": "< {bound}",
    "grows": "grows",
    "none": "–",
}
SIGNS = {"at-least": "−", "more-than": "−", "at-most": "+", "less-than": "+"}

BASES = {
    "count": "counted",
    "virtual-time": "virtual time",
    "processor-time": "processor time",
    "live": "live",
}


def papers_value(claim: Claim) -> str:
    """Returns the paper's value, or a dash if the paper gives none."""
    if claim.paper is None:
        return "–"
    low, high = number(claim.paper.low), number(claim.paper.high)
    return low if low == high else f"{low} to {high}"


def our_value(claim: Claim) -> str:
    """Returns the value measured here with its interval, or a dash."""
    if claim.ours is None:
        return "–"
    return interval(claim.ours.value, claim.ours.low, claim.ours.high)


def rule(claim: Claim) -> str:
    """Returns the rule with its tolerance, such as `≥ 45 (−5 %)`."""
    kind, bound, tolerance = claim.rule.kind, claim.rule.bound, claim.rule.tolerance
    text = SYMBOLS[kind].format(bound="–" if bound is None else number(bound))
    if not tolerance:
        return text
    sign = SIGNS.get(kind, "±")
    percent = f"{sign}{number(tolerance * 100)} %"
    return f"{text} ± {number(tolerance * 100)} %" if sign == "±" else f"{text} ({percent})"


def counts(claims: Iterable[Claim], origin: str) -> Counter[str]:
    """Counts the verdicts of the claims with that origin, `paper` or `aim`."""
    return Counter(claim.status for claim in claims if claim.origin == origin)


@dataclass(frozen=True)
class Tally:
    """The verdicts on the statements of one paper, or on all aims of this project."""

    name: str
    anchor: str
    counts: Counter[str]


def tallies(results: Results, bibliography: Bibliography) -> list[Tally]:
    """Counts verdicts by paper, in the bibliography's order, and on this project's own aims."""
    found = []
    for key, work in bibliography.items():
        claims = [
            claim
            for experiment in results.experiments
            if experiment.paper == key
            for claim in experiment.claims
        ]
        if claims:
            found.append(Tally(work.short(), key, counts(claims, "paper")))
    aims = [claim for experiment in results.experiments for claim in experiment.claims]
    if any(claim.origin == "aim" for claim in aims):
        found.append(Tally("aims of this project", "aims", counts(aims, "aim")))
    return found
