import pathlib
import re

import pytest
import traffic
from compared import figures

import rxo

DOCS = pathlib.Path(__file__).parents[3] / "docs/cluster.md"


@pytest.fixture(scope="session")
def captures(tmp_path_factory):
    """Four files of a series, each an hour after the last but for the second, which continues the first."""
    folder = tmp_path_factory.mktemp("captures")
    paths = []
    for number, hour in enumerate([0, 0, 1, 2]):
        start = hour * 3_600_000_000_000 + (20_000_000 if number == 1 else 0)
        frames = [(at + start, frame) for at, frame in traffic.frames(flows=2 + number)]
        path = folder / f"{number}.pcap"
        path.write_bytes(traffic.pcap(frames))
        paths.append(str(path))
    return paths


@pytest.fixture(scope="session")
def whole(captures):
    """The figures of one pass over the files."""
    return figures(rxo.analyze(captures))


@pytest.fixture
def documented():
    """The function `analyze` that docs/cluster.md shows under a heading."""

    def load(heading):
        section = DOCS.read_text().split(f"## {heading}\n")[1]
        code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
        assert len(code.splitlines()) <= 20
        names = {}
        exec(compile(code, str(DOCS), "exec"), names)
        return names["analyze"]

    return load
