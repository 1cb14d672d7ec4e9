"""The generated parts of docs/domains: tables of models, lineage, sample rows.

Tables and lineage come from dbt's manifest, and a unit test fails when they differ from it.
Run as a program this rewrites them; with ``--rows`` it also asks the sandbox's lake for the
sample rows, of the named marts or of all, and adds those of a mart that has none::

    python -m docs.generate.domain_pages [--rows [MART ...]]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

from docs.generate.parts import with_parts
from sandbox.settings import PROJECT, load_home
from sandbox.tour.query import open_lake, write_table

PAGES = PROJECT / "docs/domains"
REWRITE = "python -m docs.generate.domain_pages"
SAMPLE = re.compile(r'(```\n\$ sandbox sql "([^"]+)"\n)(.*?)(```\n)', re.DOTALL)
ASKED = re.compile(r"from marts\.(\w+)")
LAYERS = ("marts", "intermediate", "staging")
# How Mermaid draws a node: round for what is declared, slanted for lists, boxes for models.
SHAPES = {
    "source": '[("{}")]',
    "seed": '[/"{}"/]',
    "model": '["{}"]',
    "exposure": '(["{}"])',
}

Manifest = dict[str, Any]
Node = dict[str, Any]


def parse_manifest(into: Path) -> Manifest:
    """The manifest of this checkout, parsed without a Spark.

    Args:
        into: An empty folder for what dbt writes.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("DBT_")
    }
    done = subprocess.run(
        [
            *(str(Path(sys.executable).parent / "dbt"), "--quiet", "parse"),
            *("--target", "lint", "--no-partial-parse"),
            *("--target-path", str(into), "--log-path", str(into)),
        ],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"dbt parse failed:\n{done.stdout}{done.stderr}")
    made: Manifest = json.loads((into / "manifest.json").read_text())
    return made


def everything(manifest: Manifest) -> dict[str, Node]:
    """Nodes, sources and exposures by their unique id."""
    return {**manifest["nodes"], **manifest["sources"], **manifest["exposures"]}


def domain_of(node: Node) -> str | None:
    """The domain whose folder holds a model, None for all that is in no domain."""
    in_layer = node["resource_type"] == "model" and node["fqn"][1] in LAYERS[:2]
    return str(node["fqn"][2]) if in_layer else None


def domains(manifest: Manifest) -> list[str]:
    """The folders of models/marts and models/intermediate, in alphabetical order."""
    return sorted(
        {domain for node in manifest["nodes"].values() if (domain := domain_of(node))}
    )


def marts(manifest: Manifest, domain: str) -> dict[str, Node]:
    """A domain's marts by name."""
    return {
        node["name"]: node
        for node in manifest["nodes"].values()
        if domain_of(node) == domain and node["fqn"][1] == "marts"
    }


def way(manifest: Manifest, domain: str) -> set[tuple[str, str]]:
    """The edges (parent, child) from the streams to the domain's models, and to exposures.

    Another domain's model ends the way: its own page shows where it comes from.
    """
    known = everything(manifest)
    ours = [name for name, node in known.items() if domain_of(node) == domain]
    edges: set[tuple[str, str]] = set()
    unseen = list(ours)
    while unseen:
        child = unseen.pop()
        for parent in manifest["parent_map"][child]:
            if (parent, child) in edges or parent not in known:
                continue
            edges.add((parent, child))
            if domain_of(known[parent]) in {domain, None}:
                unseen.append(parent)
    return edges | {
        (parent, child)
        for parent in ours
        for child in manifest["child_map"][parent]
        if child.startswith("exposure.")
    }


def involved(manifest: Manifest, domain: str) -> set[str]:
    """What lies on the way, and the domain's models that read nothing."""
    ours = {n for n, node in everything(manifest).items() if domain_of(node) == domain}
    return ours.union(*way(manifest, domain))


def grain(node: Node) -> str:
    """What one row is, as the first sentence of a model's description says it."""
    text = " ".join(node["description"].split())
    first = text.split(". ")[0].rstrip(".")
    return first.removeprefix("One row per ")


def models_part(manifest: Manifest, domain: str) -> str:
    """A table of the domain's models and their staging, marts first."""
    known = everything(manifest)
    on_the_way = involved(manifest, domain)
    shown = [
        node
        for name, node in known.items()
        if name in on_the_way
        and node["resource_type"] == "model"
        and domain_of(node) in {domain, None}
    ]
    shown.sort(key=lambda node: (LAYERS.index(node["fqn"][1]), node["name"]))
    lines = ["| model | one row per |", "|---|---|"]
    for node in shown:
        file = os.path.relpath(PROJECT / node["original_file_path"], PAGES)
        lines.append(f"| [`{node['name']}`]({file}) | {grain(node)} |")
    return "\n".join(lines) + "\n"


def lineage_part(manifest: Manifest, domain: str) -> str:
    """A Mermaid picture of the way from the streams to what is read."""
    known = everything(manifest)
    edges = way(manifest, domain)
    lines = ["```mermaid", "flowchart LR"]
    for name in sorted(involved(manifest, domain), key=_depth(edges)):
        node = known[name]
        label = str(node.get("label") or node["name"])
        if node["resource_type"] == "source":
            label = f"{node['source_name']}.{node['name']}"
        shape = SHAPES[node["resource_type"]].format(label)
        lines.append(f"    {_mermaid_id(name)}{shape}")
    lines += [
        f"    {_mermaid_id(parent)} --> {_mermaid_id(child)}"
        for parent, child in sorted(edges)
    ]
    return "\n".join([*lines, "```"]) + "\n"


def domains_part(manifest: Manifest) -> str:
    """A table of the domains: who answers for them, what they read, what they give.

    They read streams; one that has none reads what other domains give.
    """
    known = everything(manifest)
    lines = ["| domain | owner | reads | marts |", "|---|---|---|---|"]
    for domain in domains(manifest):
        on_the_way = involved(manifest, domain)
        read = sorted(
            f"`{node['source_name']}.{node['name']}`"
            for name, node in manifest["sources"].items()
            if name in on_the_way
        ) or sorted(
            f"`{known[name]['name']}`"
            for name in on_the_way
            if domain_of(known[name]) not in {domain, None}
        )
        ours = marts(manifest, domain)
        owners = sorted(
            {
                manifest["groups"][f"group.millrace.{node['config']['group']}"][
                    "owner"
                ]["name"]
                for node in known.values()
                if domain_of(node) == domain and node["config"].get("group")
            }
        )
        names = ", ".join(f"`{name}`" for name in sorted(ours)) or "none"
        lines.append(
            f"| [{domain}]({domain}.md) | {', '.join(owners)}"
            f" | {', '.join(read) or 'nothing'} | {names} |"
        )
    return "\n".join(lines) + "\n"


def generated_parts(manifest: Manifest, page: Path) -> dict[str, list[str]]:
    """The lines that belong between the markers of a page, by the marker's name."""
    if page.name == "README.md":
        return {"domains": domains_part(manifest).splitlines()}
    return {
        "models": models_part(manifest, page.stem).splitlines(),
        "lineage": lineage_part(manifest, page.stem).splitlines(),
    }


def samples(text: str) -> list[tuple[str, str]]:
    """The queries of a page and the rows below each."""
    return [(found[2], found[3]) for found in SAMPLE.finditer(text)]


def with_rows(
    text: str, columns: dict[str, list[str]], ask: Callable[[str], str]
) -> str:
    """A page with rows of marts, in their samples or in new ones at its end.

    Args:
        text: The page.
        columns: Of the marts to show: their columns by name.
        ask: Gives a query's rows.
    """

    def fresh(found: re.Match[str]) -> str:
        asked = ASKED.search(found[2])
        if asked is None or asked[1] not in columns:
            return found[0]
        return found[1] + ask(found[2]) + found[4]

    shown = {mart for query, _ in samples(text) for mart in ASKED.findall(query)}
    for mart, (first, *_) in sorted(columns.items()):
        if mart not in shown:
            query = f"select * from marts.{mart} order by {first} limit 3"
            text += f'\n```\n$ sandbox sql "{query}"\n```\n'
    return SAMPLE.sub(fresh, text)


@contextmanager
def _lake() -> Iterator[Callable[[str], str]]:
    """What gives a query's rows as `sandbox sql` writes them, with one Spark for all."""
    spark = open_lake(load_home(), "docs/domains")

    def ask(query: str) -> str:
        rows = StringIO()
        write_table(spark.sql(query), rows)
        return rows.getvalue()

    yield ask
    spark.stop()


def _mermaid_id(name: str) -> str:
    kind, _, *rest = name.split(".")
    # Two kinds may have one name, and a word like `end` alone would be Mermaid's own.
    return "_".join([kind, *rest])


def _depth(edges: Iterable[tuple[str, str]]) -> Callable[[str], tuple[int, str]]:
    """An order in which every node stands behind its parents."""
    parents: dict[str, list[str]] = {}
    for parent, child in edges:
        parents.setdefault(child, []).append(parent)

    def steps(name: str) -> int:
        return 1 + max((steps(parent) for parent in parents.get(name, [])), default=0)

    return lambda name: (steps(name), name)


def main() -> None:
    """Write the generated parts of each page."""
    parser = argparse.ArgumentParser(
        description="Write the generated parts of docs/domains."
    )
    parser.add_argument(
        "--rows",
        nargs="*",
        metavar="MART",
        help="ask the lake for the sample rows of these marts, or of all",
    )
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        manifest = parse_manifest(Path(folder))
    pages = sorted(PAGES.glob("*.md"))
    for page in pages:
        page.write_text(with_parts(page.read_text(), generated_parts(manifest, page)))
    if wanted.rows is not None:
        with _lake() as ask:
            for page in pages:
                columns = {
                    name: list(node["columns"])
                    for name, node in marts(manifest, page.stem).items()
                    if name in wanted.rows or not wanted.rows
                }
                page.write_text(with_rows(page.read_text(), columns, ask))


if __name__ == "__main__":
    main()
