"""`rxo.coalesce`, `rxo.expand` and `rxo.verify` undo and check each other."""

from pathlib import Path

import pytest

import rxo


@pytest.fixture
def coalesced(path, tmp_path):
    output = tmp_path / "coalesced.pcapng"
    rxo.coalesce(path, output)
    return output


def test_a_capture_is_coalesced_and_comes_back(path, tmp_path):
    coalesced, restored = tmp_path / "c.pcapng", tmp_path / "r.pcap"
    done = rxo.coalesce(path, coalesced)
    assert (done.packets, done.deliveries, done.aggregates) == (320, 20, 20)
    assert coalesced.stat().st_size < path.stat().st_size
    back = rxo.expand(coalesced, restored)
    assert (back.originals, back.packets, back.original_was_partial) == (320, 20, False)
    assert restored.read_bytes() == path.read_bytes()


def test_the_coalesced_capture_says_the_same(path, coalesced):
    verdict = rxo.verify(path, coalesced)
    assert verdict and verdict.differences == ()
    assert verdict.equal_payload_bytes == 320 * 1448


def test_settings_are_those_of_analyze(path, tmp_path):
    done = rxo.coalesce(path, tmp_path / "c.pcapng", settings={"max_segments": 4})
    assert done.aggregates == 80


def test_a_changed_byte_is_a_difference(path, capture):
    changed = bytearray(capture)
    changed[-1] ^= 1
    verdict = rxo.verify(path, changed)
    assert not verdict
    (difference,) = verdict.differences
    assert difference.kind == "payload"
    assert "10.0.0.1:1001" in difference.flow


def test_what_cannot_be_is_an_error_and_leaves_no_file(path, tmp_path):
    with pytest.raises(rxo.CaptureError, match="was not written by `rxo coalesce`"):
        rxo.expand(path, tmp_path / "r.pcap")
    with pytest.raises(rxo.CaptureError, match="cannot be written: No such file"):
        rxo.coalesce(path, tmp_path / "no" / "c.pcapng")
    for window_mb in (0, -1, 2**64):
        with pytest.raises(rxo.UsageError, match=f"window_mb {window_mb}: give 1 to 1048576"):
            rxo.verify(path, path, window_mb=window_mb)
    with pytest.raises(rxo.UsageError, match="poll often is invalid"):
        rxo.coalesce(path, tmp_path / "c.pcapng", poll="often")
    assert [each.name for each in tmp_path.iterdir()] == ["trace.pcap"]


def test_a_device_is_written_and_stays_a_device(path):
    rxo.coalesce(path, "/dev/null")
    assert Path("/dev/null").is_char_device()


def test_a_damaged_capture_is_coalesced_up_to_the_damage(capture, tmp_path):
    with pytest.warns(rxo.PartialWarning, match="ends too early"):
        done = rxo.coalesce(capture[:-100], tmp_path / "c.pcapng")
    assert done.packets == 319


def test_a_capture_is_not_replaced_by_what_is_made_of_it(path, capture, tmp_path):
    link = tmp_path / "link.pcapng"
    link.symlink_to(path)
    for output in (path, link):
        for rewrite in (rxo.coalesce, rxo.expand):
            with pytest.raises(rxo.UsageError, match="is the same file as .*: name another to write"):
                rewrite(path, output)
    assert path.read_bytes() == capture
