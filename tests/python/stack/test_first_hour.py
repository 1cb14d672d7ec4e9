"""The first hour, from a CSV to a chart, typed from its page by somebody who has but a copy.

Fails when a command of docs/first-hour.md fails, or prints something else than stands below it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.python.typed_pages import FIRST_HOUR, blocks, do, lasting
from tests.python.walks import Newcomer, newcomer_in

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    with newcomer_in(tmp_path_factory.mktemp("hour")) as found:
        yield found


def test_the_page_leads_from_a_csv_to_a_chart(newcomer: Newcomer) -> None:
    there = blocks(FIRST_HOUR.read_text())

    for block, following in zip(there, [*there[1:], None], strict=True):
        printed = do(block, newcomer)
        if block.kind == "sh" and following is not None and following.kind == "text":
            assert lasting(printed) == lasting(following.text), block.text

    written = [each.place for each in there if each.place]
    yaml = " ".join(place for place in written if place.endswith(".yml"))
    sql = " ".join(
        place for place in written if place.endswith(".sql") and place.startswith("models/")
    )
    newcomer.type(f"yamllint --strict {yaml} models/staging/shop dbt_project.yml")
    newcomer.type("dbt --quiet --warn-error parse --no-partial-parse && dbt-bouncer")
    newcomer.type(f"sqlfluff lint {sql} models/staging/shop")
