"""The example of results.json, as the tests change it."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from rxo_report import bibliography, results
from rxo_report.bibliography import Bibliography
from rxo_report.results import Experiment, Figure, Results

EXAMPLE = Path(__file__).parent / "example.json"


@pytest.fixture
def document() -> dict[str, Any]:
    """The example as JSON; each test has its own copy."""
    return copy.deepcopy(json.loads(EXAMPLE.read_text(encoding="utf-8")))


@pytest.fixture
def example(document: dict[str, Any]) -> Results:
    """The example as values."""
    return results.of(document)


@pytest.fixture
def papers() -> Bibliography:
    """The bibliography of the project."""
    return bibliography.read()


@pytest.fixture
def xen(example: Results) -> Experiment:
    """The first experiment of the example."""
    return example.experiments[0]


@pytest.fixture
def sweep(xen: Experiment) -> Figure:
    """A figure of lines over numbers, with ranges, an invalid point, a guide and the paper's series."""
    return xen.figures[1]
