import os
from typing import final

from ._types import Captures

__version__: str

@final
class Table:
    """A table of Arrow columns."""

    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Study:
    """What coalescing would do to captured traffic: the result of ``rxo.analyze``."""

    @property
    def partial(self) -> str | None: ...
    @property
    def packets(self) -> int: ...
    @property
    def eliminated(self) -> int: ...
    def flows(self) -> Table: ...
    def settings(self) -> Table: ...
    def report(self, path: str | os.PathLike[str], *, flows: int = 10) -> None: ...
    def parquet(self, folder: str | os.PathLike[str]) -> None: ...
    def json(self) -> str: ...

def analyze(
    captures: Captures,
    *,
    poll: str | list[str],
    policy: str,
    settings: dict[str, object] | None,
    sweep: str | list[str],
    flow: str | None,
    checksum: str,
    advise: bool,
) -> Study: ...
