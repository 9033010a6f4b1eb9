"""The text of documents."""

import json
from pathlib import Path

from rxo_report import text

EXAMPLE = Path(__file__).parent / "example.json"


def test_a_figure_is_a_table_and_a_claim_a_line() -> None:
    document = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    shown = "\n".join(text.lines(document))
    for experiment in document["experiments"]:
        assert all(figure["title"] in shown for figure in experiment["figures"])
        assert all(f"[{claim['id']}]: " in shown for claim in experiment["claims"])


def test_rows_of_a_benchmark_are_a_table() -> None:
    spread = {"median": 8.1, "low": 8.0, "high": 9.0}
    rows = [{"case": "W1", "ns": spread}, {"case": "W22", "inner": {"share": None}}]
    lines = list(text.lines({"machine": {"cores": 2}, "rows": rows}))
    assert lines == [
        "machine cores: 2",
        "",
        "rows",
        "case            ns  inner share",
        "W1    8.1 (8 to 9)            -",
        "W22              -            -",
        "",
    ]
