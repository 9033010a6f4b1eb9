"""The captures that a program names, the errors of files, and the bar."""

import os
import pickle
import sys

import pytest

import rxo


@pytest.fixture
def folder(capture, tmp_path):
    """A directory with two captures, and a hidden file that is none."""
    folder = tmp_path / "captures"
    folder.mkdir()
    for name in ("a.pcap", "b.pcap"):
        (folder / name).write_bytes(capture)
    (folder / ".hidden").write_text("no capture")
    return folder


def test_directories_and_names_with_asterisks_stand_for_files(folder):
    forms = [folder, str(folder), folder / "*.pcap", f"{folder}/?.pcap", folder.glob("*"), [folder / "a*", folder / "b.pcap"]]
    for form in forms[:4] + forms[5:]:
        study = rxo.analyze(form)
        assert study.sources()["file"] == [str(folder / "a.pcap"), str(folder / "b.pcap")]
    assert rxo.analyze(folder.glob("*.pcap")).packets == 640
    assert rxo.compare(folder, policies="none").packets == 640


def test_directories_in_a_directory_are_named_in_a_warning(folder, capture):
    for name in ("one", "two", ".git"):
        (folder / name).mkdir()
        (folder / name / "c.pcap").write_bytes(capture)
    pattern = f"{folder}/*/"
    message = f"{folder}: 2 directories in it were not read; to read them too, give {[str(folder), pattern]}"
    for function in (rxo.analyze, rxo.packets, lambda files: rxo.compare(files, policies="none")):
        with pytest.warns(UserWarning) as warned:
            function(folder)
        assert [(str(each.message), each.filename) for each in warned] == [(message, __file__)]
    with pytest.warns(UserWarning):
        assert rxo.analyze([folder, pattern]).packets == 4 * 320
    for name in ("a.pcap", "b.pcap"):
        (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match="the directory has no files, only directories; give "):
        rxo.analyze(folder)


def test_a_file_with_an_asterisk_in_its_name_is_that_file(capture, tmp_path):
    odd = tmp_path / "a[1]*.pcap"
    odd.write_bytes(capture)
    assert rxo.analyze(odd).packets == 320


def test_no_capture_is_an_error(tmp_path):
    for nothing in ([], (), iter([])):
        with pytest.raises(rxo.UsageError, match="no capture: give a path, a directory"):
            rxo.analyze(nothing)
    with pytest.raises(FileNotFoundError, match="the directory has no files"):
        rxo.analyze(tmp_path)
    with pytest.raises(FileNotFoundError, match="no file has such a name"):
        rxo.analyze(tmp_path / "*.pcap")


def test_errors_of_files_are_those_of_python(capture, tmp_path):
    absent = tmp_path / "absent.pcap"
    with pytest.raises(FileNotFoundError) as raised:
        rxo.analyze(absent)
    assert raised.value.filename == str(absent)
    assert isinstance(raised.value, rxo.CaptureError)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (type(again), str(again)) == (type(raised.value), str(raised.value))
    with pytest.raises(rxo.DamagedCaptureError) as raised:
        rxo.analyze(b"GET / HTTP/1.1\r\n\r\n")
    assert (raised.value.filename, raised.value.errno) == ("<bytes>", None)
    study = rxo.analyze(capture)
    for write in (study.report, lambda path: rxo.coalesce(capture, path)):
        with pytest.raises(FileNotFoundError) as raised:
            write(tmp_path / "no" / "file")
        assert raised.value.filename == str(tmp_path / "no" / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_forbidden_file_is_a_permission_error(path):
    path.chmod(0)
    with pytest.raises(PermissionError, match="cannot be opened: Permission denied"):
        rxo.analyze(path)


def test_a_forbidden_file_has_the_class_of_permission_errors():
    error = rxo._errors.of_file("a cannot be opened", "a", 13, False)
    assert isinstance(error, PermissionError) and isinstance(error, rxo.CaptureError)


class Bar:
    """What tqdm is to rxo."""

    made = []

    def __init__(self, **arguments):
        self.arguments, self.n = arguments, 0
        self.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def update(self, count):
        self.n += count


def test_a_bar_is_shown_where_tqdm_is_installed(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", type(sys)("tqdm"))
    sys.modules["tqdm"].tqdm = Bar
    monkeypatch.setattr(rxo._progress.importlib.util, "find_spec", lambda name: None)
    rxo.analyze(path)
    (bar,) = Bar.made
    assert bar.arguments["total"] == path.stat().st_size
    assert (bar.arguments["disable"], bar.arguments["delay"]) == (None, 1.0)
    rxo.analyze(path, progress=False)
    assert len(Bar.made) == 1


def test_without_tqdm_there_is_silence(path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    rxo.analyze(path, progress=True)
    assert capsys.readouterr() == ("", "")
