"""Tasks without an engine."""

import pickle
import random

import pytest
from compared import figures

import rxo
import rxo.cluster


def test_tasks_in_any_order_give_the_whole(captures, whole):
    tasks = rxo.cluster.tasks(captures)
    studies = [pickle.loads(pickle.dumps(rxo.cluster.count(task))) for task in tasks]
    random.Random(1).shuffle(studies)
    assert figures(rxo.cluster.merge(studies)) == whole


def test_parts_of_files_give_the_whole(captures, whole):
    tasks = rxo.cluster.tasks(captures, parts=7)
    total = rxo.cluster.merge(rxo.cluster.count(task) for task in tasks)
    assert figures(total) == whole


def test_names_and_folders_stand_for_files(captures, whole):
    folder = captures[0].rsplit("/", 1)[0]
    for name in (folder, folder + "/*.pcap"):
        assert [task.files for task in rxo.cluster.tasks(name)] == [[path] for path in captures]


def test_urls_are_read_through_fsspec(captures, whole):
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for path in captures:
        store.put(path, "/bucket/" + path.rsplit("/", 1)[1])
    tasks = rxo.cluster.tasks("memory://bucket/*.pcap")
    total = rxo.cluster.merge(rxo.cluster.count(task) for task in tasks)
    assert by_file_name(figures(total)["flows"]) == by_file_name(whole["flows"])
    assert figures(total)["flows"][0]["first_file"] == "memory:///bucket/0.pcap"
    assert figures(total)["sources"][0]["name"] == "memory:///bucket/0.pcap"


def by_file_name(flows):
    """The flows, their captures without the folder or the bucket that these lie in."""
    ends = ("first_file", "last_file")
    return [flow | {end: flow[end].rsplit("/", 1)[1] for end in ends} for flow in flows]


def test_nothing_and_parts_of_urls_are_refused():
    with pytest.raises(rxo.UsageError, match="no capture"):
        rxo.cluster.tasks([])
    with pytest.raises(rxo.UsageError, match="URLs are read whole"):
        rxo.cluster.tasks("s3://bucket/a.pcap", parts=2)
