"""Runs in a fresh environment without other packages: the first block of docs/python.md."""

import contextlib
import io
import os
import pathlib
import re
import tempfile

import traffic

DOCS = pathlib.Path(__file__).parents[2] / "docs/python.md"

block = re.search(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
    os.chdir(folder)
    pathlib.Path("trace.pcap").write_bytes(traffic.pcap(traffic.frames()))
    exec(compile(block, str(DOCS), "exec"), {})
    os.chdir("/")
sentence, share = said.getvalue().splitlines()
# Ten bursts of two flows, an aggregate each: 20 deliveries of 320 packets.
assert float(share) == 0.9375, said.getvalue()
print(sentence)
