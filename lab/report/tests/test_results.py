"""Results are read as they were written, and what is wrong is named in a line."""

import json
from pathlib import Path
from typing import Any

import pytest

from rxo_report import results
from rxo_report.fault import Fault
from tests.conftest import EXAMPLE


def written(folder: Path, document: object) -> Path:
    path = folder / "results.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_example_is_read() -> None:
    found = results.read(EXAMPLE)
    xen = found.experiments[0]
    assert xen.claims[1].paper == results.Paper(0.23, 0.23)
    assert found.experiments[1].claims[0].paper == results.Paper(5, 6)
    assert xen.figures[1].series[1].range(0) == (0.85, 0.95)
    assert xen.figures[1].series[1].is_invalid(0)
    assert xen.figures[1].series[0].range(0) is None
    assert (
        found.runs[0].machine_line()
        == "Example processor, 2 cores, 23 GiB, Linux 6.12.0, virtual machine"
    )


def test_a_quick_or_partial_run_is_not_complete(document: dict[str, Any]) -> None:
    assert not results.of(document).is_complete
    assert results.of(document | {"extent": "full"}).is_complete
    assert not results.of(document | {"extent": "full", "partial": "Ctrl-C"}).is_complete


def test_what_violates_the_schema_is_named(document: dict[str, Any], tmp_path: Path) -> None:
    document["experiments"][0]["claims"][1]["status"] = "splendid"
    with pytest.raises(Fault, match=r"experiments\[0\]\.claims\[1\]\.status: 'splendid' is not"):
        results.read(written(tmp_path, document))


def test_what_no_schema_can_say_is_checked(document: dict[str, Any], tmp_path: Path) -> None:
    document["experiments"][0]["figures"][1]["series"][0]["values"].pop()
    with pytest.raises(Fault, match=r"xen/figure-sweep: 2 values of 'Xen' for 3 x"):
        results.read(written(tmp_path, document))
    document["experiments"][0]["figures"][1]["series"][0]["values"].append(1.0)
    document["experiments"][0]["figures"][0]["claims"] = ["xen.no-such"]
    with pytest.raises(Fault, match=r"xen/table-vi: no claim 'xen.no-such'"):
        results.read(written(tmp_path, document))


def test_a_folder_has_each_experiment_once(document: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"has no \.json file; `rxo-lab all --out DIR`"):
        results.read(tmp_path)
    first, second = document["experiments"][:2]
    for name, experiments in [("a", [first]), ("b", [second])]:
        text = json.dumps(document | {"experiments": experiments})
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    found = results.read(tmp_path)
    assert [one.id for one in found.experiments] == [first["id"], second["id"]]
    (tmp_path / "c.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(Fault, match=rf"{first['id']} is in .*a\.json and .*c\.json; remove"):
        results.read(tmp_path)


def test_a_missing_file_names_the_command_that_writes_it(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"No such file.*rxo-lab all --out"):
        results.read(tmp_path / "results.json")
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(Fault, match="is not JSON"):
        results.read(tmp_path / "results.json")
