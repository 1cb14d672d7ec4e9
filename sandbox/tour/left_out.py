"""What of the dbt project the demo leaves out.

Tests of the code (unit tests, and tests of macros, which read no table): they run on rows of
their own and say the same on every lake, so dbt, too, advises against them in production. And
captured tables that hold nothing yet: they fill when somebody captures a database (`sandbox up
cdc`), and until then all that is built from them is empty. Which these are is asked of dbt's
manifest and of the lake: no list of them is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

Manifest = Mapping[str, Any]


def unfilled(manifest: Manifest, is_filled: Callable[[str], bool]) -> list[str]:
    """The captured sources whose bronze table took nothing yet, as dbt selects them.

    ``is_filled`` says whether a table, ``schema.name``, ever took something. Returns
    ``source.table`` of each, in order.
    """
    return sorted(
        f"{source['source_name']}.{source['name']}"
        for source in manifest["sources"].values()
        if _is_captured(source) and not is_filled(f"{source['schema']}.{source['identifier']}")
    )


def readers(manifest: Manifest, sources: Collection[str]) -> set[str]:
    """The unique ids of all that reads some sources, itself or through others.

    Each source is ``source.table``.
    """
    unseen = [
        name
        for name, source in manifest["sources"].items()
        if f"{source['source_name']}.{source['name']}" in sources
    ]
    found: set[str] = set()
    while unseen:
        new = set(manifest["child_map"].get(unseen.pop(), ())) - found
        found |= new
        unseen += new
    return found


def macro_tests(manifest: Manifest) -> set[str]:
    """The unique ids of the tests that read no table."""
    return {
        name
        for name, node in manifest["nodes"].items()
        if node["resource_type"] == "test" and not node["depends_on"]["nodes"]
    }


def selection(manifest: Manifest, sources: Collection[str], group: str | None = None) -> list[str]:
    """What `dbt build` is told, so that it leaves out tests of code and readers of sources.

    Each source is ``source.table``; ``group`` is the group of models that is built, with what
    it needs; all when None.
    """
    tests = sorted(manifest["nodes"][name]["name"] for name in macro_tests(manifest))
    chosen = ["--select", f"+group:{group}"] if group else []
    no_code = ["--exclude-resource-types", "unit_test"]
    return [*chosen, *no_code, *excluded(sources, tests)]


def excluded(sources: Collection[str], tests: Sequence[str] = ()) -> list[str]:
    """What a command of dbt is told, so that it leaves out readers of sources, and tests."""
    names = [*tests, *(f"source:{name}+" for name in sources)]
    return ["--exclude", *names] if names else []


def built(manifest: Manifest, sources: Collection[str]) -> Counter[str]:
    """How many models, seeds and data tests that selection builds, by dbt's word for each."""
    out = readers(manifest, sources) | macro_tests(manifest)
    return Counter(
        node["resource_type"]
        for name, node in manifest["nodes"].items()
        if node["resource_type"] in ("model", "seed", "test") and name not in out
    )


def told(manifest: Manifest, sources: Collection[str], group: str | None = None) -> str:
    """One line: what was left out, and how it is had."""
    tests = len(manifest["unit_tests"]) + len(macro_tests(manifest))
    text = f"left out (`dbt build` has them): {tests} tests of code"
    if group is not None:
        text += f", all but the group {group}"
    models = sum(
        node["resource_type"] == "model" and (group is None or node["config"].get("group") == group)
        for name in readers(manifest, sources)
        if (node := manifest["nodes"].get(name))
    )
    if not models:
        return text
    return f"{text}, {models} models of {len(sources)} captured tables still empty"


def _is_captured(source: Mapping[str, Any]) -> bool:
    ingest = source["config"].get("meta", {}).get("ingest", {})
    return ingest.get("captured") is not None
