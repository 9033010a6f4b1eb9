"""Files that are made from the types of the report in rxo-trace: the JSON's schema, and the package's classes.

``python py/tests/generated.py`` writes them anew; the tests compare them.
"""

import json
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).parents[2]
TRACE = ROOT / "crates/rxo-trace/src"
#: Files with the types of the report, and two types that are not structures.
SOURCES = [
    *sorted((TRACE / "report").glob("*.rs")),
    *(TRACE / name for name in ("projection/costs.rs", "projection/model.rs", "sweep/axis.rs")),
]
BY_HAND = {"Version": {"type": "integer"}, "Protocol": {"enum": ["tcp", "udp"]}}
#: Classes of the package, those that others use first.
CLASSES = ["Costs", "Receiver", "Decision", "Encapsulation", "SenderOffload", "Checksums", "Traffic"]

FILES = {
    ROOT / "docs/analyze.schema.json": lambda: schema(),
    ROOT / "py/python/rxo/_report.py": lambda: classes(),
}
STRUCTURE = r"((?:^///.*\n|^#\[.*\n)+)^pub struct (\w+) \{\n((?:^ .*\n|^\n)*)^\}"


def structures():
    """Returns the documentation and the fields of each structure: name, type and documentation of each; and the names of
    those that the JSON may lack."""
    found = {}
    for path in SOURCES:
        for part in re.finditer(STRUCTURE, path.read_text(), re.M):
            head, name, body = part.groups()
            if "Serialize" not in head:
                continue
            fields = re.findall(r"((?: +///.*\n| +#\[.*\n)+) +pub (\w+): (.*),\n", body)
            kept = [(field, kind, prose(text)) for text, field, kind in fields if "serde(skip)" not in text]
            absent = {field for text, field, _ in fields if "skip_serializing_if" in text}
            found[name] = (prose(head), kept, absent)
    return found


def prose(text):
    """Returns the documentation in one line, without links."""
    lines = re.findall(r"^ */// ?(.*)$", text, re.M)
    return re.sub(r"\[`(?:\w+::)*(\w+)`\]", r"`\1`", " ".join(lines))


def schema():
    """Returns the JSON schema of ``rxo analyze --json``, as text."""
    found = structures()
    used = {}

    def shape(kind):
        if inner := re.fullmatch(r"Option<(.*)>", kind):
            shaped = shape(inner[1])
            return {"anyOf": [shaped, {"type": "null"}]}
        if kind == "Vec<(String, String)>":
            pair = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
            return {"type": "array", "items": pair}
        if inner := re.fullmatch(r"Vec<(.*)>|\[(\w+); \d+\]", kind):
            return {"type": "array", "items": shape(inner[1] or inner[2])}
        if kind in BY_HAND:
            return dict(BY_HAND[kind])
        if kind in found:
            if kind not in used:
                used[kind] = None
                used[kind] = of(kind)
            return {"$ref": f"#/$defs/{kind}"}
        plain = {"String": "string", "Arc<str>": "string", "bool": "boolean", "f64": "number"}
        if kind in plain:
            return {"type": plain[kind]}
        assert re.fullmatch(r"u\d+", kind), f"a type without a schema: {kind}"
        return {"type": "integer", "minimum": 0}

    def of(name):
        text, fields, absent = found[name]
        said = {field: about.replace("`None`", "`null`") for field, _, about in fields}
        properties = {field: {**shape(kind), "description": said[field]} for field, kind, _ in fields}
        return {
            "description": text,
            "type": "object",
            "properties": properties,
            "required": [field for field, *_ in fields if field not in absent],
            "additionalProperties": False,
        }

    report = of("Report")
    number = re.search(r"NUMBER: u32 = (\d+);", (TRACE / "report/version.rs").read_text())[1]
    report["properties"]["version"]["const"] = int(number)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rxo analyze --json"}
    whole = {**head, **report, "$defs": dict(sorted(used.items()))}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def classes():
    """Returns the module with the classes of ``Study.decision`` and ``Study.traffic``, as text."""
    found = structures()
    plain = {"String": "str", "bool": "bool", "f64": "float"}

    def python(kind):
        if inner := re.fullmatch(r"Option<(.*)>", kind):
            return f"{python(inner[1])} | None"
        if inner := re.fullmatch(r"Vec<(.*)>", kind):
            return f"tuple[{python(inner[1])}, ...]"
        return plain.get(kind, kind if kind in CLASSES else "int")

    def spoken(text):
        text = re.sub(r"`None`", "``None``", re.sub(r"`true`", "``True``", text))
        return re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)

    def wrapped(text, before, margin):
        margins = {"initial_indent": margin + before, "subsequent_indent": margin + before}
        return textwrap.fill(spoken(text), 116, **margins)

    parts = [HEAD]
    for name in CLASSES:
        text, fields, _ = found[name]
        about = textwrap.fill(f'"""{spoken(text)}"""', 116, initial_indent="    ", subsequent_indent="    ")
        lines = [f"@dataclass(frozen=True)\nclass {name}:\n{about}\n"]
        lines += [f"{wrapped(about, '#: ', '    ')}\n    {field}: {python(kind)}" for field, kind, about in fields]
        parts.append("\n".join(lines) + "\n")
    return "\n\n".join(parts)


HEAD = '''"""The parts of a report as classes. Made by ``py/tests/generated.py`` from the types of the report in Rust."""

from __future__ import annotations

from dataclasses import dataclass
'''


if __name__ == "__main__":
    for path, text in FILES.items():
        path.write_text(text())
