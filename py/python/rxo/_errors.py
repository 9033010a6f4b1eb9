"""The exceptions of rxo. Their messages are those of the command: object, value, remedy."""

__all__ = ["CaptureError", "Error", "PartialWarning", "UsageError"]


class Error(Exception):
    """Base of all exceptions of rxo."""


class UsageError(Error, ValueError):
    """An argument is invalid. The message names it and says what would be accepted."""


class CaptureError(Error, OSError):
    """A capture cannot be read, or a file cannot be written. The message names file and remedy."""


class PartialWarning(UserWarning):
    """A capture is damaged: the result covers only the part before the damage.

    ``warnings.simplefilter("error", rxo.PartialWarning)`` makes it an exception.
    """
