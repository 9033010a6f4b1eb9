"""A progress bar where tqdm is installed, and silence elsewhere."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from typing import Any, Callable, Iterator, List, Optional

#: The time after which a call is long enough for a bar, in seconds.
_DELAY_S = 1.0


@contextlib.contextmanager
def bar(captures: List[Any], wanted: Optional[bool], is_part: bool) -> Iterator[Optional[Callable[[int], None]]]:
    """Provides the function that takes the number of bytes that were read; None if no bar is shown.

    Without ``wanted`` a terminal or a notebook gets a bar, once the call takes a second.
    """
    tqdm = None if wanted is False else _tqdm()
    if tqdm is None:
        yield None
        return
    total = None if is_part else _bytes(captures)
    shown = {"total": total, "unit": "B", "unit_scale": True, "desc": "rxo", "leave": False}
    if wanted is None:
        shown["disable"] = None
    try:
        made = tqdm(**shown, **({"delay": _DELAY_S} if wanted is None else {}))
    except KeyError:
        # tqdm before 4.58 has no delay.
        made = tqdm(**shown)
    with made as drawn:
        yield lambda read: drawn.update(read - drawn.n) and None


def _tqdm() -> Any:
    """Returns the class of bars: that of notebooks only where these can show it."""
    try:
        if importlib.util.find_spec("ipywidgets"):
            from tqdm.auto import tqdm
        else:
            from tqdm import tqdm
    except ImportError:
        return None
    return tqdm


def _bytes(captures: List[Any]) -> Optional[int]:
    """Returns the number of bytes of all captures; None if one has no known size."""
    total = 0
    for capture in captures:
        if isinstance(capture, (bytes, bytearray)):
            total += len(capture)
        elif isinstance(capture, str) and os.path.isfile(capture):
            total += os.path.getsize(capture)
        else:
            return None
    return total
