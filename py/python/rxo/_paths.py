"""The captures that a program names: files, directories, and names with ``*``."""

from __future__ import annotations

import errno
import glob
import os
import sys
import warnings
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
        return _inside(name)
    if os.path.exists(name) or not glob.has_magic(name):
        return [name]
    found = sorted(glob.glob(name)) or _nothing(f"{name}: no file has such a name", name)
    return [file for each in found for file in (_inside(each) if os.path.isdir(each) else [each])]


def _inside(folder: str) -> List[str]:
    """Returns the files in a directory, and warns of directories in it, which are not read."""
    inside = sorted(os.path.join(folder, each) for each in os.listdir(folder) if not each.startswith("."))
    found = [each for each in inside if os.path.isfile(each)]
    folders = sum(os.path.isdir(each) for each in inside)
    pattern = os.path.join(folder, "*", "")
    if not found:
        only = f", only directories; give {pattern}" if folders else ""
        _nothing(f"{folder}: the directory has no files{only}", folder)
    if folders:
        what = "a directory in it was" if folders == 1 else f"{folders} directories in it were"
        message = f"{folder}: {what} not read; to read them too, give [{folder!r}, {pattern!r}]"
        warnings.warn(message, stacklevel=_outside())
    return found


def _outside() -> int:
    """Returns the stack level of the first caller outside of this package, which a warning of this module's caller names."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rxo":
        level, frame = level + 1, frame.f_back
    return level


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
