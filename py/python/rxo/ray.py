"""``rxo.ray.analyze``: ``rxo.analyze`` on a Ray cluster, for more captures than one machine could read."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence, Union

from . import cluster
from ._rxo import Study

#: Studies that one task merges.
_TOGETHER = 16


def analyze(
    captures: Union[str, Sequence[str]],
    *,
    parts: Optional[int] = None,
    storage: Optional[Mapping[str, object]] = None,
    retries: int = 3,
    **settings,
) -> Study:
    """Studies captures on the cluster to which ``ray.init`` has connected; otherwise on this machine.

    captures, parts, storage: as for ``rxo.cluster.tasks``.
    retries: the number of times that a task is repeated if its machine is lost.
    settings: the other keywords of ``rxo.analyze``.
    """
    import ray

    count = ray.remote(max_retries=retries)(cluster.count)
    merge = ray.remote(max_retries=retries)(_merge)
    tasks = cluster.tasks(captures, parts=parts, storage=storage)
    studies = [count.remote(task, **settings) for task in tasks]
    while len(studies) > 1:
        starts = range(0, len(studies), _TOGETHER)
        studies = [merge.remote(*studies[start : start + _TOGETHER]) for start in starts]
    return cluster.checked(ray.get(studies[0]))


def _merge(*studies: Study) -> Study:
    return cluster.merge(studies)
