import pytest

import traffic


@pytest.fixture(scope="session")
def capture():
    """The bytes of a capture: 2 flows, 10 bursts of 16 segments each."""
    return traffic.pcap(traffic.frames())


@pytest.fixture
def path(capture, tmp_path):
    """The path of that capture."""
    path = tmp_path / "trace.pcap"
    path.write_bytes(capture)
    return path
