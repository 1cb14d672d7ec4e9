"""Every type of the databases, captured as the commands do it, is what the database says.

Fails when a value of a type becomes another one, or a type costs its table other columns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from docs.generate.parts import GENERATED, markdown, with_parts
from sandbox.services import mariadb, postgres
from sandbox.services.connect import wait_until_passed
from sandbox.settings import PROJECT
from spark_ingest.connect.profile import Connections, Registry
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.drafts.captured_columns import CapturedColumn
from spark_ingest.drafts.captured_files import added_names, names_of_changes
from spark_ingest.drafts.captured_schema import CapturedTable, read_table
from tests.python.stack.database_types import MARIADB, POSTGRESQL, Type
from tests.python.walks import Newcomer, newcomer_in

pytestmark = pytest.mark.long

PAGE = PROJECT / "docs" / "captured-types.md"
TYPES_OF_PEOPLE = (
    "create type mood as enum ('calm', 'very happy')",
    "create domain positive as integer check (value > 0)",
    "create type pair as (a int, b text)",
)


@dataclass(frozen=True)
class Server:
    """A database server with a connector.

    Attributes:
        connector: The connector's name.
        stream: What dbt calls the table.
        topic: The table's topic.
        types: Its types.
        run: Runs statements, and gives the rows of the last.
        text: What gives any value as a text.
        setup: Statements that come before all others.
    """

    connector: str
    stream: str
    topic: str
    types: Sequence[Type]
    run: Callable[..., list[list[Any]]]
    text: str
    setup: tuple[str, ...] = ()


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    with newcomer_in(tmp_path_factory.mktemp("types")) as found:
        yield found


@pytest.fixture(scope="module")
def servers(newcomer: Newcomer) -> tuple[Server, Server]:
    """Both, with a table of a column for each type: its values in the snapshot, and again."""

    def in_postgres(*statements: str) -> list[list[Any]]:
        with closing(postgres.connect(newcomer.home, "moma")) as connection:
            connection.autocommit = True
            return _run(connection.cursor(), statements)

    def in_mariadb(*statements: str) -> list[list[Any]]:
        with closing(mariadb.connect(newcomer.home)) as connection:
            connection.autocommit(True)
            relaxed = "set sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"
            return _run(connection.cursor(), (relaxed, *statements))

    found = (
        Server(
            "moma",
            "moma.samples",
            "moma.public.samples",
            POSTGRESQL,
            in_postgres,
            "{}::text",
            TYPES_OF_PEOPLE,
        ),
        Server(
            "tickit-ecomm",
            "tickit.samples",
            "tickit.ecomm.samples",
            MARIADB,
            in_mariadb,
            "cast({} as char)",
        ),
    )
    newcomer.type("sandbox up postgres mariadb")
    for server in found:
        columns = ", ".join(f"{kind.column(at)} {kind.ddl}" for at, kind in enumerate(server.types))
        made = f"create table samples (sample_id int primary key, {columns})"
        server.run(*server.setup, made, *rows(server.types, "snapshot"))
    newcomer.type("sandbox up cdc")
    for server in found:
        wait_until_passed(newcomer.home, server.connector)
        server.run(*rows(server.types, "stream"))
        wait_until_passed(newcomer.home, server.connector)
    return found


def _run(cursor: Any, statements: Sequence[str]) -> list[list[Any]]:
    for statement in statements:
        cursor.execute(statement)
    return [list(row) for row in cursor.fetchall()] if cursor.description else []


def rows(types: Sequence[Type], read_by: str) -> list[str]:
    """Inserts of rows in which each column has one of its values, and of one with none."""
    first = {"snapshot": 0, "stream": 100}[read_by]
    count = max(len(kind.values) for kind in types) + 1
    return [
        f"insert into samples values ({first + at}, "
        + ", ".join(kind.values[at] if at < len(kind.values) else "null" for kind in types)
        + ")"
        for at in range(count)
    ]


def table_of(newcomer: Newcomer, server: Server) -> CapturedTable:
    registry = SchemaRegistry(
        Connections(
            name="local",
            kafka={"bootstrap.servers": newcomer.home.bootstrap_servers},
            registry=Registry(url=newcomer.home.registry_url),
        )
    )
    return read_table(
        server.topic,
        registry.subject_schemas(f"{server.topic}-value"),
        registry.subject_schemas(f"{server.topic}-key"),
        (),
        "sample",
        added_names(),
        names_of_changes(),
    )


def in_models(
    newcomer: Newcomer, server: Server, columns: Iterable[CapturedColumn]
) -> dict[int, dict[str, str | None]]:
    """By row the texts of its columns, by their names in the database."""
    source, table = server.stream.split(".")
    texts = ", ".join(
        f"date_format({column.name}, 'yyyy-MM-dd HH:mm:ss.SSSSSS') as {column.source}"
        if column.contract == "timestamp"
        else f"cast({column.name} as string) as {column.source}"
        for column in columns
        if column.source != "sample_id"
    )
    printed = newcomer.type(
        f'sandbox sql --format json "select sample_id, {texts} '
        f'from intermediate.int_{source}__{table}_current"'
    )
    return {row.pop("sample_id"): row for row in json.loads(printed)}


def expected(server: Server, at: int, kind: Type) -> dict[int, str | None]:
    """By row what the models should have of a column, by the database's own word."""
    column = kind.column(at)
    text = kind.text or server.text
    if kind.text:
        text = server.text.format(f"({kind.text})")
    found = dict(server.run(f"select sample_id, {text.format(column)} from samples"))
    for place, value in enumerate(kind.values):
        if value in kind.nulls:
            found[place] = found[100 + place] = None
    return found


def test_every_type_is_what_the_database_says(
    newcomer: Newcomer, servers: tuple[Server, Server]
) -> None:
    parts, wrong = {}, list[str]()
    for server in servers:
        source, table = server.stream.split(".")
        newcomer.type(f"spark-ingest new-captured {server.stream}")
        newcomer.type(f"spark-ingest run {server.stream} --once")
        newcomer.type(f"dbt build --select +int_{source}__{table}_current")
        captured = table_of(newcomer, server)
        modelled = {column.source: column for column in captured.columns}
        held = in_models(newcomer, server, modelled.values())
        lines: list[list[str]] = []
        for at, kind in enumerate(server.types):
            name = kind.column(at)
            column = modelled.get(name)
            in_bronze = captured.fields.get(name, "absent")
            line = [f"`{kind.ddl}`", f"`{in_bronze}`", "left out", ""]
            if column is not None:
                got = {row: values[name] for row, values in held.items()}
                want = expected(server, at, kind)
                wrong += [
                    f"{kind.ddl}, row {row}: {want[row]!r} in the database, "
                    f"{got.get(row)!r} in the models"
                    for row in want
                    if want[row] != got.get(row)
                ]
                line[2] = f"`{column.contract}`"
                line[3] = ", ".join(f"`{value}`" for value in kind.nulls)
            lines.append(line)
        head = ["type", "in bronze", "in the models", "null in the models"]
        name = source.replace("moma", "postgresql").replace("tickit", "mariadb")
        parts[f"{name}_types"] = markdown(head, lines, numbers=False)
    assert wrong == [], "\n".join(wrong)
    whole = with_parts(PAGE.read_text(), parts)
    if os.environ.get("MILLRACE_WRITE_DOCS"):
        PAGE.write_text(whole)
    shown = {name: text for _, name, text, _ in GENERATED.findall(PAGE.read_text())}
    assert shown == {name: "\n".join(part) + "\n" for name, part in parts.items()}
