"""The report has everything in one file."""

import base64
import re
from html.parser import HTMLParser

import pytest

from rxo_report import claims, html, results
from rxo_report.bibliography import Bibliography
from rxo_report.fault import Fault
from rxo_report.results import Results

VOID = {"meta", "br", "img"}


class Reader(HTMLParser):
    """Reads a page: its addresses, its classes, and elements that do not end."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.classes: set[str] = set()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        values = dict(attrs)
        self.addresses += [value for name in ("src", "href") if (value := values.get(name))]
        self.classes |= set((values.get("class") or "").split())
        self.names |= {values["id"] or ""} if "id" in values else set()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(results: Results, papers: Bibliography) -> tuple[str, Reader]:
    text = html.render(results, papers)
    reader = Reader()
    reader.feed(text)
    assert not reader.open
    return text, reader


def test_the_report_has_every_claim_and_needs_no_other_file(
    example: Results, papers: Bibliography
) -> None:
    text, reader = read(example, papers)
    for experiment in example.experiments:
        assert experiment.id in reader.names
        for claim in experiment.claims:
            assert claim.id in reader.names
            assert claim.status in reader.classes
    outside = [address for address in reader.addresses if not address.startswith(("#", "data:"))]
    assert outside == ["https://doi.org/10.1109/NCA.2009.47"]
    links = {address[1:] for address in reader.addresses if address.startswith("#")}
    assert links <= reader.names
    assert "<script" not in text


def test_the_report_says_what_was_run_where_and_how_busy_it_was(
    example: Results, papers: Bibliography
) -> None:
    text, _ = read(example, papers)
    for said in (
        "6a5c41be",
        "rxo-lab all --quick",
        "Example processor",
        "round 2: DA",
        "1 too busy",
    ):
        assert said in text


def test_a_paper_that_nobody_knows_is_named(document: dict, papers: Bibliography) -> None:
    document["experiments"][0]["paper"] = "santos-2008"
    with pytest.raises(Fault, match=r"xen: bibliography.toml has no paper 'santos-2008'"):
        html.render(results.of(document), papers)


def test_figures_are_pictures_in_the_file(example: Results, papers: Bibliography) -> None:
    text, _ = read(example, papers)
    pictures = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", text)
    assert len(pictures) == 4
    assert all(base64.b64decode(picture).startswith(b"<svg") for picture in pictures)


def test_each_verdict_has_a_colour_for_light_and_dark() -> None:
    style = html.colours()
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    for key, status in claims.STATUSES.items():
        assert f".{key}{{--status:{status.light}}}" in light
        assert f".{key}{{--status:{status.dark}}}" in dark


def test_text_from_results_is_escaped(document: dict, papers: Bibliography) -> None:
    document["experiments"][0]["claims"][0]["text"] = "<b>bold</b>"
    text, _ = read(results.of(document), papers)
    assert "&lt;b&gt;bold" in text
