"""`rxo.packets`: the packets of captures as an Arrow stream."""

import gzip
import os
import threading

import polars
import pyarrow
import pytest

import rxo
import traffic


def reader(packets):
    return pyarrow.RecordBatchReader.from_stream(packets)


def test_every_packet_is_a_row(path):
    table = reader(rxo.packets(path)).read_all()
    frames = traffic.frames()
    assert table.column_names == rxo.packets(path).column_names
    assert table["data"].to_pylist() == [frame for _, frame in frames]
    assert table["at"].cast("int64").to_pylist() == [traffic.START_S * 10**9 + at for at, _ in frames]
    first = table.slice(0, 1).to_pylist()[0]
    expected = {
        "source_address": "10.0.0.1",
        "source_port": 1000,
        "destination_address": "10.0.0.2",
        "destination_port": 443,
        "protocol": "tcp",
        "payload_bytes": traffic.SEGMENT_BYTES,
        "tcp_seq": 0,
        "tcp_ack": 1,
        "tcp_flags": 0x10,
        "tcp_window": 512,
        "wire_bytes": 54 + traffic.SEGMENT_BYTES,
        "is_sent": None,
        "vlan": None,
    }
    assert {name: first[name] for name in expected} == expected


def test_each_reader_begins_with_the_first_packet(path):
    packets = rxo.packets(path)
    assert polars.DataFrame(packets)["payload_bytes"].sum() == 320 * traffic.SEGMENT_BYTES
    assert len(polars.DataFrame(packets)) == 320


def test_files_follow_one_another(path, capture, tmp_path):
    (tmp_path / "more.pcap.gz").write_bytes(gzip.compress(capture))
    assert reader(rxo.packets(tmp_path)).read_all().num_rows == 640
    assert reader(rxo.packets([path, path])).read_all().num_rows == 640


def test_a_reader_may_stop_early(path):
    stream = reader(rxo.packets([path] * 50))
    assert stream.read_next_batch().num_rows == 320
    del stream


def test_damage_is_an_error_after_the_packets_before_it(capture, tmp_path):
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(capture[:-100])
    stream = reader(rxo.packets(damaged))
    assert stream.read_next_batch().num_rows == 319
    with pytest.raises(OSError, match="damaged.pcap ends too early"):
        stream.read_next_batch()


def test_what_cannot_be_opened_is_said_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.pcap cannot be opened"):
        rxo.packets(tmp_path / "absent.pcap")
    with pytest.raises(TypeError, match="is no path"):
        rxo.packets(b"")
    with pytest.raises(rxo.UsageError, match="no capture"):
        rxo.packets([])


def test_a_pipe_is_read_once(capture, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    feeder = threading.Thread(target=pipe.write_bytes, args=(capture,), daemon=True)
    feeder.start()
    assert reader(rxo.packets(pipe)).read_all().num_rows == 320
    feeder.join()
