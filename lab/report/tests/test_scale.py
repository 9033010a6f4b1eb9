"""The page on scale."""

from rxo_report import scale
from rxo_report.__main__ import ROOT


def test_cores_and_rates_are_inverse_and_memory_is_an_upper_bound() -> None:
    way = scale.Way("x", seconds=0.5, bus=4.0)
    assert way.rate(1) == 16.0
    assert round(way.most(1), 2) == round(scale.CHANNEL / 4 * 8 / 1e9, 2)


def test_the_cost_of_the_live_path_is_that_of_the_readme() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in lines if line.startswith("rxo   "))
    assert f" {scale.LIVE} (" in row


def test_nothing_is_made_of_nothing(tmp_path) -> None:
    assert scale.render(tmp_path) == {}
