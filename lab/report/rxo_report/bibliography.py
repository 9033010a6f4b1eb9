"""The bibliography: the only place that has the authors and titles of the papers."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent.parent / "bibliography.toml"


@dataclass(frozen=True)
class Work:
    """A paper. `page` is the name of its first page in docs/repro."""

    authors: list[str]
    title: str
    venue: str
    year: int
    affiliation: str
    page: str
    doi: str | None = None

    def surnames(self) -> str:
        """Returns the surnames: one, two, or the first and `et al.`."""
        surnames = [author.split()[-1] for author in self.authors]
        if len(surnames) > 2:
            return f"{surnames[0]} et al."
        return " and ".join(surnames)

    def short(self) -> str:
        """Returns the citation in a text: surnames and year."""
        return f"{self.surnames()} {self.year}"

    def full(self) -> str:
        """Returns the complete citation, as Markdown."""
        *rest, last = self.authors
        authors = f"{', '.join(rest)} and {last}" if rest else last
        title = self.title.replace("[", r"\[")
        text = f"{authors}: “{title}”. {self.venue}."
        return text + (f" [doi {self.doi}](https://doi.org/{self.doi})." if self.doi else "")


Bibliography = dict[str, Work]


def read(path: Path = FILE) -> Bibliography:
    """Reads the bibliography, by key, in the order of the file."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return {key: Work(**fields) for key, fields in document.items()}
