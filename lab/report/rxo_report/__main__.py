"""The command: writes the report, or the pages of docs/, or checks that those are up to date."""

import argparse
import json
import re
import sys
from pathlib import Path

from rxo_report import bibliography, citation, html, pages, results, scale
from rxo_report.fault import Fault
from rxo_report.pages import Listing

ROOT = Path(__file__).parents[3]
RESULTS = "docs/repro/results"
FIGURE = r"docs/repro/[^/]+/[^/]+\.svg"


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code: 1 for stale pages or unusable results."""
    options = parser().parse_args(arguments)
    path = options.results or options.root / RESULTS
    try:
        papers = bibliography.read()
        if options.keep:
            path = keep(path, options.root / RESULTS)
        if options.out:
            found = results.read(path)
            report = {"report.html": html.render(found, papers)}
            write(pages.render(found, papers) | report, options.out)
            print(f"wrote {options.out / 'report.html'}")
            return 0
        listing = pages.overview(papers) | {"CITATION.cff": citation.render(papers)}
        listing |= scale.render(options.root)
        if path.exists() or options.results or has_generated(options.root):
            listing |= pages.render(results.read(path), papers, only_whole=True)
        else:
            print(f"no results are kept: {path} is not there, and no page is made of results")
        if options.check:
            return check(listing, options.root)
        update(listing, options.root)
    except (Fault, OSError) as fault:
        print(f"rxo_report: {fault}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """Returns the flags of the command."""
    flags = argparse.ArgumentParser(prog="rxo_report", description=__doc__)
    flags.add_argument(
        "results",
        type=Path,
        nargs="?",
        default=None,
        help="what `rxo-lab all` wrote, or a folder of such files; docs/repro/results without it",
    )
    what = flags.add_argument_group("at least one of").add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--out", type=Path, metavar="DIR", help="writes report.html, pages and figures"
    )
    what.add_argument("--docs", action="store_true", help="writes the pages and figures of docs/")
    what.add_argument(
        "--keep",
        action="store_true",
        help=f"puts the experiments into {RESULTS}, in place of their older results, and writes docs/",
    )
    what.add_argument("--check", action="store_true", help="fails if a page or figure is stale")
    flags.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help=argparse.SUPPRESS)
    return flags


def keep(path: Path, folder: Path) -> Path:
    """Writes each experiment of the document `path` into a file of `folder`, and returns `folder`.

    The rows of which figures and claims were made are left out: pages need none, and they can have
    millions of bytes.
    """
    results.read(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    for experiment in document["experiments"]:
        kept = document | {"experiments": [experiment | {"measured": {}}]}
        text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{experiment['id']}.json").write_text(text, encoding="utf-8")
    return folder


def write(listing: Listing, folder: Path) -> None:
    """Writes every file of `listing` below `folder`."""
    for path, text in listing.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def update(listing: Listing, root: Path) -> None:
    """Writes the pages of `root`, and removes figures that no page shows."""
    write(listing, root)
    for path in unshown(listing, root):
        (root / path).unlink()
    print(f"wrote {len(listing)} files")


def check(listing: Listing, root: Path) -> int:
    """Prints a line for each stale file of `root`. Returns 1 if there is one."""
    stale = [f"{path} is stale" for path, text in listing.items() if read(root / path) != text]
    stale += [f"{path}: no page shows it" for path in unshown(listing, root)]
    for line in stale:
        print(f"{line}; `cargo xtask report --docs` mends it", file=sys.stderr)
    if not stale:
        print(f"{len(listing)} files are up to date")
    return min(len(stale), 1)


def read(path: Path) -> str | None:
    """Returns the text of `path`; `None` if there is no such file."""
    return path.read_text(encoding="utf-8") if path.is_file() else None


def unshown(listing: Listing, root: Path) -> list[str]:
    """Returns the figures beside those of `listing` that are not in it."""
    folders = {Path(path).parent for path in listing if re.fullmatch(FIGURE, path)}
    figures = (path for folder in folders for path in (root / folder).glob("*.svg"))
    return sorted({path.relative_to(root).as_posix() for path in figures} - set(listing))


def has_generated(root: Path) -> bool:
    """Returns `True` if a page of results has been written before, so that its results must be there."""
    written = (read(path) or "" for path in root.glob("docs/repro/*.md"))
    return any(text.startswith(pages.HEAD[:20]) for text in written)


if __name__ == "__main__":
    sys.exit(main())
