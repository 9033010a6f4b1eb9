"""``packets``: the packets of captures for every reader of Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _paths, _rxo

if TYPE_CHECKING:
    from ._types import Paths


def packets(captures: Paths) -> _rxo.Packets:
    """Returns the packets of captures as a stream of Arrow tables: a row for each packet, in the files' order.

    captures: a path, a directory, a name with ``*``, or a list of these.

    ``polars.DataFrame(rxo.packets("a.pcap"))`` has them all in memory; ``pyarrow.RecordBatchReader.from_stream`` takes
    one table after the other, for captures that are larger. Columns of headers are null for packets without them;
    ``data`` has the captured bytes. A damaged capture ends the stream with an error, after the packets before the damage.

    Raises UsageError without captures, CaptureError if the first file cannot be read.
    """
    return _rxo.Packets(_paths.paths(captures))
