"""Types of arguments, for type checkers."""

from __future__ import annotations

import os
from typing import Protocol, Sequence, Union


class Readable(Protocol):
    """An open binary file, or any object that can be read like one."""

    def read(self, size: int, /) -> bytes: ...


Capture = Union[str, "os.PathLike[str]", bytes, bytearray, Readable]
Captures = Union[Capture, Sequence[Capture]]
