import os
from typing import Any, Callable, Literal, final, overload

from ._report import Decision, Traffic
from ._types import Capture, Costs

__version__: str

@final
class Table:
    """A table of Arrow columns.

    Pass it to ``polars.DataFrame``, ``pyarrow.table`` or ``pandas.DataFrame.from_arrow``; DuckDB reads the result
    of ``pyarrow.table``. Nothing is copied. Without any of these, ``table["packets"]`` is a column as a list,
    ``table[0]`` a row as a dictionary, and ``table[:5]`` a table of some rows.
    """

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: str, /) -> list[Any]: ...
    @overload
    def __getitem__(self, key: int, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice, /) -> Table: ...
    def to_pandas(self) -> Any:
        """Returns the table as a pandas data frame. Needs pandas and pyarrow."""
    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """Returns the table by the data frame interchange protocol. Needs pyarrow."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the table as an Arrow stream of one batch. Readers call this; the requested schema is ignored, as
        the protocol permits.
        """
    def _repr_html_(self) -> str:
        """Shows the first rows in a notebook."""

@final
class Packets:
    """The packets of captures, as a stream of Arrow tables with a row for each packet: the result of ``rxo.packets``.

    Pass it to ``pyarrow.RecordBatchReader.from_stream``, ``polars.DataFrame`` or any other reader of the Arrow
    PyCapsule interface. Each reader begins with the first packet. The end of a damaged capture is an error of the
    stream, after the packets before the damage.
    """

    def __new__(cls, files: list[str]) -> Packets: ...
    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the Arrow stream. Readers call this; the requested schema is ignored, as the protocol permits."""

@final
class Study:
    """The predicted effect of coalescing on captured traffic: the result of ``rxo.analyze``.

    ``print(study)`` shows the report as the command ``rxo analyze`` does. Studies of parts of the traffic can be
    merged, in any order; they can be pickled, and sent to other machines.
    """

    @property
    def decision(self) -> Decision:
        """The headline figures: whether coalescing is worth it, and why."""
    @property
    def traffic(self) -> Traffic:
        """Properties of the traffic that do not depend on the policy."""
    @property
    def notes(self) -> list[str]:
        """Facts and remedies for the user, one sentence each."""
    @property
    def partial(self) -> str | None:
        """The reason why the study is incomplete (a damaged capture); ``None`` if it is complete."""
    @property
    def packets(self) -> int:
        """The number of packets in the captures."""
    @property
    def eliminated(self) -> int:
        """The number of packets that the chosen settings eliminate: packets minus deliveries."""
    def with_costs(self, costs: Costs) -> Study:
        """Returns the study with other costs of receiving, from which the decision is computed. Copies it."""
    def merge(self, *others: Study) -> Study:
        """Returns the study of the traffic of this study and the others. All must have the same settings; the costs
        are those of this study.
        """
    def to_bytes(self) -> bytes:
        """Returns the study as bytes, without costs. Equal studies have equal bytes. ``rxo analyze`` merges files with
        such bytes.
        """
    @staticmethod
    def from_bytes(bytes: bytes, costs: Costs | None = None) -> Study:
        """Restores the study from the bytes that ``to_bytes`` returned."""
    def flows(self) -> Table:
        """Returns a table with a row for each flow (one direction of a connection), most packets first."""
    def settings(self) -> Table:
        """Returns a table with a row for each combination of settings that was tried, the chosen one first."""
    def reasons(self) -> Table:
        """Returns a table with a row for each reason of each row of the settings."""
    def histograms(self) -> Table:
        """Returns a table with a row for each bucket of each histogram of each row of the settings."""
    def sources(self) -> Table:
        """Returns a table with a row for each capture."""
    def html(self, *, flows: int = 10) -> str:
        """Returns the report with its figures as the text of one self-contained HTML page.

        ``flows`` limits the number of flows in the list.
        """
    def report(self, path: str | os.PathLike[str], *, flows: int = 10) -> None:
        """Writes the report with its figures as one self-contained HTML file.

        ``flows`` limits the number of flows in the list. The file is either complete or absent.
        """
    def parquet(self, folder: str | os.PathLike[str]) -> None:
        """Writes all tables as Parquet data sets into a folder: each into a folder of its name, such as ``flows``."""
    def json(self) -> str:
        """Returns the report as JSON, as ``rxo analyze --json`` prints it, with all flows."""
    def _repr_html_(self) -> str:
        """Shows the decision and the figures in a notebook."""

def analyze(
    captures: list[Any],
    *,
    poll: str | list[str],
    policy: str,
    settings: dict[str, object] | None,
    sweep: str | list[str],
    flow: str | None,
    checksum: str,
    dedup: bool,
    costs: Costs | None,
    advise: bool,
    part: tuple[int, int] | None,
    place: tuple[int, int, int] | None,
    progress: Callable[[int], None] | None,
) -> Study:
    """Predicts the effect of coalescing on the traffic in captures. See ``rxo.analyze``."""
def compare(
    captures: list[Any],
    *,
    policies: list[object],
    poll: str,
    checksum: str,
    rate: float,
) -> tuple[str, str]:
    """Compares policies over captures. Returns the table as text and as JSON. See ``rxo.compare``."""
def coalesce(
    input: Capture,
    output: str | os.PathLike[str],
    *,
    poll: str,
    policy: str,
    settings: dict[str, object] | None,
    checksum: str,
) -> str:
    """Writes a capture as the host's stack would see it. See ``rxo.coalesce``."""
def expand(input: Capture, output: str | os.PathLike[str]) -> str:
    """Restores the original of a coalesced capture. See ``rxo.expand``."""
def verify(a: Capture, b: Capture, *, window_mb: int) -> str:
    """Compares the streams of two captures, flow by flow. See ``rxo.verify``."""

@final
class Engine:
    """The receive engine: frames in, deliveries out. See ``rxo.Engine``."""

    def __new__(
        cls,
        policy: str = "linux-gro",
        *,
        settings: dict[str, Any] | None = None,
        link: str = "ethernet",
        trust_checksums: bool = False,
        batch: int = 256,
    ) -> Engine: ...
    def poll(self, frames: list[bytes], now_ns: int) -> list[Delivery]:
        """Processes the frames of one poll, which takes place at ``now_ns``, and ends the poll. Returns the
        deliveries.
        """
    def push(self, frames: list[bytes], now_ns: int) -> list[Delivery]:
        """Processes frames without ending the poll. Returns the deliveries."""
    @property
    def poll_at(self) -> int | None:
        """Returns the time at which ``on_timeout`` is due, in nanoseconds; None while nothing is held beyond a poll."""
    def on_timeout(self, now_ns: int) -> list[Delivery]:
        """Delivers the frames that have been held for as long as the policy allows."""
    def flush(self, now_ns: int) -> list[Delivery]:
        """Delivers all held frames."""
    def counters(self) -> dict[str, Any]:
        """Returns the totals of the engine, and how often each reason occurred."""

@final
class RuleEngine:
    """The engine for rules that are written in Python. See ``rxo.RuleEngine``."""

    def __new__(
        cls,
        rules: object,
        *,
        link: str = "ethernet",
        trust_checksums: bool = False,
        batch: int = 256,
    ) -> RuleEngine: ...
    def poll(self, frames: list[bytes], now_ns: int) -> list[Delivery]:
        """Processes the frames of one poll, which takes place at ``now_ns``, and ends the poll. Returns the
        deliveries.
        """
    def push(self, frames: list[bytes], now_ns: int) -> list[Delivery]:
        """Processes frames without ending the poll. Returns the deliveries."""
    @property
    def poll_at(self) -> int | None:
        """Returns the time at which ``on_timeout`` is due, in nanoseconds; None while nothing is held."""
    def on_timeout(self, now_ns: int) -> list[Delivery]:
        """Asks the rules about the flows whose time has come. Returns the deliveries."""
    def flush(self, now_ns: int) -> list[Delivery]:
        """Delivers all held frames."""
    def counters(self) -> dict[str, Any]:
        """Returns the totals of the engine, and how often each reason occurred."""

@final
class Segment:
    """A segment that may be coalesced. See ``rxo.Segment``."""

    @property
    def seq(self) -> int: ...
    @property
    def ack(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def payload_bytes(self) -> int: ...
    @property
    def timestamp(self) -> tuple[int, int] | None: ...
    @property
    def ip_id(self) -> int: ...
    @property
    def hop_limit(self) -> int: ...
    @property
    def traffic_class(self) -> int: ...

@final
class Run:
    """Neighbouring held segments that will be one delivery. See ``rxo.Run``."""

    @property
    def segments(self) -> int: ...
    @property
    def payload_bytes(self) -> int: ...
    @property
    def first_seq(self) -> int: ...
    @property
    def next_seq(self) -> int: ...
    @property
    def oldest_ns(self) -> int: ...
    @property
    def end(self) -> str | None: ...

@final
class Flow:
    """The state of a flow. See ``rxo.Flow``."""

    memory: Any
    @property
    def runs(self) -> list[Run]: ...
    @property
    def next_seq(self) -> int | None: ...
    @property
    def delivered_at_ns(self) -> int: ...

@final
class Delivery:
    """One delivery of an engine. See ``rxo.Delivery``."""

    @property
    def kind(self) -> Literal["frame", "aggregate", "acks"]:
        """The kind: "frame" (unchanged), "aggregate" (several segments as one), or "acks" (the last of several pure
        ACKs).
        """
    @property
    def data(self) -> bytes:
        """The packet that the host's stack gets, with complete checksums."""
    @property
    def frames(self) -> list[bytes]:
        """The original frames of the delivery: the objects that were passed in, in order."""
    @property
    def gso_size(self) -> int | None:
        """Payload bytes of each segment of an aggregate except the last; None for other deliveries."""
