"""Claims in words, and the colours of verdicts."""

from dataclasses import replace
from typing import Any

import pytest

from rxo_report import claims, numbers, results
from rxo_report.bibliography import Bibliography
from rxo_report.draw import theme
from rxo_report.results import Experiment, Ours, Paper, Results, Rule


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.99, "4.99"),
        (0.23, "0.23"),
        (1234.6, "1,235"),
        (99.95, "100"),
        (0.0004, "0.0004"),
        (-3, "-3"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert numbers.number(value) == text


def test_an_interval_that_is_a_point_is_left_out(xen: Experiment) -> None:
    assert claims.our_value(xen.claims[0]) == "4.99"
    assert claims.our_value(xen.claims[2]) == "1 (0.99 to 1.01)"
    assert claims.our_value(replace(xen.claims[0], ours=None)) == "–"
    assert claims.our_value(replace(xen.claims[0], ours=Ours(2, -1, 4, 3))) == "2 (-1 to 4)"


def test_the_papers_value_is_a_number_a_range_or_nothing(xen: Experiment) -> None:
    said = [replace(xen.claims[0], paper=paper) for paper in (Paper(45, 45), Paper(5, 6), None)]
    assert [claims.papers_value(claim) for claim in said] == ["45", "5 to 6", "–"]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule("at-least", 45, 0.05), "≥ 45 (−5 %)"),
        (Rule("at-most", 0.23, 0.0), "≤ 0.23"),
        (Rule("within", 20, 0.25), "20 ± 25 %"),
        (Rule("more-than", 1, None), "> 1"),
        (Rule("less-than", 1, 0.02), "< 1 (+2 %)"),
        (Rule("grows", None, None), "grows"),
        (Rule("none", None, None), "–"),
    ],
)
def test_a_rule_says_its_bound_and_its_tolerance(xen: Experiment, rule: Rule, text: str) -> None:
    assert claims.rule(replace(xen.claims[0], rule=rule)) == text


def test_aims_are_counted_apart_from_papers(example: Results, papers: Bibliography) -> None:
    found = {tally.name: dict(tally.counts) for tally in claims.tallies(example, papers)}
    assert found == {
        "Oi and Nakajima 2009": {"calibration": 1, "weaker": 1},
        "Chan and Cheriton 2013": {"not-repeated": 1},
        "aims of this project": {"no-verdict": 1},
    }


def test_every_word_of_the_schema_has_a_text() -> None:
    definitions = schema()["$defs"]
    claim = definitions["claim"]["properties"]
    assert list(claims.STATUSES) == claim["status"]["enum"]
    assert set(claims.SYMBOLS) == set(claim["rule"]["properties"]["kind"]["enum"])
    assert list(claims.BASES) == definitions["basis"]["enum"]


def schema() -> dict[str, Any]:
    return results.json.loads(results.SCHEMA.read_text(encoding="utf-8"))


def contrast(one: str, other: str) -> float:
    """Returns the contrast of two colours as WCAG 2.2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_verdicts_can_be_read_on_light_and_dark_ground() -> None:
    for status in claims.STATUSES.values():
        assert contrast(status.light, theme.GROUND[0]) >= 4.5, status
        assert contrast(status.dark, theme.GROUND[1]) >= 4.5, status


def test_series_and_text_can_be_seen_on_light_and_dark_ground() -> None:
    for pair in theme.SERIES:
        for colour, ground in zip(pair, theme.GROUND, strict=True):
            assert contrast(colour, ground) >= 3, colour
    for pair in (theme.INK, theme.MUTED):
        for colour, ground in zip(pair, theme.GROUND, strict=True):
            assert contrast(colour, ground) >= 4.5, colour
