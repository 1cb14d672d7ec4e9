"""What stops a build says so in a few words, whatever model it is about.

Fails when such a message is longer than a person reads, or names not one command.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from docs.generate.domain_pages import Manifest
from tests.python.unit.dbt.test_dbt_macros import CompilerError, Macros
from tests.python.unit.dbt.test_increment_macros import increment, macros, recorded_read

MOST_LETTERS = 300
UUID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


def models(manifest: Manifest) -> list[Any]:
    return [
        node
        for node in manifest["nodes"].values()
        if node["resource_type"] == "model" and node["config"]["materialized"] == "incremental"
    ]


def reads_views(node: Any, manifest: Manifest) -> bool:
    """Whether it reads anything but sources and incremental models."""
    return any(
        manifest["nodes"][parent]["config"]["materialized"] != "incremental"
        for parent in node["depends_on"]["nodes"]
        if parent in manifest["nodes"]
    )


def begun(node: Any, *, is_same_table: bool, manifest: Manifest) -> Macros:
    """The macros while a model is built; all that it reads is of other code, or is not there."""
    nodes = {
        # Seeds have no parents, which dbt leaves out.
        key: {**of, "depends_on": {"nodes": [], **of["depends_on"]}}
        for key, of in manifest["nodes"].items()
        if of["resource_type"] in {"model", "seed"}
    }

    def get_relation(_database: str, schema: str, name: str) -> str | None:
        return f"{schema}.{name}" if is_same_table else None

    return macros(
        settings={"log_restarts": {}},
        adapter=SimpleNamespace(get_relation=get_relation),
        run_query=lambda _: SimpleNamespace(rows=[["millrace.code", "0" * 12]]),
        graph={"nodes": nodes, "sources": manifest["sources"]},
        context={},
        model=SimpleNamespace(**node),
        this=SimpleNamespace(schema=node["schema"], identifier=node["alias"]),
        selected_resources=[node["unique_id"]],
        invocation_args_dict={"target": "redshift-standin"},
    )


def stopped(node: Any, manifest: Manifest) -> dict[str, str]:
    """By what is wrong, the message for a model."""
    name = f"{node['schema']}.{node['alias']}"
    now = {"checksums": 2, **{f"int_a_view_of_some_length_{at}": "b" for at in range(9)}}
    before = recorded_read(name, "x", 3, 7, code=json.dumps({**now, "it": "a"}))
    settings = recorded_read(
        name, "x", 3, 7, json.dumps({"a_setting": "of many words, or a list " * 9})
    )
    common: dict[str, Any] = {"model_name": name, "code": json.dumps(now)}
    messages = {}

    def stop(what: str, *, is_same_table: bool = True, **other: Any) -> None:
        with pytest.raises(CompilerError) as raised:
            begun(node, is_same_table=is_same_table, manifest=manifest).assert_increment_fits(
                increment(**common, **other)
            )
        messages[what] = str(raised.value)

    def of(*reads: Any) -> dict[str, Any]:
        return {"reads": list(reads), "days": []}

    stop("no read point", recorded=of())
    stop("setting", recorded=of(settings))
    stop("code", recorded=of(before))
    stop("older version", recorded=of({**before, "code": None}))
    if reads_views(node, manifest):
        stop("parents of other code", is_full_refresh=True)
        stop("no parents", is_full_refresh=True, is_same_table=False)
    return messages


def test_a_message_is_short_and_names_one_command(manifest: Manifest) -> None:
    found = {node["name"]: stopped(node, manifest) for node in models(manifest)}

    assert len(found) > 10
    for name, messages in found.items():
        for what, message in messages.items():
            assert len(message) <= MOST_LETTERS, f"{name}, {what}: {message}"
            assert message.count("`") == 2, message
            assert ": run `dbt " in message
            assert message.endswith("--target redshift-standin`"), message
