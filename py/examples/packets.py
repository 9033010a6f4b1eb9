"""The processor time of reading the packets of a capture: ``python packets.py CAPTURE``. Needs PyArrow."""

import os
import resource
import sys

import pyarrow
import rxo

path = sys.argv[1]
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF)
    rows = sum(table.num_rows for table in pyarrow.RecordBatchReader.from_stream(rxo.packets(path)))
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{rows} packets, {seconds:.2f} s, {os.path.getsize(path) / seconds / 1e9:.2f} GB a second of processor time")
