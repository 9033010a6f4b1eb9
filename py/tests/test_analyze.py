"""What `rxo.analyze` says of captures, and of arguments."""

import contextlib
import ctypes.util
import gzip
import io
import json
import os
import signal
import threading

import pyarrow
import pytest

import rxo
import traffic


def test_a_path_bytes_and_a_file_say_the_same(capture, path):
    with open(path, "rb") as file:
        studies = [
            rxo.analyze(each)
            for each in (path, str(path), capture, bytearray(capture), file, io.BytesIO(capture))
        ]
    figures = {(study.packets, study.eliminated) for study in studies}
    assert len(figures) == 1
    (packets, eliminated) = figures.pop()
    assert packets == 320
    # Each flow's burst is one aggregate, as long as no poll ends in it.
    assert 0 < eliminated <= 320 - 20


def test_several_captures_are_one_study(capture, path):
    assert rxo.analyze([path, capture]).packets == 640


def test_a_compressed_capture_is_unpacked(capture):
    assert rxo.analyze(gzip.compress(capture)).packets == 320


def test_every_poll_has_a_row_and_the_first_is_chosen(capture):
    study = rxo.analyze(capture, poll=["time:50us", "time:10us", "packets:64"])
    table = pyarrow.table(study.settings())
    assert table["poll"].to_pylist() == ["time:50us", "time:10us", "packets:64"]
    assert table["poll_time_ns"].to_pylist() == [50_000, 10_000, None]
    assert table["is_chosen"].to_pylist() == [True, False, False]
    eliminated = table["eliminated"].to_pylist()
    assert eliminated[0] == study.eliminated
    assert eliminated[1] < eliminated[0] <= eliminated[2]


def test_a_sweep_and_settings_are_those_of_the_command(capture):
    study = rxo.analyze(capture, settings={"max_segments": 4, "hold": "100us"}, sweep="flows=1,2")
    table = pyarrow.table(study.settings())
    assert table["set_max_segments"].to_pylist() == [4] * 3
    assert table["set_flows"].to_pylist()[1:] == [1, 2]
    assert table["max_segments_per_aggregate"].to_pylist()[0] == 4


def test_settings_have_the_words_of_python(capture):
    assert rxo.analyze(capture, settings={"coalesce": False}).eliminated == 0
    assert rxo.analyze(capture, settings={"coalesce": True}).eliminated > 0


def test_flows_are_arrow_without_gaps(capture):
    flows = rxo.analyze(capture).flows()
    assert len(flows) == 2
    table = pyarrow.table(flows)
    assert table.column_names == flows.column_names
    assert table["source_address"].to_pylist() == ["10.0.0.1"] * 2
    assert sorted(table["source_port"].to_pylist()) == [1000, 1001]
    assert table["packets"].to_pylist() == [160, 160]
    assert table["vlan"].null_count == 2
    assert table.schema.field("first_at").type == pyarrow.timestamp("ns", "UTC")
    # A stream can be asked for again.
    assert pyarrow.table(flows) == table


@pytest.mark.skipif(not ctypes.util.find_library("pcap"), reason="libpcap is not installed: apt install libpcap0.8")
def test_only_chosen_flows_count(capture):
    assert rxo.analyze(capture, flow="src port 1000 and greater 100").packets == 160
    with pytest.raises(rxo.UsageError, match='flow "port seventy": .*man pcap-filter'):
        rxo.analyze(capture, flow="port seventy")


def test_the_report_is_a_page_and_text_and_json(capture, tmp_path):
    study = rxo.analyze(capture)
    page = tmp_path / "r.html"
    study.report(page)
    assert page.read_text().lstrip().startswith("<!DOCTYPE html>")
    assert "packets" in str(study)
    assert json.loads(study.json())["traffic"]["packets"] == 320
    study.parquet(tmp_path / "tables")
    assert (tmp_path / "tables" / "flows" / "part-0.parquet").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"poll": "often"}, "poll often is invalid: packets:N (1 to 32768)"),
        ({"poll": []}, "poll: give at least one"),
        ({"poll": ["time:1us", "often"]}, "sweep: poll=often is invalid"),
        ({"policy": "lro"}, "policy: there is no policy 'lro'"),
        ({"settings": {"flows": 0}}, "settings: flows=0 is invalid: a number from 1 to 4096"),
        ({"sweep": "flows=1..99"}, "sweep: 99 combinations: at most 64"),
        ({"part": (-1, 3)}, "part (-1, 3): write (N, M)"),
        ({"part": (1, 2**64)}, "part (1, 18446744073709551616): write (N, M)"),
        ({"place": (-1, 0, 1)}, "place (-1, 0, 1): write (SERIES, N, M) with N from 0 to M - 1, and SERIES from 0 to"),
        ({"place": (2**64, 0, 1)}, "place (18446744073709551616, 0, 1): write (SERIES, N, M)"),
        ({"place": (1, 3, 3)}, "place (1, 3, 3): write (SERIES, N, M) with N from 0"),
        ({"place": (1, -1, 3)}, "place (1, -1, 3): write (SERIES, N, M) with N from 0"),
        ({"place": (1, 2**32 - 1, 2**32)}, "place (1, 4294967295, 4294967296): write"),
        ({"part": (1, 2), "place": (1, 0, 2)}, "part, place: give only one"),
        ({"checksum": "maybe"}, "checksum maybe is invalid: auto, verify, partial or trust"),
        ({"flow": "port"}, 'flow "port": '),
    ],
)
def test_an_invalid_argument_is_named_with_valid_ones(capture, arguments, message):
    with pytest.raises(rxo.UsageError) as raised:
        rxo.analyze(capture, **arguments)
    assert str(raised.value).startswith(message)
    assert isinstance(raised.value, ValueError)


def test_what_is_no_capture_is_an_error(tmp_path):
    part = tmp_path / "part.rxo"
    part.write_bytes(rxo.analyze(traffic.pcap([])).to_bytes())
    with pytest.raises(rxo.CaptureError, match="looks like a saved part of a study; give it to"):
        rxo.analyze(part)
    with pytest.raises(rxo.CaptureError, match="absent.pcap cannot be opened: No such file"):
        rxo.analyze(tmp_path / "absent.pcap")
    with pytest.raises(OSError, match="<bytes> is no capture"):
        rxo.analyze(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(TypeError, match="is no capture: give a path"):
        rxo.analyze(17)
    text = tmp_path / "text"
    text.write_text("text")
    with open(text) as file, pytest.raises(TypeError, match="text: read returned .*str.*; give a file opened in mode .rb."):
        rxo.analyze(file)


def test_a_damaged_capture_warns_and_counts_what_was_read(capture):
    with pytest.warns(rxo.PartialWarning, match="ends too early at byte"):
        study = rxo.analyze(capture[:-100])
    assert study.packets == 319
    assert "ends too early" in study.partial


def test_an_exception_of_a_file_comes_through(capture):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            if self.tell() > 0:
                raise PermissionError("the lease is over")
            return super().read(1000)

    with pytest.raises(PermissionError, match="the lease is over"):
        rxo.analyze(Broken(capture))


def test_a_signal_ends_a_long_call(capture, tmp_path):
    """The pipe never ends, so only the exception of the handler can end the call."""
    pipe = tmp_path / "endless.pcap"
    os.mkfifo(pipe)

    def feed():
        with contextlib.suppress(BrokenPipeError), open(pipe, "wb", buffering=0) as file:
            file.write(capture)
            while True:
                file.write(capture[24:])

    def ring(number, frame):
        raise KeyboardInterrupt

    feeder = threading.Thread(target=feed)
    feeder.start()
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            rxo.analyze(pipe, advise=False)
    finally:
        signal.signal(signal.SIGALRM, before)
        feeder.join()
