"""`rxo.compare`, and rules that are written in Python."""

import gzip
import io
import types

import pytest

import rxo
import traffic


class Juggler(rxo.Rules):
    """Holds segments in the order of the stream until the poll ends."""

    name = "in-order"
    most_runs = 64

    def verdict(self, flow, segment):
        flow.memory = (flow.memory or 0) + 1
        return "in-sequence"

    def hold(self, flow, moment, now_ns):
        if flow.runs and moment == "end-of-poll":
            assert flow.memory >= sum(run.segments for run in flow.runs)
            return len(flow.runs), "end_of_poll"
        return None


def disordered():
    frames = [
        traffic.segment(1000, n * traffic.SEGMENT_BYTES, bytes([n]) * traffic.SEGMENT_BYTES, ident=n)
        for n in range(6)
    ]
    return [frames[at] for at in (0, 2, 1, 5, 3, 4)], frames


def test_rules_in_python_restore_the_order():
    given, ordered = disordered()
    assert len(rxo.Engine().poll(given, 0)) > 2
    engine = rxo.RuleEngine(Juggler())
    (delivery,) = engine.poll(given, 0)
    assert delivery.frames == ordered
    assert engine.poll_at is None
    assert engine.counters()["flushed"] == {"end_of_poll": 1}


def test_rules_that_decide_nothing_are_their_policy():
    class Same(rxo.Rules):
        settings = {"max_segments": 4}

    given = disordered()[1]
    engine = rxo.RuleEngine(Same())
    expected = rxo.Engine(settings={"max_segments": 4}).poll(given, 0)
    assert [each.frames for each in engine.poll(given, 0)] == [each.frames for each in expected]


def test_the_table_has_a_row_for_each_policy(capture, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "linux-gro"\nmax_segments = 4\n')
    compared = rxo.compare(capture, policies=["none,linux-gro", str(mine), Juggler()])
    rows = {row["policy"]: row for row in compared.policies}
    assert list(rows) == ["none", "linux-gro", "mine", "in-order"]
    assert compared.packets == 320
    assert rows["none"]["eliminated"] == 0
    assert rows["linux-gro"]["eliminated"] == rxo.analyze(capture).eliminated
    assert rows["mine"]["eliminated"] < rows["in-order"]["eliminated"]
    assert all(name in str(compared) for name in rows)
    assert len(rxo.compare(capture).policies) == 12


def test_an_exception_of_rules_comes_through_and_no_frame_is_lost():
    class Broken(rxo.Rules):
        def hold(self, flow, moment, now_ns):
            raise PermissionError("the lease is over")

    given = disordered()[1]
    engine = rxo.RuleEngine(Broken())
    with pytest.raises(PermissionError, match="the lease is over"):
        engine.poll(given, 0)
    # Nothing is held any more, so the rules are not asked again.
    frames = [frame for delivery in engine.poll([], 1) for frame in delivery.frames]
    assert frames == given


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("verdict", "first", "verdict returned first; return .last."),
        ("verdict", ("ahead", "soon"), "there is no flush reason 'soon'; take one of end_of_poll"),
        ("candidate", "ugly", "there is no bypass reason 'ugly'; take one of coalescing_off"),
        ("hold", "later", "hold returned later; return None, a time in nanoseconds"),
    ],
)
def test_an_invalid_answer_is_named_with_valid_ones(method, answer, message):
    rules = type("Odd", (rxo.Rules,), {method: lambda self, *arguments: answer})()
    with pytest.raises((TypeError, ValueError), match=message):
        rxo.RuleEngine(rules).poll(disordered()[1], 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policies": "lro"}, "policies: there is no policy 'lro'"),
        ({"policies": "none,none"}, "policies: none: two policies have this name"),
        ({"policies": "absent.toml"}, "policies: absent.toml: No such file"),
        ({"policies": []}, "policies: give at least one"),
        ({"poll": "often"}, "poll often is invalid"),
        ({"rate": -5.0}, "rate -5.0: give a rate up to"),
        ({"rate": 10**400}, "rate 1000.*: give a rate up to"),
        ({"rate": float("nan")}, "rate nan: give a rate up to"),
    ],
)
def test_an_invalid_argument_is_named(capture, arguments, message):
    with pytest.raises(rxo.UsageError, match=message):
        rxo.compare(capture, **arguments)


def test_a_compressed_file_of_python_is_compared(capture):
    """A thread unpacks it, and asks the object for bytes meanwhile."""
    file = io.BytesIO(gzip.compress(capture))
    assert rxo.compare(file, policies="none").packets == 320


def test_an_exception_of_rules_or_ctrl_c_in_them_ends_a_comparison(capture):
    class Broken(rxo.Rules):
        called = 0

        def candidate(self, segment):
            self.called += 1
            raise KeyboardInterrupt

    rules = Broken()
    with pytest.raises(KeyboardInterrupt):
        rxo.compare([capture] * 50, policies=rules)
    assert rules.called == 1


def test_a_path_is_a_policy_wherever_it_leads(capture, tmp_path):
    folder = tmp_path / "a,b"
    folder.mkdir()
    mine = folder / "mine.toml"
    mine.write_text('base = "linux-gro"\n')
    for policies in (mine, [mine]):
        assert rxo.compare(capture, policies=policies).policies[0]["policy"] == "mine"
    with pytest.raises(rxo.UsageError, match="absent.toml: No such file"):
        rxo.compare(capture, policies=tmp_path / "absent.toml")


def test_one_file_of_many_that_is_no_capture_is_said_and_the_others_count(path, tmp_path):
    (tmp_path / "notes.txt").write_text("no capture")
    with pytest.warns(rxo.PartialWarning, match="notes.txt is no capture"):
        compared = rxo.compare(tmp_path, policies="none")
    assert (compared.packets, "notes.txt" in compared.partial) == (320, True)


def test_settings_of_rules_are_any_mapping():
    class Short(rxo.Rules):
        settings = types.MappingProxyType({"max_segments": 2})

    assert [len(each.frames) for each in rxo.RuleEngine(Short()).poll(disordered()[1], 0)] == [2, 2, 2]
    Short.settings = None
    assert [len(each.frames) for each in rxo.RuleEngine(Short()).poll(disordered()[1], 0)] == [6]


@pytest.mark.parametrize("runs", [-1, "many", 10**6, 2**64 - 1])
def test_runs_for_which_there_is_no_memory_are_refused(runs):
    with pytest.raises(rxo.UsageError, match=f"most_runs (is )?{runs}"):
        rxo.RuleEngine(type("Many", (rxo.Rules,), {"most_runs": runs})())
