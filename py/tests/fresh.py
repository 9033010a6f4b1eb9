"""Runs in a fresh environment without other packages and without a compiler: the first block of docs/python.md."""

import contextlib
import io
import os
import pathlib
import re
import shutil
import tempfile

import traffic

DOCS = pathlib.Path(__file__).parents[2] / "docs/python.md"

assert shutil.which("cargo") is None and shutil.which("rustc") is None, "a compiler is in PATH"
block = re.search(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
    os.chdir(folder)
    pathlib.Path("trace.pcapng.zst").write_bytes(traffic.pcap(traffic.frames()))
    exec(compile(block, str(DOCS), "exec"), {})
    os.chdir("/")
sentence, share = said.getvalue().splitlines()
# Ten bursts of two flows, an aggregate each: 20 deliveries of 320 packets.
assert float(share) == 0.9375, said.getvalue()
print(sentence)
