"""Pages say what the results say, and a stale page is found."""

import json
from pathlib import Path
from typing import Any

import pytest

from rxo_report import __main__ as command
from rxo_report import citation, pages, results
from rxo_report.bibliography import Bibliography
from rxo_report.fault import Fault
from rxo_report.results import Results
from tests.conftest import EXAMPLE


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A folder with a template of one page."""
    folder = tmp_path / "pages"
    folder.mkdir()
    calls = "claims('xen') figure('xen','table-vi') others('xen') ours('xen.table-v.driver')"
    (folder / "xen.md.j2").write_text("\n\n".join(f"{{{{ {call} }}}}" for call in calls.split()))
    return folder


def test_a_page_has_each_claim_with_its_verdict(
    example: Results, papers: Bibliography, template: Path
) -> None:
    page = pages.render(example, papers, template)["docs/repro/xen.md"]
    row = (
        "| `xen.table-v.driver`, V, Table V | Delayed Aggregation needs 0.23 of the driver domain's cycles "
        "without coalescing. | mechanism | 0.23 | 0.56 | of Xen's | ≤ 0.23 (+5 %) | counted | **weaker** |"
    )
    assert row in page
    assert "* `xen.table-v.driver`: A poll costs more here." in page
    assert "* Missing: guests: QEMU is not installed" in page
    assert "busy in 1 of 2 measurements" in page
    assert page.endswith("0.56 of Xen's")
    before, after = page.split("Aims of this project")
    assert "`xen.requests.auto`, VI" in after
    assert "`xen.requests.auto`, VI" not in before


def test_a_page_shows_each_figure_once_with_its_values(
    example: Results, papers: Bibliography, template: Path
) -> None:
    listing = pages.render(example, papers, template)
    page = listing["docs/repro/xen.md"]
    assert page.count("](xen/table-vi.svg)") == 1
    assert page.count("](xen/figure-sweep.svg)") == 1
    assert "| 1 | 1.4 | 0.9 (0.85 to 0.95) ! | – |" in page
    assert "Hollow points are in no verdict: With one frame a poll the sender waited." in page
    figures = sorted(path for path in listing if path.endswith(".svg"))
    assert figures == ["docs/repro/xen/figure-sweep.svg", "docs/repro/xen/table-vi.svg"]
    assert "Here: 0.56 of Xen's." in listing["docs/repro/xen/figure-sweep.svg"]


def test_what_a_quick_run_lacks_is_said_and_in_a_full_run_it_is_an_error(
    example: Results, document: dict[str, Any], papers: Bibliography, template: Path
) -> None:
    (template / "xen.md.j2").write_text("{{ figure('xen', 'table-vii') }}")
    assert (
        pages.ABSENT.format("xen/table-vii")
        in pages.render(example, papers, template)["docs/repro/xen.md"]
    )
    with pytest.raises(Fault, match="xen/table-vii is not in the results"):
        pages.render(results.of(document | {"extent": "full"}), papers, template)


def test_a_page_names_the_runs_of_its_experiments(
    document: dict[str, Any], papers: Bibliography, template: Path, tmp_path: Path
) -> None:
    xen, other = document["experiments"][:2]
    folder = tmp_path / "results"
    folder.mkdir()
    for day, experiment in [("2026-01-02", xen), ("2026-03-04", other)]:
        part = document | {"started": f"{day}T00:00:00Z", "experiments": [experiment]}
        (folder / f"{experiment['id']}.json").write_text(json.dumps(part))
    (template / "xen.md.j2").write_text("{{ run('xen') }}")
    (template / "summary.md.j2").write_text("{{ run() }}")
    listing = pages.render(results.read(folder), papers, template)
    assert "2026-01-02" in listing["docs/repro/xen.md"]
    assert "2026-03-04" not in listing["docs/repro/xen.md"]
    assert listing["docs/repro/summary.md"].count("Measured by") == 2


def test_only_pages_whose_experiments_are_there_are_kept(
    example: Results, papers: Bibliography, template: Path
) -> None:
    (template / "menon.md.j2").write_text("{{ claims('xen') }}{{ claims('menon') }}")
    made = pages.render(example, papers, template, only_whole=True)
    assert "docs/repro/xen.md" in made
    assert "docs/repro/menon.md" not in made
    assert "No results are kept of `cast`, `cast-live`" in pages.Voice(example, papers).missing()


def test_every_page_of_the_project_can_be_made(example: Results, papers: Bibliography) -> None:
    listing = pages.render(example, papers)
    made = {path for path in listing if path.endswith(".md")}
    assert made >= {f"docs/repro/{work.page}.md" for work in papers.values()}
    assert "[Oi and Nakajima 2009](xen.md) |  |  | 1 |" in listing["docs/repro/summary.md"]


def test_no_template_has_a_bar_of_a_table_in_a_value() -> None:
    assert pages.table(["a"], [["x | y"]]) == "| a |\n| --- |\n| x &#124; y |"


def run(root: Path, *flags: str) -> int:
    return command.main([str(EXAMPLE), "--root", str(root), *flags])


def test_a_stale_page_is_found_and_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--docs") == 0
    assert run(tmp_path, "--check") == 0
    page = tmp_path / "docs/repro/xen.md"
    page.write_text(page.read_text(encoding="utf-8").replace("0.56", "0.65"), encoding="utf-8")
    (tmp_path / "docs/repro/xen/figure-old.svg").write_text("<svg/>")
    (tmp_path / "docs/repro/scale.svg").write_text("<svg/>")  # of another page
    (tmp_path / "docs/repro/smo/figure-5.svg").unlink()
    capsys.readouterr()
    assert run(tmp_path, "--check") == 1
    assert sorted(capsys.readouterr().err.splitlines()) == [
        "docs/repro/smo/figure-5.svg is stale; `cargo xtask report --docs` mends it",
        "docs/repro/xen.md is stale; `cargo xtask report --docs` mends it",
        "docs/repro/xen/figure-old.svg: no page shows it; `cargo xtask report --docs` mends it",
    ]
    assert run(tmp_path, "--docs") == 0
    assert run(tmp_path, "--check") == 0
    assert (tmp_path / "docs/repro/scale.svg").exists()


def test_without_results_only_what_needs_none_is_written_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag in ("--docs", "--check"):
        assert command.main(["--root", str(tmp_path), flag]) == 0
        assert "no results are kept" in capsys.readouterr().out
    files = {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    }
    assert files == {"CITATION.cff", "docs/repro.md"}
    assert run(tmp_path, "--docs") == 0
    assert command.main(["--root", str(tmp_path), "--check"]) == 1
    assert "results: No such file" in capsys.readouterr().err


def test_the_report_is_written_beside_pages_and_figures(tmp_path: Path) -> None:
    assert command.main([str(EXAMPLE), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "docs/repro/xen/table-vi.svg").is_file()


def test_unusable_results_end_the_command_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([str(tmp_path / "none.json"), "--check"]) == 1
    assert capsys.readouterr().err.startswith("rxo_report: cannot read ")
    with pytest.raises(SystemExit) as usage:
        command.main([])
    assert usage.value.code == 2


def test_the_citation_has_each_paper_of_the_bibliography(papers: Bibliography) -> None:
    text = citation.render(papers)
    for line in text.splitlines()[1:]:
        value = line.removeprefix("  - ") if line.startswith("  ") else line.split(": ", 1)[-1]
        assert line.endswith(":") or decoded(value) is not None
    for work in papers.values():
        assert f'"title": "{work.title}"' in text
    assert text.count('"doi"') == 2


def decoded(value: str) -> Any:
    return citation.json.loads(value)


def test_only_the_bibliography_has_authors_who_are_cited(papers: Bibliography) -> None:
    assert papers["makineni-2006"].short() == "Makineni et al. 2006"
    assert papers["gallatin-2007"].full().startswith(r"Andrew Gallatin: “\[PATCH] LRO ack")
    assert "Hitoshi Oi and Fumio Nakajima: “Optimizations of Large" in papers["oi-2009"].full()


def test_results_are_kept_by_experiment_and_newer_ones_replace_them(
    document: dict[str, Any], tmp_path: Path
) -> None:
    first, second = document["experiments"]
    assert run(tmp_path, "--keep") == 0
    folder = tmp_path / "docs/repro/results"
    assert sorted(path.stem for path in folder.iterdir()) == sorted([first["id"], second["id"]])
    newer = tmp_path / "newer.json"
    newer.write_text(json.dumps(document | {"experiments": [second], "seconds": 77}))
    assert command.main([str(newer), "--root", str(tmp_path), "--keep"]) == 0
    kept = {one.id: one for one in results.read(folder).experiments}
    assert (kept[second["id"]].run.seconds, kept[second["id"]].measured) == (77, {})
    assert kept[first["id"]].run.seconds == document["seconds"]
    assert command.main(["--root", str(tmp_path), "--check"]) == 0
