"""The generated parts of docs/domains: the table of domains, sample rows.

The table comes from dbt's manifest, and a unit test fails when it differs from it.
Run as a program this rewrites it; with ``--rows`` it also asks the sandbox's lake for the
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
from collections.abc import Callable, Iterator
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
Manifest = dict[str, Any]
Node = dict[str, Any]


def parse_manifest(into: Path) -> Manifest:
    """The manifest of this checkout, parsed without a Spark.

    Args:
        into: An empty folder for what dbt writes.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DBT_")}
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
    """Nodes and sources by their unique id."""
    return {**manifest["nodes"], **manifest["sources"]}


def domain_of(node: Node) -> str | None:
    """The domain whose folder holds a model, None for all that is in no domain."""
    layers = {"marts", "intermediate"}
    in_layer = node["resource_type"] == "model" and node["fqn"][1] in layers
    return str(node["fqn"][2]) if in_layer else None


def domains(manifest: Manifest) -> list[str]:
    """The folders of models/marts and models/intermediate, in alphabetical order."""
    return sorted({domain for node in manifest["nodes"].values() if (domain := domain_of(node))})


def marts(manifest: Manifest, domain: str) -> dict[str, Node]:
    """A domain's marts by name."""
    return {
        node["name"]: node
        for node in manifest["nodes"].values()
        if domain_of(node) == domain and node["fqn"][1] == "marts"
    }


def way(manifest: Manifest, domain: str) -> set[tuple[str, str]]:
    """The edges (parent, child) from the streams to the domain's models.

    Another domain's model ends the way: its own domain says where it comes from.
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
    return edges


def involved(manifest: Manifest, domain: str) -> set[str]:
    """What lies on the way, and the domain's models that read nothing."""
    ours = {n for n, node in everything(manifest).items() if domain_of(node) == domain}
    return ours.union(*way(manifest, domain))


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
                manifest["groups"][f"group.millrace.{node['config']['group']}"]["owner"]["name"]
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


def samples(text: str) -> list[tuple[str, str]]:
    """The queries of a page and the rows below each."""
    return [(found[2], found[3]) for found in SAMPLE.finditer(text)]


def with_rows(text: str, columns: dict[str, list[str]], ask: Callable[[str], str]) -> str:
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


def main() -> None:
    """Write the table of domains, and the rows that are asked for."""
    parser = argparse.ArgumentParser(description="Write the table of domains into docs/domains.")
    parser.add_argument(
        "--rows",
        nargs="*",
        metavar="MART",
        help="ask the lake for the sample rows of these marts, or of all",
    )
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        manifest = parse_manifest(Path(folder))
    overview = PAGES / "README.md"
    table = {"domains": domains_part(manifest).splitlines()}
    overview.write_text(with_parts(overview.read_text(), table))
    if wanted.rows is not None:
        with _lake() as ask:
            for page in sorted(PAGES.glob("*.md")):
                columns = {
                    name: list(node["columns"])
                    for name, node in marts(manifest, page.stem).items()
                    if name in wanted.rows or not wanted.rows
                }
                page.write_text(with_rows(page.read_text(), columns, ask))


if __name__ == "__main__":
    main()
