"""Receive offload in user space: what coalescing does to network traffic.

``analyze`` predicts from captures what a host would gain by coalescing (GRO, LRO, RSC)::

    import polars, rxo

    study = rxo.analyze("trace.pcapng.zst", poll=["time:50us", "time:200us"])
    print(study)
    polars.DataFrame(study.flows())
    study.report("report.html")

``coalesce`` writes a capture as the host's stack would see it, ``expand`` restores the original byte for byte,
``verify`` compares two captures. ``Engine`` is the receive engine itself, for scripts::

    for delivery in rxo.Engine("linux-gro").poll(frames, now_ns=0):
        print(delivery.kind, len(delivery.data), len(delivery.frames))

Captures are pcap or pcapng, plain, gzip or zstd. Tables are Arrow; every reader of the Arrow PyCapsule
interface takes them without a copy. The interpreter lock is released while packets are processed, and
Ctrl-C ends a long call.
"""

from ._analyze import analyze
from ._errors import CaptureError, Error, PartialWarning, UsageError
from ._rewrite import Coalesced, Difference, Expanded, Verdict, coalesce, expand, verify
from ._rxo import Delivery, Engine, Study, Table, __version__

#: A study of a part of the traffic is a study.
Part = Study

__all__ = [
    "CaptureError",
    "Coalesced",
    "Delivery",
    "Difference",
    "Engine",
    "Error",
    "Expanded",
    "Part",
    "PartialWarning",
    "Study",
    "Table",
    "UsageError",
    "Verdict",
    "__version__",
    "analyze",
    "coalesce",
    "expand",
    "verify",
]
