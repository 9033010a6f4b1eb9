"""Builds the package from its sources with maturin, and says in one line what that needs."""

import re
import shutil
import subprocess

from maturin import *  # noqa: F403  The hooks that need nothing else.

#: The oldest Rust that compiles the sources.
OLDEST = (1, 95)


def get_requires_for_build_wheel(config_settings=None):
    need_rust()
    return []


get_requires_for_build_editable = get_requires_for_build_wheel


def need_rust():
    """Ends the build without a compiler. Maturin would install one."""
    if shutil.which("cargo"):
        said = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"(\d+)\.(\d+)", said)
        if found and tuple(map(int, found.groups())) >= OLDEST:
            return
    oldest = ".".join(map(str, OLDEST))
    raise SystemExit(f"rxo: its sources need Rust {oldest} or later (https://rustup.rs); its wheels need no compiler")
