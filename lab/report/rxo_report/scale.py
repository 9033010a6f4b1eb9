"""docs/scale.md: the cores and the memory that a rate takes, from the costs in docs/repro/scale.json.

Workers share nothing on the packet path, so a rate takes as many of them as it is times that of one; how
far that holds is measured with the cores that there are. What all cores share is memory.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rxo_report import draw
from rxo_report.pages import FOLDER, HEAD, SCALE, Listing, environment
from rxo_report.results import Figure, Series

COSTS = "docs/repro/scale.json"

SERVERS = {8: 2, 32: 8, 128: 24}
"""Machines as they are sold: cores, and channels of DDR5-4800."""
WIRES = (25, 100, 200, 400)
"""Wires in Gbit/s."""
CHANNEL = 38.4e9 * 0.7
"""Bytes a second that programs get of a channel."""
COPY = 3.0
"""Bytes that a copy moves for each byte: read, the line that is written fetched, and written."""
LIVE = 1.22
"""Seconds a gigabyte of the whole live path, by `rxo demo` in README.md."""


@dataclass(frozen=True)
class Way:
    """A path: seconds of processor time a gigabyte of payload, and bytes on the bus for a byte."""

    name: str
    seconds: float
    bus: float

    def rate(self, cores: float) -> float:
        """Returns the Gbit/s of so many cores, if nothing but them is the limit."""
        return cores * 8 / self.seconds

    def most(self, channels: int) -> float:
        """Returns the Gbit/s at which the memory of so many channels ends it."""
        return channels * CHANNEL / self.bus * 8 / 1e9


def render(root: Path) -> Listing:
    """Returns docs/scale.md and its plot; nothing if `root` has no costs."""
    if not (root / COSTS).is_file():
        return {}
    costs = json.loads((root / COSTS).read_text(encoding="utf-8"))
    template = environment(FOLDER).get_template(SCALE)
    text = template.render(
        measured=measured(costs),
        wires=wires(paths(costs)),
        servers=servers(paths(costs)),
        copies=[rate * COPY / 1e9 for rate in costs["copied_bytes_a_second"]],
        machine=costs["machine"],
        others=100 * costs["others"],
        live=paths(costs)[-1],
    )
    shown = draw.svg(plot(paths(costs)), "Gbit/s by cores for each path, up to the end of memory.")
    return {"docs/scale.md": HEAD.format(SCALE) + text, "docs/repro/scale.svg": shown}


def paths(costs: dict[str, Any]) -> list[Way]:
    """Returns the paths, from the least to all of it."""
    one = {row["is_copied"]: row for row in costs["rows"] if row["workers"] == 1}
    seconds = {
        copied: row["ns_per_frame"][0] / costs["payload_bytes"] for copied, row in one.items()
    }
    return [
        Way("worker, headers only", seconds[False], 1 + 128 / costs["frame_bytes"]),
        Way("worker and one copy", seconds[True], 1 + COPY),
        Way("ring to TAP, host and reader", LIVE, 1 + 2 * COPY),
    ]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a table of Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def measured(costs: dict[str, Any]) -> str:
    """Returns the table of the measured workers."""
    rows = []
    for row in costs["rows"]:
        ns, workers = row["ns_per_frame"][0], row["workers"]
        rate = workers * costs["payload_bytes"] * 8 / ns
        name = "and one copy" if row["is_copied"] else "headers only"
        rows.append([name, str(workers), f"{ns:.1f}", f"{rate:.0f}", f"{row['times_one']:.2f}"])
    return table(["worker", "workers", "ns a frame", "Gbit/s of all", "times one"], rows)


def wires(all_paths: list[Way]) -> str:
    """Returns the table of the cores that a wire takes."""
    head = ["path", "CPU s/GB", "bytes on the bus for each"]
    head += [f"cores for {wire} Gbit/s" for wire in WIRES]
    rows = [
        [path.name, f"{path.seconds:.3f}", f"{path.bus:.1f}"]
        + [f"{wire / path.rate(1):.1f}" for wire in WIRES]
        for path in all_paths
    ]
    return table(head, rows)


def servers(all_paths: list[Way]) -> str:
    """Returns the table of what ends a rate, by server and path."""
    rows = []
    for cores, channels in SERVERS.items():
        for path in all_paths:
            rate, most = path.rate(cores), path.most(channels)
            bus, ends = f"{channels * CHANNEL / 1e9:.0f}", "cores" if rate < most else "memory"
            rows.append([str(cores), bus, path.name, f"{rate:.0f}", f"{most:.0f}", ends])
    head = ["cores", "memory, GB/s", "path", "Gbit/s of the cores", "Gbit/s of memory", "ends it"]
    return table(head, rows)


def plot(all_paths: list[Way]) -> Figure:
    """Returns Gbit/s by cores for each path, up to where the memory of the largest machine ends it."""
    cores = [2**n for n in range(8)]
    channels = max(SERVERS.values())
    series = tuple(
        Series(
            path.name,
            tuple(min(path.rate(count), path.most(channels)) for count in cores),
            is_reference=False,
            shape="line",
        )
        for path in all_paths
    )
    return Figure(
        id="scale",
        number="scale",
        title="Gbit/s by cores, up to the end of memory",
        fixed=f"{channels} channels of DDR5-4800",
        basis="processor-time",
        x_label="cores",
        y_label="Gbit/s",
        x=tuple(map(str, cores)),
        x_values=tuple(map(float, cores)),
        series=series,
        guides=(),
        brackets=(),
        claims=(),
        condition=None,
    )
