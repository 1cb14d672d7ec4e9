"""What an exposure says of its publication, and what it knows when it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_ingest.errors import ConfigurationError
from spark_ingest.publish.publications import Publication, read_publications, select_publications

SALES: dict[str, Any] = {"topic": "out.sales", "key": ["region", "day"]}


def column(name: str, *constraints: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"The  {name}.",
        "constraints": [{"type": each} for each in constraints],
    }


def mart(**changed: Any) -> dict[str, Any]:
    columns = (
        column("region", "not_null"),
        column("day", "primary_key"),
        column("amount"),
        column("_commit_id"),
    )
    return {
        "name": "sales",
        "schema": "marts",
        "alias": "sales",
        "description": "A day of\n a region.",
        "contract": {"enforced": True},
        "config": {"materialized": "table"},
        "columns": {each["name"]: each for each in columns},
        **changed,
    }


def exposure(publish: dict[str, Any], *models: str, name: str = "out") -> dict[str, Any]:
    return {
        "name": name,
        "original_file_path": "models/marts/_x__exposures.yml",
        "config": {"meta": {"publish": publish}},
        "depends_on": {"nodes": list(models or ("model.m.sales",))},
    }


def read(
    tmp_path: Path, *exposures: dict[str, Any], model: dict[str, Any] | None = None
) -> list[Publication]:
    manifest = tmp_path / "manifest.json"
    source = {
        "source_name": "shop",
        "name": "orders",
        "config": {"meta": {"ingest": {"topic": "shop.orders"}}},
    }
    manifest.write_text(
        json.dumps(
            {
                "nodes": {"model.m.sales": model or mart(), "model.m.other": mart()},
                "sources": {"source.m.shop.orders": source},
                "exposures": {
                    **{of["name"]: of for of in exposures},
                    "page": {"config": {"meta": {}}},
                },
            }
        )
    )
    return read_publications(manifest)


def test_what_is_published_is_the_contract_without_the_bookkeeping_of_ingest(
    tmp_path: Path,
) -> None:
    (found,) = read(tmp_path, exposure(SALES))

    assert found.mart == "marts.sales"
    assert [(c.name, c.is_required) for c in found.columns] == [
        ("region", True),
        ("day", True),
        ("amount", False),
    ]
    assert found.columns[0].description == "The region."
    assert found.subjects == ("out.sales-key", "out.sales-value")
    assert found.meta.envelope == "upsert"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"key": ["regoin"]}, "key: 'regoin' is not a column of sales, which has region, day"),
        ({"key": ["amount"]}, "key: amount is nullable: add a not_null constraint"),
        ({"key": ["_commit_id"]}, "key: '_commit_id' is not a column"),
        ({"key": []}, "key: Tuple should have at least 1 item"),
        ({"topics": "x"}, "topics: Extra inputs are not permitted"),
        ({"envelope": "append"}, "envelope: Input should be 'upsert' or 'changes'"),
        ({"topic": "shop.orders"}, "topic: shop.orders is the topic that source shop.orders reads"),
    ],
)
def test_a_block_that_is_not_right_is_refused_by_its_key(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, exposure({**SALES, **changed}))
    reported = str(refused.value)
    head = "models/marts/_x__exposures.yml: exposure out: config.meta.publish."
    assert reported.startswith(f"{head}{said}")


@pytest.mark.parametrize(
    ("models", "changed", "said"),
    [
        (("model.m.sales", "model.m.other"), {}, "depends_on has 2 models"),
        (("source.m.shop.orders",), {}, "depends_on has 0 models"),
        ((), {"contract": {"enforced": False}}, "sales has no enforced contract"),
        ((), {"config": {"materialized": "view"}}, "sales is a view"),
    ],
)
def test_a_mart_that_cannot_be_published_is_refused(
    tmp_path: Path, models: tuple[str, ...], changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read(tmp_path, exposure(SALES, *models), model=mart(**changed))


def test_two_exposures_never_write_one_topic(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"out\.sales is the topic that exposure a writes"):
        read(tmp_path, exposure(SALES, name="a"), exposure(SALES, name="b"))


def test_a_publication_is_selected_by_exposure_or_topic(tmp_path: Path) -> None:
    other = exposure({**SALES, "topic": "out.more"}, name="more")
    found = read(tmp_path, exposure(SALES), other)

    def names(*selectors: str) -> list[str]:
        return [each.name for each in select_publications(found, selectors)]

    assert names() == ["more", "out"]
    assert names("out.more") == ["more"]
    assert names("out") == ["out"]
    with pytest.raises(ConfigurationError, match="'x' selects no publication; there are"):
        names("x")
    with pytest.raises(ConfigurationError, match="no dbt exposure declares"):
        select_publications([], [])
