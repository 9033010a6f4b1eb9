"""The exceptions of rxo. Their messages are those of the command: object, value, remedy."""

from __future__ import annotations

import errno

__all__ = [
    "CaptureError",
    "CaptureNotFoundError",
    "CapturePermissionError",
    "DamagedCaptureError",
    "Error",
    "PartialWarning",
    "UsageError",
]


class Error(Exception):
    """Base of all exceptions of rxo."""


class UsageError(Error, ValueError):
    """An argument is invalid. The message names it and says what would be accepted."""


class CaptureError(Error, OSError):
    """A capture cannot be read, or a file cannot be written. The message names file and remedy.

    ``filename`` is the name of the file, ``errno`` the number of the system's error, if it was one.
    """

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class CaptureNotFoundError(CaptureError, FileNotFoundError):
    """A file or its folder does not exist."""


class CapturePermissionError(CaptureError, PermissionError):
    """The system does not permit reading or writing a file."""


class DamagedCaptureError(CaptureError):
    """A file is no capture, or too damaged to give a result."""


class PartialWarning(UserWarning):
    """A capture is damaged: the result covers only the part before the damage.

    ``warnings.simplefilter("error", rxo.PartialWarning)`` makes it an exception.
    """


_KINDS = {
    errno.ENOENT: CaptureNotFoundError,
    errno.EACCES: CapturePermissionError,
    errno.EPERM: CapturePermissionError,
}


def of_file(message: str, name: str, number: int | None, is_damaged: bool) -> CaptureError:
    """Returns the exception for a file; ``number`` is that of the system's error, if it was one."""
    kind = DamagedCaptureError if is_damaged else _KINDS.get(number or 0, CaptureError)
    return kind(number, message, name)
