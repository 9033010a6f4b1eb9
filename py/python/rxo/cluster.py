"""Studies on several machines, by engines such as Ray, Dask and Spark.

``tasks`` returns the tasks, ``count`` does one of them on any machine, ``merge`` adds the results in any
order, ``checked`` warns of captures that could not be read. The sum equals the result of ``rxo.analyze`` for the same
captures in the same order.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import warnings
from typing import Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _paths
from ._analyze import analyze
from ._errors import CaptureError, PartialWarning, UsageError, of_file
from ._rxo import Study


class Task(NamedTuple):
    """A part of the work: a file that is one of a series, or a part of files."""

    files: List[str]
    part: Optional[Tuple[int, int]]
    place: Optional[Tuple[int, int, int]]
    storage: Mapping[str, object]


def tasks(
    captures: Union[str, Sequence[str]],
    *,
    parts: Optional[int] = None,
    storage: Optional[Mapping[str, object]] = None,
) -> List[Task]:
    """Returns the tasks for these captures: one for each file, or ``parts`` parts of all files.

    captures: paths or URLs, in order; names with ``*`` stand for all that match, directories for their files.
    parts: the number of parts into which files that all machines have under the same path are cut, at pauses.
    storage: options of ``fsspec`` for URLs, such as ``{"endpoint_url": "http://127.0.0.1:8333"}``.
    """
    patterns = [captures] if isinstance(captures, (str, os.PathLike)) else captures
    options = dict(storage or {})
    files = [file for pattern in patterns for file in _matches(os.fspath(pattern), options)]
    if not files:
        raise UsageError("no capture: give paths, URLs, or names with *")
    if parts is not None:
        if parts < 1:
            raise UsageError(f"parts {parts}: give a number from 1")
        if any(_is_url(file) for file in files):
            raise UsageError("parts: only files with a path can be cut; URLs are read whole")
        return [Task(files, (number, parts), None, options) for number in range(1, parts + 1)]
    names = "\0".join(files).encode(errors="surrogateescape")
    series = int.from_bytes(hashlib.sha256(names).digest()[:8], "big")
    places = [(series, number, len(files)) for number in range(len(files))]
    return [Task([file], None, place, options) for file, place in zip(files, places)]


def count(task: Task, **settings) -> Study:
    """Does a task. ``settings`` are the keywords of ``rxo.analyze``. A capture that cannot be read gives a study without
    packets, which says why."""
    settings = {"progress": False, **settings}
    if task.part or not _is_url(task.files[0]):
        return analyze(task.files, part=task.part, place=task.place, **settings)
    import fsspec

    with contextlib.closing(_Remote(fsspec.open(task.files[0], "rb", **task.storage), task.files[0])) as file:
        return analyze(file, place=task.place, **settings)


def merge(studies: Iterable[Study]) -> Study:
    """Returns the study of the traffic of all these studies, of which there must be at least one."""
    first, *others = studies
    return first.merge(*others)


def checked(study: Study) -> Study:
    """Returns the study of all tasks, on the machine that asked for it.

    Warns with PartialWarning if a capture is damaged, as ``rxo.analyze`` does; the warnings of the tasks stay on the
    machines that did them. Raises CaptureError if no capture could be read.
    """
    if study.partial is None:
        return study
    sources = study.sources()
    if all(form == "unknown" for form in sources["format"]):
        raise CaptureError(None, study.partial, sources["file"][0])
    warnings.warn(study.partial, PartialWarning, stacklevel=2)
    return study


class _Remote:
    """A file that has its URL as its name. It is opened when it is read, so that what fails then is a reason in the report."""

    def __init__(self, opened, name):
        self._opened, self._file, self.name = opened, None, name

    def read(self, size: int) -> bytes:
        try:
            if self._file is None:
                self._file = self._opened.open()
            return self._file.read(size)
        except OSError:
            raise
        except Exception as error:
            # Some stores have exceptions of their own.
            raise OSError(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        self._opened.close()


def _is_url(name: str) -> bool:
    return "://" in name


def _matches(pattern: str, storage: Mapping[str, object]) -> List[str]:
    """Returns the files that the pattern stands for, in the order of their names."""
    if _is_url(pattern):
        if "*" not in pattern:
            return [pattern]
        import fsspec

        system, path = fsspec.core.url_to_fs(pattern, **storage)
        found = sorted(system.unstrip_protocol(file) for file in system.glob(path))
        if not found:
            raise of_file(f"{pattern}: no file has such a name", pattern, errno.ENOENT, False)
        return found
    return _paths.files(pattern)
