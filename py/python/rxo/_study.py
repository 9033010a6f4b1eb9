"""Makes the objects of ``Study.decision`` and ``Study.traffic``, which the native module gives as dictionaries."""

from __future__ import annotations

from typing import Any, Dict

from ._report import Checksums, Costs, Decision, Encapsulation, Receiver, SenderOffload, Traffic


def decision(found: Dict[str, Any]) -> Decision:
    found["costs"] = Costs(**found["costs"])
    found["receivers"] = tuple(Receiver(**each) for each in found["receivers"])
    return Decision(**found)


def traffic(found: Dict[str, Any]) -> Traffic:
    checksums = found["checksums"]
    checksums["sender_offload"] = tuple(SenderOffload(**each) for each in checksums["sender_offload"])
    found["checksums"] = Checksums(**checksums)
    found["encapsulations"] = tuple(Encapsulation(**each) for each in found["encapsulations"])
    return Traffic(**found)
