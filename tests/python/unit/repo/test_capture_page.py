"""The page that captures a database has ten steps, each done and each with what it printed."""

from __future__ import annotations

import json
import re

from sandbox.services.connect import declared
from tests.python.typed_pages import CAPTURE, blocks, steps

TEXT = CAPTURE.read_text()


def test_the_page_has_ten_steps() -> None:
    assert [number for number, _ in steps(TEXT)] == list(range(1, 11))


def test_every_step_shows_what_it_printed() -> None:
    parts = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:11]
    for part in parts:
        kinds = [block.kind for block in blocks(part)]
        assert {"sql", "sh"} & set(kinds), part[:40]
        assert "text" in kinds, part[:40]


def test_the_connector_is_the_museums_with_other_names() -> None:
    (block,) = [each for each in blocks(TEXT) if each.kind == "json"]
    reported = json.loads(block.text)

    museum = declared()["moma"]

    assert {key for key in museum if reported.get(key) != museum[key]} == {
        "database.dbname",
        "slot.name",
        "topic.prefix",
    }
    assert reported.keys() == museum.keys()
