"""Types of arguments, for type checkers."""

from __future__ import annotations

import os
from typing import Iterable, Mapping, Protocol, Union

from ._report import Costs as _Costs


class Readable(Protocol):
    """An open binary file, or any object that can be read like one."""

    def read(self, size: int, /) -> bytes: ...


Capture = Union[str, "os.PathLike[str]", bytes, bytearray, Readable]
Captures = Union[Capture, Iterable[Capture]]
Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]
Costs = Union[str, "os.PathLike[str]", Mapping[str, object], _Costs]
