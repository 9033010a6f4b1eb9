"""``compare``, and ``Rules``, the base of policies that are written in Python."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Mapping, Sequence, Tuple, Union

from . import _paths, _rxo

if TYPE_CHECKING:
    from ._types import Captures

    #: A policy of ``compare``.
    Policy = Union[str, "os.PathLike[str]", "Rules"]

#: A placement: ``"last"``, ``"in-sequence"``, ``("ahead", reason)`` or ``("bypass", flush reason, bypass reason)``.
Placement = Union[str, Tuple[str, str], Tuple[str, str, str]]


class Rules:
    """Rules of receive coalescing. Each method that returns ``NotImplemented`` leaves the decision to ``policy``.

    Reasons are names of the counters of ``Engine.counters``. The engine keeps its promises whatever the methods
    return: see docs/policies.md. Slow: Python decides about every segment.
    """

    #: The name in tables.
    name = "python"
    #: The built-in policy that supplies limits and default decisions, and changes of its fields.
    policy = "linux-gro"
    settings: Mapping[str, object] = {}
    #: The greatest number of runs that a flow holds.
    most_runs = 64
    #: True if a flow that holds nothing is remembered until it is evicted.
    remembers = False

    def candidate(self, segment: _rxo.Segment) -> Any:
        """Returns the bypass reason for which a segment is not coalesced; ``None`` if it may be."""
        return NotImplemented

    def verdict(self, flow: _rxo.Flow, segment: _rxo.Segment) -> Any:
        """Returns where a segment goes, a ``Placement``."""
        return NotImplemented

    def close(self, run: _rxo.Run, last: _rxo.Segment, next: _rxo.Segment | None) -> Any:
        """Returns the flush reason for which a run takes no more segments, or not ``next``; ``None`` if it does."""
        return NotImplemented

    def hold(self, flow: _rxo.Flow, moment: str, now_ns: int) -> Any:
        """Returns how much is delivered: ``(runs, flush reason)``, or nothing: ``None``, or when to ask again.

        moment: ``"placed"``, ``"packet-window"``, ``"end-of-poll"`` or ``"due"``.
        """
        return NotImplemented


@dataclass(frozen=True)
class Compared:
    """The result of ``compare``. ``print`` shows it as the command ``rxo compare`` does."""

    #: A dictionary for each policy, as in the command's ``--json``.
    policies: Tuple[Dict[str, Any], ...]
    #: The number of packets in the captures.
    packets: int
    #: The reason why the table is incomplete (a damaged capture); ``None`` if it is complete.
    partial: str | None
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


def compare(
    captures: Captures,
    *,
    policies: Union[Policy, Sequence[Policy]] = "all",
    poll: str = "time:50us",
    checksum: str = "auto",
    rate: float = 10.0,
) -> Compared:
    """Compares the effect of several policies on the traffic in captures.

    captures: a path, a directory, a name with ``*``, bytes, a file opened in mode ``"rb"``, or several of these.
    policies: names of profiles, ``"juggler"``, ``"all"`` for each of these, paths of TOML files (as text
        they end in ``.toml``), and objects of classes derived from ``Rules``.
    poll, checksum: as for ``analyze``.
    rate: the rate in Gbit/s for which busy cores are predicted.

    Raises UsageError for an invalid argument, CaptureError if no capture can be read, and what a method of
    ``Rules`` raises. If a capture is damaged, warns with PartialWarning; ``Compared.partial`` says why.
    """
    if isinstance(policies, (str, os.PathLike, Rules)):
        policies = [policies]
    text, table = _rxo.compare(
        _paths.inputs(captures), policies=list(policies), poll=poll, checksum=checksum, rate=rate
    )
    found = json.loads(table)
    return Compared(tuple(found["policies"]), found["packets"], found["partial"], text)
