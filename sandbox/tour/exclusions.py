"""The parts of the dbt project that the demo excludes.

Unit tests and macro tests, which read no table: their result is the same on every lake, and dbt
recommends not to run them in production. And captured tables that are still empty, with their
downstream models: they fill once a database is captured (`sandbox up cdc`). Both are derived from
dbt's manifest and the lake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

Manifest = Mapping[str, Any]


def unfilled(manifest: Manifest, is_filled: Callable[[str], bool]) -> list[str]:
    """The captured sources whose bronze table never had rows, sorted.

    ``is_filled`` says whether a table, ``schema.name``, ever had rows. Returns each as
    ``source.table``, as dbt selects it.
    """
    return sorted(
        f"{source['source_name']}.{source['name']}"
        for source in manifest["sources"].values()
        if _is_captured(source) and not is_filled(f"{source['schema']}.{source['identifier']}")
    )


def readers(manifest: Manifest, sources: Collection[str]) -> set[str]:
    """The unique ids of all nodes downstream of some sources.

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
    """Arguments of `dbt build` that exclude tests of code and nodes downstream of sources.

    Each source is ``source.table``; ``group`` is the group of models to build, with its
    upstream nodes; None builds all.
    """
    tests = sorted(manifest["nodes"][name]["name"] for name in macro_tests(manifest))
    chosen = ["--select", f"+group:{group}"] if group else []
    no_code = ["--exclude-resource-types", "unit_test"]
    return [*chosen, *no_code, *excluded(sources, tests)]


def excluded(sources: Collection[str], tests: Sequence[str] = ()) -> list[str]:
    """Arguments of a dbt command that exclude tests and nodes downstream of sources."""
    names = [*tests, *(f"source:{name}+" for name in sources)]
    return ["--exclude", *names] if names else []


def built(manifest: Manifest, sources: Collection[str]) -> Counter[str]:
    """Number of models, seeds and data tests that the selection builds, by resource type."""
    out = readers(manifest, sources) | macro_tests(manifest)
    return Counter(
        node["resource_type"]
        for name, node in manifest["nodes"].items()
        if node["resource_type"] in ("model", "seed", "test") and name not in out
    )


def summary(manifest: Manifest, sources: Collection[str], group: str | None = None) -> str:
    """One line: what was excluded, and the command that includes it."""
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
