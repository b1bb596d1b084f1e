"""The examples of the book: blocks behind `<!-- run: python -->` in its pages, in the order of the page, in one namespace for each."""

import contextlib
import io
import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
BLOCK = re.compile(r"^<!-- (\w+)(?:: ([^\n]*))? -->\n```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Kinds of marks, what they say, and the lines of the blocks."""
    return [(kind, what, text) for kind, what, _, text in BLOCK.findall(page.read_text())]


PAGES = [page for page in sorted(DOCS.rglob("*.md")) if any(block[:2] == ("run", "python") for block in blocks(page))]


def has(line, printed):
    """Whether a line was printed; `...` stands for any text."""
    pattern = ".*".join(re.escape(part.strip()) for part in line.split("..."))
    return any(re.search(pattern, found) for found in printed.splitlines())


def test_the_book_has_examples():
    assert len(PAGES) >= 2, PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed = {"__name__": "example"}, None
    for kind, what, text in blocks(page):
        if kind == "file":
            (tmp_path / what).write_text(text)
        elif (kind, what) == ("run", "python"):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, str(page), "exec"), names)
            printed = out.getvalue()
        elif kind == "run":
            printed = None
        elif kind == "prints" and printed is not None:
            for line in filter(None, (line.strip() for line in text.splitlines())):
                assert has(line, printed), f"expected {line} in {printed}"
