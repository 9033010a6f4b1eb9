"""Receive offload in user space: what coalescing does to network traffic.

``analyze`` predicts from captures what a host would gain by coalescing (GRO, LRO, RSC)::

    import polars, rxo

    study = rxo.analyze("trace.pcapng.zst", poll=["time:50us", "time:200us"])
    print(study.decision.sentence)                # print(study) shows everything
    polars.DataFrame(study.flows())
    study.report("report.html")

``packets`` gives the packets of captures to every reader of Arrow::

    polars.DataFrame(rxo.packets("captures/*.pcap"))

``coalesce`` writes a capture as the host's stack would see it, ``expand`` restores the original byte for byte,
``verify`` compares two captures. ``Engine`` is the receive engine itself, for scripts::

    for delivery in rxo.Engine("linux-gro").poll(frames, now_ns=0):
        print(delivery.kind, len(delivery.data), len(delivery.frames))

``compare`` runs several policies over the same captures. A policy may be a name, a TOML file, or rules written in
Python, a class derived from ``Rules``, which ``RuleEngine`` runs::

    print(rxo.compare("trace.pcapng", policies=["all", "mine.toml", MyRules()]))

Captures are pcap or pcapng, plain or compressed (gzip, zstd, xz, lz4, bzip2). Tables are Arrow; every reader of the Arrow PyCapsule
interface takes them without a copy. The interpreter lock is released while packets are processed, and
Ctrl-C ends a long call.
"""

from ._analyze import analyze
from ._compare import Compared, Rules, compare
from ._errors import (
    CaptureError,
    CaptureNotFoundError,
    CapturePermissionError,
    DamagedCaptureError,
    Error,
    PartialWarning,
    UsageError,
)
from ._packets import packets
from ._report import Checksums, Costs, Decision, Encapsulation, Receiver, SenderOffload, Traffic
from ._rewrite import Coalesced, Difference, Expanded, Verdict, coalesce, expand, verify
from ._rxo import Delivery, Engine, Flow, Packets, RuleEngine, Run, Segment, Study, Table, __version__

#: A study of a part of the traffic is a study.
Part = Study

__all__ = [
    "CaptureError",
    "CaptureNotFoundError",
    "CapturePermissionError",
    "Checksums",
    "Coalesced",
    "Compared",
    "Costs",
    "DamagedCaptureError",
    "Decision",
    "Delivery",
    "Difference",
    "Encapsulation",
    "Engine",
    "Error",
    "Expanded",
    "Flow",
    "Packets",
    "Part",
    "PartialWarning",
    "Receiver",
    "RuleEngine",
    "Rules",
    "Run",
    "Segment",
    "SenderOffload",
    "Study",
    "Table",
    "Traffic",
    "UsageError",
    "Verdict",
    "__version__",
    "analyze",
    "coalesce",
    "compare",
    "expand",
    "packets",
    "verify",
]
