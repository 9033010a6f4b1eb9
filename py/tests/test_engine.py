"""`rxo.Engine` in scripts."""

import pytest

import rxo
import traffic


def burst(count=8, flow=0):
    return [
        traffic.segment(1000 + flow, n * traffic.SEGMENT_BYTES, bytes([n]) * traffic.SEGMENT_BYTES, ident=n)
        for n in range(count)
    ]


def test_segments_of_a_poll_become_one_packet():
    frames = burst()
    engine = rxo.Engine()
    (delivery,) = engine.poll(frames, 0)
    assert (delivery.kind, delivery.gso_size) == ("aggregate", traffic.SEGMENT_BYTES)
    assert len(delivery.data) == 54 + 8 * traffic.SEGMENT_BYTES
    assert delivery.data[54:] == b"".join(frame[54:] for frame in frames)
    # The very objects that were given.
    assert all(given is back for given, back in zip(frames, delivery.frames))
    # The sum over a right checksum is zero.
    assert traffic.checksum(delivery.data[14:34]) == 0


def test_what_is_no_tcp_comes_as_it_came():
    engine = rxo.Engine("linux-gro", link="ip")
    (delivery,) = engine.poll([b"hello"], 0)
    assert (delivery.kind, delivery.data, delivery.frames, delivery.gso_size) == ("frame", b"hello", [b"hello"], None)


def test_what_is_held_has_a_deadline():
    engine = rxo.Engine(settings={"hold": "100us"})
    assert engine.poll_at is None
    assert engine.poll(burst(2), 1_000) == []
    assert engine.poll_at == 101_000
    assert engine.on_timeout(100_999) == []
    (delivery,) = engine.on_timeout(101_000)
    assert len(delivery.frames) == 2


def test_frames_can_be_pushed_one_by_one_and_flushed():
    engine = rxo.Engine(batch=4)
    for frame in burst(3):
        assert engine.push([frame], 0) == []
    (delivery,) = engine.flush(0)
    assert len(delivery.frames) == 3
    counters = engine.counters()
    assert (counters["frames"], counters["aggregates"]) == (3, 1)
    assert counters["flushed"] == {"shutdown": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "lro"}, "policy: there is no policy 'lro'"),
        ({"link": "wifi"}, "link wifi is invalid: ethernet or ip"),
        ({"batch": 0}, "batch 0: give 1 to 32768"),
        ({"batch": -1}, "batch -1: give 1 to 32768"),
        ({"batch": 2**70}, "batch 1180591620717411303424: give 1 to 32768"),
    ],
)
def test_an_invalid_argument_is_named(arguments, message):
    with pytest.raises(rxo.UsageError, match=message):
        rxo.Engine(**arguments)


@pytest.mark.parametrize("engine", [rxo.Engine(), rxo.RuleEngine(rxo.Rules())])
@pytest.mark.parametrize("now_ns", [-1, 2**64])
def test_a_time_that_cannot_be_is_a_value_error(engine, now_ns):
    calls = [
        lambda: engine.poll([], now_ns),
        lambda: engine.push([], now_ns),
        lambda: engine.on_timeout(now_ns),
        lambda: engine.flush(now_ns),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"^now_ns {now_ns}: give 0 to 18446744073709551615"):
            call()
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        engine.flush("now")
