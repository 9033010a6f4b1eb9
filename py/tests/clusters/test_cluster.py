"""Tasks without an engine."""

import os
import pathlib
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


@pytest.mark.parametrize("parts", [None, 7])
@pytest.mark.parametrize("fault", ["foreign", "absent"])
def test_a_file_that_cannot_be_read_is_a_part_with_its_reason(captures, tmp_path, parts, fault):
    """One process and a cluster say the same, and the driver is warned."""
    bad = tmp_path / "bad.pcap"
    if fault == "foreign":
        bad.write_bytes(b"no capture" * 100_000)
    files = [*captures[:2], str(bad), *captures[2:]]
    with pytest.warns(rxo.PartialWarning, match="bad.pcap"):
        local = rxo.analyze(files)
    with pytest.warns(rxo.PartialWarning, match="bad.pcap"):
        studies = [rxo.cluster.count(task) for task in rxo.cluster.tasks(files, parts=parts)]
    total = rxo.cluster.merge(studies)
    found, expected = figures(total), figures(local)
    # Some of these cuts are in bursts, whose polls are then others.
    outcomes = [each.pop("outcome") for each in (found, expected)] if parts else []
    assert found == expected
    assert len({outcome["eliminated"] for outcome in outcomes}) <= 1
    assert total.sources()["damage"][2] == local.partial
    with pytest.warns(rxo.PartialWarning, match="bad.pcap"):
        assert rxo.cluster.checked(total) is total


def test_a_damaged_file_is_the_same_everywhere(captures, tmp_path):
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(pathlib.Path(captures[1]).read_bytes()[:-100])
    files = [captures[0], str(damaged), *captures[2:]]
    with pytest.warns(rxo.PartialWarning, match="damaged.pcap ends too early"):
        local = rxo.analyze(files)
        total = rxo.cluster.merge(rxo.cluster.count(task) for task in rxo.cluster.tasks(files))
    assert figures(total) == figures(local)


def test_without_any_readable_file_the_driver_raises(tmp_path):
    tasks = rxo.cluster.tasks([str(tmp_path / "absent.pcap")])
    with pytest.warns(rxo.PartialWarning):
        study = rxo.cluster.merge(rxo.cluster.count(task) for task in tasks)
    with pytest.raises(rxo.CaptureError, match="absent.pcap"):
        rxo.cluster.checked(study)


def test_costs_reach_the_sum(captures):
    costs = {"packet_ns": 1600, "byte_ns": 0.5, "coalesce_ns": 30}
    tasks = rxo.cluster.tasks(captures)
    studies = [pickle.loads(pickle.dumps(rxo.cluster.count(task, costs=costs))) for task in tasks]
    assert rxo.cluster.merge(studies).decision.costs.packet_ns == 1600


def test_names_of_hosts_are_refused_where_each_machine_would_look_them_up(captures):
    for task in (rxo.cluster.tasks(captures)[0], rxo.cluster.tasks(captures, parts=2)[0]):
        with pytest.raises(rxo.UsageError, match="localhost may be another address"):
            rxo.cluster.count(task, flow="dst localhost and port http")


def test_nothing_and_parts_of_urls_are_refused():
    with pytest.raises(rxo.UsageError, match="no capture"):
        rxo.cluster.tasks([])
    with pytest.raises(rxo.UsageError, match="URLs are read whole"):
        rxo.cluster.tasks("s3://bucket/a.pcap", parts=2)


def test_a_url_that_cannot_be_read_is_a_part_with_its_reason(captures):
    fsspec = pytest.importorskip("fsspec")

    class Store(type(fsspec.filesystem("memory"))):
        """Some stores have exceptions of their own."""

        protocol = "lost"

        def _open(self, path, **options):
            raise RuntimeError("the bucket is locked")

    fsspec.register_implementation("lost", Store, clobber=True)
    fsspec.filesystem("memory").put(captures[0], "/bucket/0.pcap")
    for url, why in (("memory://bucket/absent.pcap", "FileNotFoundError"), ("lost://bucket/1.pcap", "the bucket is locked")):
        tasks = rxo.cluster.tasks(["memory://bucket/0.pcap", url])
        with pytest.warns(rxo.PartialWarning, match=url):
            total = rxo.cluster.merge(rxo.cluster.count(task) for task in tasks)
        assert why in total.sources()["damage"][1]
        assert total.packets == rxo.analyze(captures[0]).packets


def test_names_that_stand_for_nothing_and_no_parts_are_refused(captures):
    pytest.importorskip("fsspec")
    with pytest.raises(FileNotFoundError, match=r"memory://nowhere/\*.pcap: no file has such a name"):
        rxo.cluster.tasks([captures[0], "memory://nowhere/*.pcap"])
    for parts in (0, -1):
        with pytest.raises(rxo.UsageError, match=f"parts {parts}: give a number from 1"):
            rxo.cluster.tasks(captures, parts=parts)


def test_a_name_that_is_no_utf8_is_a_task(captures, tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.pcap")
    os.link(captures[0], odd)
    (task,) = rxo.cluster.tasks(odd)
    assert rxo.cluster.count(task).packets == rxo.analyze(captures[0]).packets
