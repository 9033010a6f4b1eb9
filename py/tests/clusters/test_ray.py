import os
import signal
import tempfile

import pytest
import ray
from compared import figures

import rxo
import rxo.cluster
import rxo.ray


@pytest.fixture(scope="module")
def cluster():
    # A short path: it holds sockets.
    with tempfile.TemporaryDirectory(prefix="rxo-ray-", ignore_cleanup_errors=True) as folder:
        ray.init(
            num_cpus=3,
            include_dashboard=False,
            log_to_driver=False,
            _node_ip_address="127.0.0.1",
            _temp_dir=folder,
        )
        yield
        ray.shutdown()


def test_it_gives_the_whole(cluster, captures, whole):
    assert figures(rxo.ray.analyze(captures)) == whole
    assert figures(rxo.ray.analyze(captures, parts=7)) == whole


def test_a_worker_that_is_killed_half_way_costs_nothing(cluster, captures, whole, tmp_path, monkeypatch):
    first, count = str(tmp_path / "killed"), rxo.cluster.count

    def fragile(task, **settings):
        study = count(task, **settings)
        try:
            os.close(os.open(first, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return study
        # Half-way: it has read its part, and nobody has the result.
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(rxo.cluster, "count", fragile)
    assert figures(rxo.ray.analyze(captures, parts=6)) == whole
    assert os.path.exists(first)


def test_what_a_task_raises_is_raised_here(cluster, tmp_path):
    with pytest.raises(rxo.CaptureError, match="nowhere.pcap"):
        rxo.ray.analyze([str(tmp_path / "nowhere.pcap")])
