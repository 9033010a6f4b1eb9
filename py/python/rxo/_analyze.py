"""``analyze``: defaults and types for the native function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Sequence

from . import _paths, _progress, _rxo

if TYPE_CHECKING:
    from ._types import Captures, Costs


def analyze(
    captures: Captures,
    *,
    poll: str | Sequence[str] = "time:50us",
    policy: str = "linux-gro",
    settings: Mapping[str, object] | None = None,
    sweep: str | Sequence[str] = (),
    flow: str | None = None,
    checksum: str = "auto",
    dedup: bool = False,
    costs: Costs | None = None,
    advise: bool = True,
    part: tuple[int, int] | None = None,
    place: tuple[int, int, int] | None = None,
    progress: bool | None = None,
) -> _rxo.Study:
    """Predicts the effect of coalescing on the traffic in captures.

    captures: a path, a directory, a name with ``*``, bytes, a file opened in mode ``"rb"``, or several of these.
    poll: when the host polls: ``time:T`` after the first packet, ``host:T`` for a host that is busy for T
        with each packet, ``packets:N``. If there are several, all are tried, and the first is the chosen one.
    policy: the name of a profile; ``rxo policies`` lists them.
    settings: fields of the policy to change, such as ``{"max_segments": 16, "hold": "100us"}``.
    sweep: other values to try: ``"flows=1..8"``, ``"hold=packets:4..64*2"``. At most two, including
        the poll rules if there are several.
    flow: which packets count: a filter of tcpdump, such as ``"dst 10.0.0.1 and port 445"``. Needs libpcap.
    checksum: ``auto`` (accept those left to the sender's card, and those of cut packets), ``verify``,
        ``partial`` (refuse those of cut packets) or ``trust``.
    dedup: whether to leave out packets that the capture has twice, as from a mirror port.
    costs: what receiving costs, from which the decision is computed: text such as
        ``"packet=800ns,byte=0.3ns,coalesce=30ns"``, the path of a file of ``rxo calibrate --save``, or a dictionary such
        as ``{"packet_ns": 800, "byte_ns": 0.3, "coalesce_ns": 30}``. Without, usual costs are assumed.
    advise: whether to try other settings for advice; without, it is faster.
    part: ``(n, m)`` studies the n-th of m parts of these files (paths), cut at pauses. ``Study.merge`` of all
        gives the whole.
    place: ``(series, number, count)`` says that this capture is one of a series of so many, number 0 the first,
        which continue one another; all have the series' number. ``Study.merge`` gives the whole.
    progress: whether to show a bar with ``tqdm``, if it is installed. By default a terminal or a notebook shows one
        after a second.

    Raises UsageError for an invalid argument, CaptureError if no capture can be read. If a capture is
    damaged, warns with PartialWarning; ``Study.partial`` says why. So it is with a ``part`` or a ``place`` none of
    whose captures can be read: it is a part without packets.
    """
    inputs = _paths.inputs(captures)
    with _progress.bar(inputs, progress, part is not None) as told:
        return _rxo.analyze(
            inputs,
            poll=poll if isinstance(poll, str) else list(poll),
            policy=policy,
            settings=None if settings is None else dict(settings),
            sweep=sweep if isinstance(sweep, str) else list(sweep),
            flow=flow,
            checksum=checksum,
            dedup=dedup,
            costs=costs,
            advise=advise,
            part=part,
            place=place,
            progress=told,
        )
