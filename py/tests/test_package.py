"""What ships with the code: a notebook that runs, types that are true."""

import pathlib
import subprocess
import sys

import nbclient
import nbformat

HERE = pathlib.Path(__file__).parent


def test_the_notebook_runs(path, monkeypatch, tmp_path):
    notebook = nbformat.read(HERE.parent / "examples" / "what-if.ipynb", as_version=4)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    assert '<div class="rxo-study">' in shown and shown.count("<svg") == 4
    assert "<th>source_address</th>" in shown and "eliminated" in shown
    assert (path.parent / "report.html").is_file()


def run(folder, *arguments):
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_true(tmp_path):
    run(tmp_path, "mypy.stubtest", "--ignore-missing-stub", "rxo._rxo")


def test_a_program_with_types_is_accepted(tmp_path):
    run(tmp_path, "mypy", "--strict", str(HERE / "typed.py"))
