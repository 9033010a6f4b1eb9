"""Errors that a user can mend: one line that names the thing, the value and the remedy."""


class Fault(Exception):
    """An error of the input; its text is the whole message."""
