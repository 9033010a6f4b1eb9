"""What cutting and merging cost in processor time; docs/cluster.md has what it printed once.

PYTHONPATH=py/tests python py/tests/clusters/measure.py
"""

import multiprocessing
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

import traffic

import rxo
import rxo.cluster


def cost(work):
    """The processor time of this process for some work, in seconds, and its result."""
    before = time.process_time()
    result = work()
    return time.process_time() - before, result


def capture(path, rounds):
    """A capture of 4.9 MB for each round of 100 ms."""
    frames = traffic.frames(bursts=100, segments=16, flows=2)
    with open(path, "wb") as file:
        file.write(traffic.pcap([]))
        for number in range(rounds):
            later = [(at + number * 100_000_000, frame) for at, frame in frames]
            file.write(traffic.pcap(later)[24:])


def counted(task):
    """What a worker does: a task, with the processor time that it took."""
    return cost(lambda: rxo.cluster.count(task))


def divided(workers, path, parts):
    """The processor time of all workers and of merging, and the sum."""
    taken, studies = zip(*workers.map(counted, rxo.cluster.tasks(path, parts=parts)))
    merging, total = cost(lambda: rxo.cluster.merge(list(studies)))
    return sum(taken) + merging, total


def scaling(path, rounds=7):
    """One worker and two at a time, in turn."""
    ratios = []
    start = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, start) as single, ProcessPoolExecutor(2, start) as pair:
        for number in range(rounds + 1):
            (one, whole), (two, total) = divided(single, path, 1), divided(pair, path, 2)
            assert (total.packets, total.eliminated) == (whole.packets, whole.eliminated)
            if number > 0:  # In the first round the workers start.
                ratios.append(two / one)
                print(f"one worker {one:.2f} s, two {two:.2f} s: {two / one:.3f} times as much")
    low, median, high = statistics.quantiles(ratios, n=4)
    print(f"two take {median:.3f} times as much as one (quartiles {low:.3f} to {high:.3f})")


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
        capture(big, 100)
        scaling(big)
        capture(small, 1)
        merging(small)
