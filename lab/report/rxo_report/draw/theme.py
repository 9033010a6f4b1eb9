"""The colours of figures, and the SVG that follows the reader's colour scheme."""

import re
from xml.sax.saxutils import escape

GROUND = ("#ffffff", "#14171c")
INK = ("#1f2328", "#e8ebef")
MUTED = ("#59636e", "#a3acb8")
GRID = ("#e1e5ea", "#2b313a")

SERIES = [
    ("#1f6fd0", "#5aa2ff"),
    ("#c4560b", "#ff9a4d"),
    ("#0b7f62", "#3fcfa4"),
    ("#7b4bc9", "#b795ff"),
    ("#b8336a", "#ff7fae"),
    ("#7a6a00", "#d9c23c"),
    ("#3d7fa3", "#86c5e8"),
    ("#5c5f66", "#aeb4bd"),
]
"""The colours of series, each for light and for dark ground."""

MARKERS = ["o", "s", "^", "D", "v", "P", "X", "h"]

SETTINGS = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED[0],
    "axes.facecolor": GROUND[0],
    "axes.grid": True,
    "axes.labelcolor": INK[0],
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": GROUND[0],
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": GRID[0],
    "grid.linewidth": 0.8,
    "hatch.linewidth": 1.0,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "path.simplify": True,
    "savefig.facecolor": GROUND[0],
    # Names of parts come from this salt and not from the time, so that each run writes the same bytes.
    "svg.hashsalt": "rxo",
    # Text stays text: it can be searched and read aloud.
    "svg.fonttype": "none",
    "text.color": INK[0],
    "xtick.color": MUTED[0],
    "xtick.labelcolor": INK[0],
    "ytick.color": MUTED[0],
    "ytick.labelcolor": INK[0],
}


def _style() -> str:
    """Returns rules that replace each light colour by its dark one if the reader prefers dark."""
    rules = [
        f'[style*="{kind}: {light}"],[{kind}="{light}"]{{{kind}:{dark}!important}}'
        for light, dark in [GROUND, INK, MUTED, GRID, *SERIES]
        for kind in ("fill", "stroke")
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"


FONT = "font-family: 'DejaVu Sans', Verdana, sans-serif"
"""Verdana is as wide as DejaVu Sans, by which matplotlib measures."""


def finish(text: str, title: str, description: str) -> str:
    """Turns matplotlib's SVG into the document that is kept."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    # Two decimals of a point are exact enough. The last digits of matplotlib's six depend on the processor.
    text = re.sub(r"-?\d+\.\d{3,}", _rounded, text)
    text = text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
    head, body = text.split(">", 1)
    said = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    lines = f'{head} role="img">{said}{_style()}{body}'.splitlines()
    return "\n".join(line.strip() for line in lines if line.strip()) + "\n"


def _rounded(match: re.Match[str]) -> str:
    value = round(float(match[0]), 2)
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"
