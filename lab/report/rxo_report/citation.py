"""CITATION.cff: rxo, and the papers of the bibliography as its references (Citation File Format 1.2.0).

The file is YAML, of which JSON is a part: each value is written as JSON.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from rxo_report.bibliography import Bibliography, Work

ROOT = Path(__file__).parents[3]


def render(bibliography: Bibliography, manifest: Path = ROOT / "Cargo.toml") -> str:
    """Returns the file; version and licences are those of the workspace's `manifest`."""
    package = tomllib.loads(manifest.read_text(encoding="utf-8"))["workspace"]["package"]
    fields = {
        "cff-version": "1.2.0",
        "message": "If you use rxo or its experiments, please cite it by these metadata.",
        "title": "rxo: receive offload in user space",
        "type": "software",
        "version": package["version"],
        "license": package["license"].split(" OR "),
        "authors": [{"name": "The rxo contributors"}],
        "references": [reference(work) for work in bibliography.values()],
    }
    head = "# `cargo xtask report --docs` writes this file from lab/report/bibliography.toml.\n"
    return head + "".join(_lines(name, value) for name, value in fields.items())


def reference(work: Work) -> dict[str, Any]:
    """Returns a paper as a reference."""
    people = [author.rsplit(" ", 1) for author in work.authors]
    kind = {"conference": {"name": work.venue}} if not work.venue.startswith("mail") else {}
    return {
        "type": "conference-paper" if kind else "generic",
        "title": work.title,
        "authors": [{"given-names": given, "family-names": family} for given, family in people],
        "year": work.year,
        **(kind or {"notes": work.venue}),
        **({"doi": work.doi} if work.doi else {}),
    }


def _lines(name: str, value: object) -> str:
    if not isinstance(value, list):
        return f"{name}: {_json(value)}\n"
    return f"{name}:\n" + "".join(f"  - {_json(item)}\n" for item in value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
