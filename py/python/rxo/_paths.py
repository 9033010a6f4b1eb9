"""The captures that a program names: files, directories, and names with ``*``."""

from __future__ import annotations

import errno
import glob
import os
from typing import TYPE_CHECKING, Any, Iterable, List, Union

from ._errors import UsageError, of_file

if TYPE_CHECKING:
    from ._types import Captures, Paths

_EXAMPLE = "give a path, a directory, a name with *, or a list of these"


def inputs(captures: Captures) -> List[Any]:
    """Returns each capture: paths of files, and bytes and open files as they are.

    Raises UsageError if there is none, CaptureNotFoundError if a directory or a name with ``*`` has no file.
    """
    found: List[Any] = []
    for capture in _each(captures):
        found += files(capture) if isinstance(capture, (str, os.PathLike)) else [capture]
    if not found:
        raise UsageError(f"no capture: {_EXAMPLE}")
    return found


def paths(captures: Paths) -> List[str]:
    """Returns the paths of the captures, as ``inputs`` does, of which none may be in memory."""
    found = inputs(captures)
    for capture in found:
        if not isinstance(capture, str):
            raise TypeError(f"{type(capture)} is no path: {_EXAMPLE}")
    return found


def files(path: Union[str, os.PathLike[str]]) -> List[str]:
    """Returns the files that a path stands for, in the order of their names; hidden ones only if they are named."""
    name = os.fspath(path)
    if os.path.isdir(name):
        inside = (os.path.join(name, each) for each in os.listdir(name) if not each.startswith("."))
        found = sorted(each for each in inside if os.path.isfile(each))
        return found or _nothing(f"{name}: the directory has no files", name)
    if os.path.exists(name) or not glob.has_magic(name):
        return [name]
    return sorted(glob.glob(name)) or _nothing(f"{name}: no file has such a name", name)


def _each(captures: Captures) -> Iterable[Any]:
    is_one = isinstance(captures, (str, bytes, bytearray, memoryview, os.PathLike)) or hasattr(captures, "read")
    if is_one:
        return [captures]
    try:
        return iter(captures)  # type: ignore[arg-type]
    except TypeError:
        # The native function says what a capture is.
        return [captures]


def _nothing(message: str, name: str) -> List[str]:
    raise of_file(message, name, errno.ENOENT, False)
