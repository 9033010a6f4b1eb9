"""What cutting and merging cost in processor time; docs/cluster.md has what it printed once.

PYTHONPATH=py/tests python py/tests/clusters/measure.py
"""

import os
import tempfile

import traffic

import rxo
import rxo.cluster


def cost(work):
    """The processor time of this process for some work, in seconds, and its result."""
    before = sum(os.times()[:2])
    result = work()
    return sum(os.times()[:2]) - before, result


def capture(path, rounds):
    """A capture of 4.9 MB for each round of 100 ms."""
    frames = traffic.frames(bursts=100, segments=16, flows=2)
    with open(path, "wb") as file:
        file.write(traffic.pcap([]))
        for number in range(rounds):
            later = [(at + number * 100_000_000, frame) for at, frame in frames]
            file.write(traffic.pcap(later)[24:])


def scaling(path):
    for _ in range(3):
        one, whole = cost(lambda: rxo.analyze(path))
        two, parts = cost(lambda: [rxo.analyze(path, part=(number, 2)) for number in (1, 2)])
        total = rxo.cluster.merge(parts)
        assert (total.packets, total.eliminated) == (whole.packets, whole.eliminated)
        print(f"one worker {one:.2f} s, two {two:.2f} s: {two / one:.2f} times as much")


def merging(path, parts=200, series=50, together=16):
    saved = [rxo.analyze(path, place=(1, n, parts)).to_bytes() for n in range(parts)]

    def merge():
        for _ in range(series):
            studies = [rxo.Study.from_bytes(part) for part in saved]
            while len(studies) > 1:
                starts = range(0, len(studies), together)
                studies = [rxo.cluster.merge(studies[at : at + together]) for at in starts]

    seconds, _ = cost(merge)
    print(f"{parts * series} parts of {len(saved[0])} bytes: {seconds:.2f} s to read and to merge")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        big, small = f"{folder}/big.pcap", f"{folder}/small.pcap"
        capture(big, 40)
        scaling(big)
        capture(small, 1)
        merging(small)
