"""The parts of a study: decision, traffic, notes, costs; the page, and what a notebook shows."""

import json
import pickle

import jsonschema
import pytest
from generated import FILES, ROOT

import rxo
import traffic

SCHEMA = json.loads((ROOT / "docs/analyze.schema.json").read_text())


def test_the_decision_is_that_of_the_report(capture):
    study = rxo.analyze(capture)
    decision = study.decision
    assert decision.sentence in str(study)
    assert decision.deliveries == decision.packets - study.eliminated
    assert decision.fewer_packets == pytest.approx(study.eliminated / study.packets)
    assert decision.costs.packet_ns == 800
    assert isinstance(decision.is_worth_it, bool)


def test_traffic_and_notes_are_those_of_the_report(capture):
    study = rxo.analyze(capture)
    assert (study.traffic.packets, study.traffic.flows, study.traffic.data_segments) == (320, 2, 320)
    assert study.traffic.checksums.right == 320
    twice = rxo.analyze(traffic.pcap(frame for frame in traffic.frames() for _ in range(2)))
    assert twice.traffic.duplicate_packets == 320
    assert any("twice" in note for note in twice.notes)


def test_duplicates_are_left_out_on_request(capture):
    twice = traffic.pcap(frame for frame in traffic.frames() for _ in range(2))
    once = rxo.analyze(twice, dedup=True)
    assert (once.traffic.packets, once.traffic.are_duplicates_left_out) == (320, True)


@pytest.mark.parametrize("form", ["text", "file", "dictionary", "costs", "loaded"])
def test_costs_are_text_or_a_file_or_a_dictionary(capture, tmp_path, form):
    saved = {"costs": {"packet_ns": 1600, "byte_ns": 0.5, "coalesce_ns": 30}, "machine": {"cpu": "A Processor"}}
    file = tmp_path / "costs.json"
    file.write_text(json.dumps(saved))
    costs = {
        "text": "packet=1600ns,byte=0.5ns,coalesce=30ns",
        "file": file,
        "dictionary": saved["costs"],
        "costs": rxo.Costs(1600.0, 0.5, 30.0, 0.0, 0.0, 0.0),
        "loaded": saved,
    }[form]
    study = rxo.analyze(capture, costs=costs)
    assert (study.decision.costs.packet_ns, study.decision.costs.byte_ns) == (1600, 0.5)
    assert ("A Processor" in study.decision.costs_from) == (form in ("file", "loaded"))
    assert json.loads(study.json())["projection"]["packet_ns"] == 1600
    assert study.decision.cores_without > rxo.analyze(capture).decision.cores_without
    # They stay with the study, and can be changed.
    assert pickle.loads(pickle.dumps(study)).decision == study.decision
    assert rxo.analyze(capture).with_costs(costs).decision == study.decision
    assert study.merge(rxo.analyze(traffic.pcap(traffic.frames(3)))).decision.costs == study.decision.costs


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ("fast", "costs: fast: No such file"),
        ({"packet": 1}, "costs: missing field `packet_ns`"),
        ("packet=1ns", "costs: packet=1ns: byte=TIME is missing"),
    ],
)
def test_invalid_costs_are_named(capture, costs, message):
    with pytest.raises(rxo.UsageError, match=message):
        rxo.analyze(capture, costs=costs)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"costs": "packet=1us,byte=0.5ns"},
        {"poll": ["time:50us", "host:1us"], "sweep": "flows=1,8"},
        {"advise": False, "flow": "port 443", "dedup": True},
    ],
)
def test_the_json_is_that_of_its_schema(capture, arguments):
    found = json.loads(rxo.analyze(capture, **arguments).json())
    jsonschema.validate(found, SCHEMA)
    assert found["version"] == SCHEMA["properties"]["version"]["const"]


def test_the_json_of_damage_and_of_nothing_is_that_of_its_schema(capture):
    with pytest.warns(rxo.PartialWarning):
        jsonschema.validate(json.loads(rxo.analyze(capture[:-100]).json()), SCHEMA)
    jsonschema.validate(json.loads(rxo.analyze(traffic.pcap([])).json()), SCHEMA)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_made_from_the_types_is_up_to_date(file):
    assert file.read_text() == FILES[file](), "run: python py/tests/generated.py"


def test_the_page_is_text_and_a_notebook_shows_its_figures(capture):
    study = rxo.analyze(capture)
    assert study.html().lstrip().startswith("<!DOCTYPE html>")
    shown = study._repr_html_()
    assert shown.startswith('<div class="rxo-study">') and shown.count("<div") == shown.count("</div>")
    assert shown.count("<svg") == 4, "two figures in two sizes"
    assert study.decision.sentence.split(" ", 1)[0] in shown
    assert "<script" not in shown and "<body" not in shown


def test_a_name_cannot_leave_its_place(capture, tmp_path):
    path = tmp_path / "<img src=x>.pcap"
    path.write_bytes(capture[:-100])
    with pytest.warns(rxo.PartialWarning):
        study = rxo.analyze(path)
    for shown in (study.html(), study._repr_html_(), study.sources()._repr_html_()):
        assert "<img" not in shown
        assert "&#60;img" in shown or "&lt;img" in shown


@pytest.mark.parametrize("flows", [-1, 2**64])
def test_a_number_of_flows_that_cannot_be_is_a_value_error(capture, tmp_path, flows):
    study = rxo.analyze(capture)
    for call in (study.html, lambda flows: study.report(tmp_path / "r.html", flows=flows)):
        with pytest.raises(ValueError, match=f"^flows {flows}: give 0 to 18446744073709551615"):
            call(flows=flows)
    assert not list(tmp_path.iterdir())
    study.html(flows=2**64 - 1)
