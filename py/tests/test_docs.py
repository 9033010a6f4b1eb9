"""docs/python.md: every block of Python runs as it stands, in order, in one program."""

import json
import pathlib
import re


DOCS = pathlib.Path(__file__).parents[2] / "docs/python.md"
README = pathlib.Path(__file__).parents[1] / "README.md"


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


def prepare(folder, capture):
    for name in ("trace.pcapng.zst", "trace.pcap", "trace.pcapng"):
        (folder / name).write_bytes(capture)
    (folder / "captures").mkdir()
    (folder / "captures/monday.pcap").write_bytes(capture)
    (folder / "mine.toml").write_text('base = "linux-gro"\nmax_segments = 4\n')
    costs = {"packet_ns": 900, "byte_ns": 0.2, "coalesce_ns": 20, "device_ns": 50}
    (folder / "costs.json").write_text(json.dumps({"costs": costs}))


def run(path, folder, capture, monkeypatch):
    prepare(folder, capture)
    monkeypatch.chdir(folder)
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
    prepare(tmp_path, capture)
    monkeypatch.chdir(tmp_path)
    exec(compile(first, str(DOCS), "exec"), {})
    sentence, share = capsys.readouterr().out.splitlines()
    assert float(share) == 0.9375 and sentence


def test_the_readme_of_the_package_runs_and_links_only_outside(capture, tmp_path, monkeypatch):
    run(README, tmp_path, capture, monkeypatch)
    links = re.findall(r"\]\(([^)]*)\)", README.read_text())
    assert all(link.startswith("https://") for link in links), links
