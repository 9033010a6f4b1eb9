import dask.distributed
from compared import figures


def test_the_documented_lines_give_the_whole(captures, whole, documented):
    with dask.distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster, cluster.get_client():
        assert figures(documented("On Dask")(captures, together=2)) == whole
