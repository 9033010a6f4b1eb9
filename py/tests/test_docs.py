"""docs/python.md: every block of Python runs as it stands, in order, in one program."""

import pathlib
import re


DOCS = pathlib.Path(__file__).parents[2] / "docs/python.md"
README = pathlib.Path(__file__).parents[1] / "README.md"


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


def prepare(folder, capture, monkeypatch):
    (folder / "trace.pcap").write_bytes(capture)
    monkeypatch.chdir(folder)


def run(path, folder, capture, monkeypatch):
    prepare(folder, capture, monkeypatch)
    names = {}
    for number, block in enumerate(blocks(path, "python")):
        exec(compile(block, f"{path.name}, block {number}", "exec"), names)
    return names


def test_every_block_runs(capture, tmp_path, monkeypatch, capsys):
    names = run(DOCS, tmp_path, capture, monkeypatch)
    assert (tmp_path / "restored.pcap").read_bytes() == capture
    assert (tmp_path / "report.html").is_file()
    assert names["packets"].height == 320
    assert "aggregate" in capsys.readouterr().out


def test_the_first_block_has_four_lines_and_a_right_decision(capsys, capture, tmp_path, monkeypatch):
    first = blocks(DOCS, "python")[0]
    assert len(first.splitlines()) <= 4
    prepare(tmp_path, capture, monkeypatch)
    exec(compile(first, str(DOCS), "exec"), {})
    sentence, share = capsys.readouterr().out.splitlines()
    assert float(share) == 0.9375 and sentence


def test_the_readme_of_the_package_runs_and_links_only_outside(capture, tmp_path, monkeypatch):
    run(README, tmp_path, capture, monkeypatch)
    links = re.findall(r"\]\(([^)]*)\)", README.read_text())
    assert all(link.startswith("https://") for link in links), links


def test_the_page_names_the_packages_that_its_blocks_import():
    imported = set(re.findall(r"^import (\w+)", "".join(blocks(DOCS, "python")), re.MULTILINE))
    named = re.search(r"`pip install ([\w ]+)`", DOCS.read_text())[1].split()
    assert "polars" in imported <= {"rxo", *named}
