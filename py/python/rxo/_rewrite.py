"""``coalesce``, ``expand`` and ``verify``, and the classes of their results."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Mapping

from . import _rxo

if TYPE_CHECKING:
    from ._types import Capture


@dataclass(frozen=True)
class Coalesced:
    """The totals of ``coalesce``."""

    #: Packets read.
    packets: int
    #: Packets written: single ones and aggregates.
    deliveries: int
    #: Aggregates among the deliveries.
    aggregates: int
    #: Packets in the aggregates.
    aggregated_packets: int
    #: Number of pure ACKs that the policy aggregates, and that are written one by one.
    single_acks: int
    #: Captured bytes of the packets read.
    captured_bytes: int
    #: Bytes of notes about properties that aggregates cannot express.
    remembered_bytes: int
    #: Number of early flushes of everything, because a packet had waited for too many others.
    early_flushes: int
    #: Packets of interfaces beyond the maximum number of engines, which passed unchanged.
    unserved_packets: int


@dataclass(frozen=True)
class Expanded:
    """The totals of ``expand``."""

    #: Packets in the coalesced capture.
    packets: int
    #: Aggregates among the packets of the coalesced capture.
    aggregates: int
    #: Original packets written.
    originals: int
    #: Original packets that were read and not written, because an earlier packet is missing.
    left_out: int
    #: True if the original capture had not been read to its end when it was coalesced.
    original_was_partial: bool


@dataclass(frozen=True)
class Difference:
    """The first difference of one flow."""

    #: The flow: protocol, addresses and ports.
    flow: str
    #: The number of the capture interface, from 0.
    interface: int
    #: The kind of the difference, such as ``"payload"`` or ``"acknowledgement"``.
    kind: str
    #: Payload bytes of the flow before the difference.
    stream_offset: int
    #: The packet in the first capture, from 1; ``None`` if it has no counterpart.
    packet_a: int | None
    #: The packet in the second capture, from 1; ``None`` if it has no counterpart.
    packet_b: int | None
    #: The packet or field of the first capture, as text.
    a: str
    #: The packet or field of the second capture, as text.
    b: str


@dataclass(frozen=True)
class Verdict:
    """The result of ``verify``. True if no difference was found, and nothing was undecided."""

    equal: bool
    packets_a: int
    packets_b: int
    flows: int
    equal_payload_bytes: int
    #: Segments inside an aggregate without a note, whose ACK, window and options could not be compared.
    forgotten_segments: int
    differences: tuple[Difference, ...]
    #: UDP flows with equal bytes in packets that may each be several datagrams, of unknown length.
    undecided: tuple[Difference, ...]
    #: True if the comparison stopped because enough flows differ.
    stopped: bool
    #: Flows that were forgotten while no difference was found in them, because there were too many.
    forgotten_flows: int

    def __bool__(self) -> bool:
        return self.equal


def coalesce(
    capture: Capture,
    output: str | os.PathLike[str],
    *,
    poll: str = "packets:64",
    policy: str = "linux-gro",
    settings: Mapping[str, object] | None = None,
    checksum: str = "auto",
) -> Coalesced:
    """Writes a capture as the host's stack would see it: pcapng, each aggregate as one packet.

    The arguments are those of ``analyze``. ``expand`` restores the original. The file is either complete or absent.
    """
    figures = _rxo.coalesce(
        capture,
        output,
        poll=poll,
        policy=policy,
        settings=None if settings is None else dict(settings),
        checksum=checksum,
    )
    return Coalesced(**json.loads(figures))


def expand(capture: Capture, output: str | os.PathLike[str]) -> Expanded:
    """Restores the original of a coalesced capture, byte for byte.

    The extension of ``output`` chooses the format, ``.pcap`` or ``.pcapng``; otherwise it is that of the original.
    Raises CaptureError if the capture was not written by ``coalesce``, or was changed since.
    """
    return Expanded(**json.loads(_rxo.expand(capture, output)))


def verify(a: Capture, b: Capture, *, window_mb: int = 64) -> Verdict:
    """Compares the streams of two captures, flow by flow. An aggregate equals the segments that it was made of.

    ``window_mb`` limits the memory of packets that wait for their counterpart in the other capture.
    """
    found = json.loads(_rxo.verify(a, b, window_mb=window_mb))
    for name in ("differences", "undecided"):
        found[name] = tuple(Difference(**each) for each in found[name])
    return Verdict(**found)
