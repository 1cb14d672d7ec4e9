"""The project says things in the words of Kafka, Iceberg, Spark and dbt, or of its own glossary.

Fails when a text or a name has a private word for something that has a term, or the glossary grows.
"""

from __future__ import annotations

import re

import pytest

from sandbox.settings import PROJECT
from tests.python.project_copy import tracked

# Private words, with the terms to choose from.
TERMS = {
    "told|tells?|untold": "reported, logged, shown",
    "misfits?": "incompatible, invalid",
    "judged?|verdicts?": "validated, validation error, result",
    "touched": "affected, changed",
    "made[ _]anew": "recreated",
    "set[ _]back": "rolled back, reset",
}
_PRIVATE = re.compile(rf"(?<![a-z])(?:{'|'.join(TERMS)})(?![a-z])", re.IGNORECASE)
# A file's position in Python; a table that lakes have.
_ALLOWED = re.compile(r"\bdef tell\(|\.tell\(|\btouched_da(?:y|ys|te)\b")
MOST_TERMS_OF_OUR_OWN = 10


def private_words(text: str) -> list[str]:
    """Each private word of a text, with its line and the terms."""
    text = _ALLOWED.sub("", text)
    return [
        f"{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}: say {_terms(match[0])}"
        for match in _PRIVATE.finditer(text)
    ]


def _terms(word: str) -> str:
    return next(terms for words, terms in TERMS.items() if re.fullmatch(words, word, re.IGNORECASE))


def test_nothing_is_said_in_private_words() -> None:
    found = []
    for path in tracked():
        name = str(path.relative_to(PROJECT))
        # This file names them; results are data.
        if path.name == "test_words.py" or "results" in path.parts or path.suffix == ".lock":
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{name}:{each}" for each in private_words(text)]
        found += [f"{name} is named {each}" for each in private_words(name)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text", ["as it was told", "def _is_judged():", "TouchedRows Verdict", "a\nset back"]
)
def test_a_private_word_is_found_in_texts_and_names(text: str) -> None:
    assert private_words(text)


@pytest.mark.parametrize("text", ["log.tell()", "state.touched_days", "retold", "installed"])
def test_other_words_are_not(text: str) -> None:
    assert not private_words(text)


def test_the_glossary_is_short() -> None:
    text = (PROJECT / "docs/architecture.md").read_text()
    glossary = text.partition("## Glossary\n")[2].partition("\n## ")[0]
    terms = [line for line in glossary.splitlines() if line.startswith("| ")][2:]
    assert 0 < len(terms) <= MOST_TERMS_OF_OUR_OWN
