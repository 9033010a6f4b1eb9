"""Receive offload in user space: what coalescing does to network traffic.

``analyze`` predicts from captures what a host would gain by coalescing (GRO, LRO, RSC)::

    import polars, rxo

    study = rxo.analyze("trace.pcapng.zst", poll=["time:50us", "time:200us"])
    print(study)
    polars.DataFrame(study.flows())
    study.report("report.html")

Captures are pcap or pcapng, plain, gzip or zstd. Tables are Arrow; every reader of the Arrow PyCapsule
interface takes them without a copy. The interpreter lock is released while packets are processed, and
Ctrl-C ends a long call.
"""

from ._analyze import analyze
from ._errors import CaptureError, Error, PartialWarning, UsageError
from ._rxo import Study, Table, __version__

#: A study of a part of the traffic is a study.
Part = Study

__all__ = [
    "CaptureError",
    "Error",
    "Part",
    "PartialWarning",
    "Study",
    "Table",
    "UsageError",
    "__version__",
    "analyze",
]
