#!/usr/bin/env python3
"""Checks the documents: every relative link and anchor leads somewhere, and docs/SUMMARY.md lists every page of docs once.

    scripts/links.py     report dead links as FILE:LINE, exit status 1 if there are any

Documents are the Markdown files of the root and of `FOLDERS`, without rule pages. Links to other hosts are not followed. Anchors
are built from headings as GitHub and mdBook do.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SUMMARY = DOCS / "SUMMARY.md"

# Folders with documents, searched recursively.
FOLDERS = ["docs", "datasets", "deploy", "examples", "models", "scripts"]

# Single documents in folders that contain other Markdown files.
FILES = ["web/README.md"]

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
DEFINITION = re.compile(r"^\s{0,3}\[[^\]^][^\]]*\]:\s*<?(\S+?)>?(?:\s|$)")
FOOTNOTE_USE = re.compile(r"\[\^([^\]]+)\](?!:)")
FOOTNOTE = re.compile(r"^\[\^([^\]]+)\]:")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
HTML_ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
EXTERNAL = re.compile(r"^[a-z][a-z0-9+.-]*:", re.I)


def documents():
    """Returns all documents. Symbolic links are skipped: their targets are documents themselves."""
    found = list(ROOT.glob("*.md")) + [ROOT / file for file in FILES]
    for folder in FOLDERS:
        found += (ROOT / folder).rglob("*.md")
    return sorted(file for file in set(found) if file.is_file() and not file.is_symlink())


def prose_lines(file):
    """Yields (line number, line) outside of fenced code blocks."""
    fence = None
    for number, line in enumerate(file.read_text().splitlines(), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and fence is None:
            fence = mark.group(1)
        elif fence is not None:
            if mark and mark.group(1).startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
        else:
            yield number, line


def slug(heading):
    """Returns the anchor of a heading: lower case, punctuation removed, spaces as hyphens."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(file):
    """Returns the anchors of a document. Repeated headings get a number, as on GitHub."""
    found, seen = set(), {}
    for _, line in prose_lines(file):
        found.update(HTML_ANCHOR.findall(line))
        heading = HEADING.match(line)
        if heading:
            name = slug(heading.group(1))
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
    return found


def links(file):
    """Yields (line number, target) of every link."""
    for number, line in prose_lines(file):
        text = CODE_SPAN.sub(lambda match: " " * len(match.group()), line)
        for match in LINK.finditer(text):
            yield number, match.group(1)
        definition = DEFINITION.match(text)
        if definition:
            yield number, definition.group(1)


def dead_links(file, known):
    """Yields (line number, reason) of every link that leads nowhere. `known` caches anchors."""
    for number, target in links(file):
        if EXTERNAL.match(target) or target.startswith("//"):
            continue
        path, _, anchor = target.partition("#")
        other = (file.parent / path).resolve() if path else file
        if not other.exists():
            yield number, f"{target} does not exist"
        elif not other.is_relative_to(ROOT):
            yield number, f"{target} is outside of the repository"
        elif anchor and other.suffix == ".md":
            if other not in known:
                known[other] = anchors(other)
            if anchor not in known[other]:
                yield number, f"{path or file.name} has no heading for #{anchor}"


def dead_footnotes(file):
    """Yields (line number, reason) of footnotes that are used and not defined, or the reverse."""
    used, defined = {}, {}
    for number, line in prose_lines(file):
        text = CODE_SPAN.sub("", line)
        definition = FOOTNOTE.match(text)
        if definition:
            defined[definition.group(1)] = number
        for match in FOOTNOTE_USE.finditer(text):
            used.setdefault(match.group(1), number)
    for name in used.keys() - defined.keys():
        yield used[name], f"footnote {name} is not defined"
    for name in defined.keys() - used.keys():
        yield defined[name], f"footnote {name} is not used"


def summary_errors():
    """Yields (line number, reason) where SUMMARY.md and the pages of docs differ."""
    listed = {}
    for number, target in links(SUMMARY):
        page = (DOCS / target).resolve()
        if page in listed:
            yield number, f"{target} is listed twice, first on line {listed[page]}"
        listed.setdefault(page, number)
    for page in documents():
        if page.is_relative_to(DOCS) and page != SUMMARY and page not in listed:
            yield 1, f"{page.relative_to(DOCS)} is not listed"


def violations():
    """Yields one line for each violation."""
    known = {}
    for file in documents():
        found = list(dead_links(file, known)) + list(dead_footnotes(file))
        if file == SUMMARY:
            found += summary_errors()
        for number, reason in sorted(found):
            yield f"{file.relative_to(ROOT)}:{number}: {reason}"


def main():
    found = list(violations())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
