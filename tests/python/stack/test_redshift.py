"""The Redshift emulator does what Redshift's documentation says, through its own driver.

Each rule names its page of the Amazon Redshift Database Developer Guide.

Fails when the emulator gives another value than Redshift documents, or accepts what it refuses.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow.parquet
import pytest
import redshift_connector
import yaml
from redshift_connector.core import Connection
from redshift_connector.error import Error, ProgrammingError

from sandbox.processes.process import read_record
from sandbox.services import stack as services
from sandbox.services.redshift.lake import Lake, redshift_type
from sandbox.services.stack import SERVICES
from sandbox.settings import PROJECT, Home
from tests.python.conftest import Stack, make_home, program_environment
from tests.python.stack.conftest import DemoRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[list[Any]]
Ask = Callable[..., Rows]


def connect(home: Home, user: str = "millrace", password: str = "millrace") -> Connection:
    connection = redshift_connector.connect(
        host="127.0.0.1",
        port=home.ports["redshift"],
        database="dev",
        user=user,
        password=password,
        ssl=False,
    )
    connection.autocommit = True
    return connection


def ask_with(connection: Connection) -> Ask:
    def ask(*statements: str) -> Rows:
        """Run statements; the rows of the last."""
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return [list(row) for row in cursor.fetchall()] if cursor.description else []

    return ask


@pytest.fixture(scope="module")
def lake(home: Home) -> Iterator[Home]:
    """The session's lake, with the emulator in front of it."""
    try:
        services.up(home, ["redshift"])
        yield home
    finally:
        services.down(home, ["redshift"])


@pytest.fixture
def ask(lake: Home) -> Iterator[Ask]:
    with connect(lake) as connection:
        yield ask_with(connection)


def test_the_driver_meets_a_server_it_knows(lake: Home) -> None:
    # The driver reads a version, and refuses what it cannot compare.
    with connect(lake) as connection:
        assert connection.parameter_statuses[0] is not None
        assert ask_with(connection)("select 1 as one") == [[1]]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        # r_Numeric_types201, r_AVG: whole numbers stay whole.
        ("7 / 2", 3),
        ("avg(x)", 1),
        # r_DATEDIFF_function: boundaries are counted, not whole months.
        ("datediff(month, cast('2026-01-31' as date), cast('2026-02-01' as date))", 1),
        ("datediff(week, cast('2026-01-03' as date), cast('2026-01-04' as date))", 1),
        ("datediff(second, time '2026-01-01 00:00:00.9', time '2026-01-01 00:00:01.1')", 1),
        (
            "datediff(microsecond, time '1970-01-01 00:00:00', time '1969-12-31 23:59:59.999999')",
            -1,
        ),
        # r_DATEADD_function
        (
            "dateadd(second, -1, time '1970-01-01 00:00:00')",
            datetime.fromisoformat("1969-12-31T23:59:59"),
        ),
        # r_DATE_TRUNC: of a date, too, it is a timestamp.
        ("date_trunc('month', cast('2026-02-03' as date))", datetime.fromisoformat("2026-02-01")),
        # SHA2: as texts; 0 is 256, and of another number of bits there is none.
        ("sha2('ü', 256) = sha2('ü', 0) and length(sha2('ü', 224)) = 56", True),
        ("sha2('abc', 256)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("sha2('abc', 100)", ""),
        # r_CONCAT: nothing when one is missing.
        ("concat('a', cast(null as varchar(3)))", None),
        # r_EXTRACT_function: Sunday is 0.
        ("extract(dow from cast('2026-01-04' as date))", 0),
        # r_CAST_function, r_Character_types: VARCHAR(n) is cut at n bytes.
        ("cast('Zürich' as varchar(2))", "Z"),
        ("cast('Zürich' as varchar(3))", "Zü"),
        # r_Character_types: trailing blanks do not count in comparisons.
        ("cast(substring('a b', 1, 2) as varchar(4)) = cast('a' as varchar(4))", True),
        ("cast(substring('a b', 1, 2) as varchar(4)) < cast('a' as varchar(4))", False),
    ],
)
def test_an_expression_has_redshifts_value(ask: Ask, expression: str, value: object) -> None:
    # `time '…'` is short for a cast.
    cast = re.sub(r"time ('[^']*')", r"cast(\1 as timestamp)", expression)
    two_rows = "(select 1 as x union all select 2) as numbers"

    found = ask(f"select {cast} as found from {two_rows}")

    assert found[0] == [value]


def test_trailing_blanks_do_not_count_in_joins_groups_and_lists(ask: Ask) -> None:
    texts = (
        "select cast('Lyon' as varchar(9)) as city"
        " union all select cast(substring('Lyon 1', 1, 5) as varchar(9))"
    )

    assert ask(f"select count(distinct city) from ({texts}) as texts") == [[1]]
    assert ask(f"select count(*) from ({texts}) as texts group by city") == [[2]]
    assert ask(
        f"select count(*) from ({texts}) as a inner join ({texts}) as b on a.city = b.city"
    ) == [[4]]
    assert ask(f"select count(*) from ({texts}) as texts where city in ('Lyon')") == [[2]]


def test_nulls_come_last(ask: Ask) -> None:
    # r_ORDER_BY_clause
    assert ask("select x from (select 1 as x union all select null) order by x") == [[1], [None]]


def test_a_stored_text_must_fit_in_bytes(ask: Ask) -> None:
    # r_Character_types
    ask(
        "drop table if exists public.towns",
        "create table public.towns (town varchar(6))",
        "insert into public.towns select 'Zurich'",
    )

    with pytest.raises(ProgrammingError, match="value too long"):
        ask("insert into public.towns select 'Zürich'")

    ask("drop table public.towns")


def test_dist_and_sort_keys_name_columns_and_are_shown(ask: Ask) -> None:
    # r_CREATE_TABLE_NEW, r_SVV_TABLE_INFO
    ask(
        "drop table if exists public.keyed",
        "create table public.keyed diststyle key distkey (a) compound sortkey(b, a)"
        " as (select 1 as a, 2 as b)",
    )

    assert ask(
        "select diststyle, sortkey1, sortkey_num from svv_table_info where \"table\" = 'keyed'"
    ) == [["KEY(a)", "b", 2]]
    with pytest.raises(ProgrammingError, match='column "c"'):
        ask("create table public.wrong sortkey(c) as (select 1 as a)")

    ask("drop table public.keyed")


def test_a_late_binding_view_survives_its_table(ask: Ask) -> None:
    # r_CREATE_VIEW
    table = "create table public.t as (select 'x'::varchar(3) as a, 1.50::decimal(9,2) as b)"
    ask(
        "drop table if exists public.t",
        table,
        "create view public.late as (select * from public.t) with no schema binding",
        "drop table public.t",
    )
    with pytest.raises(ProgrammingError, match="does not exist"):
        ask("select * from public.late")

    assert ask(table, "select * from public.late") == [["x", Decimal("1.50")]]
    assert ask(
        "select col_name, col_type from pg_get_late_binding_view_cols()"
        " cols(view_schema name, view_name name, col_name name, col_type varchar,"
        " ordinal int) where view_name = 'late' order by ordinal"
    ) == [["a", "character varying(3)"], ["b", "numeric(9,2)"]]

    ask("drop view public.late", "drop table public.t")
    assert ask("select count(*) from rs_views.late_binding") == [[0]]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("select string_agg('a', ',')", "string_agg"),
        ("select rank_of_all(1)", "functions.yml"),
        ("select sum(1) over (order by 1)", "frame"),
        ("select distinct on (1) 1", "DISTINCT ON"),
        ("select * from generate_series(1, 3)", "generate_series"),
        ("create view public.v as select * from t with no schema binding", "schema"),
        ("create or replace view public.v as select 1 as a", "create view"),
        ("create table public.t (a integer) tablespace x", "tablespace"),
    ],
)
def test_what_is_not_redshift_is_refused(ask: Ask, statement: str, said: str) -> None:
    with pytest.raises(ProgrammingError) as refused:
        ask(statement)

    assert "Redshift emulator: " in str(refused.value)
    assert said in str(refused.value)
    # The connection goes on.
    assert ask("select 1 as one") == [[1]]


def test_a_refused_statement_ends_its_transaction_as_any_failed_one(lake: Home) -> None:
    with connect(lake) as connection:
        connection.autocommit = False
        ask = ask_with(connection)
        ask("create table public.undone as (select 1 as a)")
        with pytest.raises(ProgrammingError):
            ask("select string_agg('a', ',')")
        connection.rollback()

        assert ask(
            "select count(*) from information_schema.tables where table_name = 'undone'"
        ) == [[0]]


def test_external_tables_hold_what_spark_wrote(lake: Home, spark: SparkSession) -> None:
    # querying-iceberg: types, and the newest snapshot at each query.
    spark.sql("create schema if not exists outside")
    spark.sql("drop table if exists outside.all_types")
    spark.sql(
        "create table outside.all_types (flag boolean, small int, big bigint, ratio float,"
        " share double, money decimal(10,2), words string, raw binary, day date,"
        " moment timestamp, clock timestamp_ntz,"
        " list array<struct<place:int,name:string>>) using iceberg"
    )
    spark.sql(
        "insert into outside.all_types values (true, 1, 2, 0.5, 0.25, 3.99,"
        " 'a \"quoted\", long\nßtext', X'00ff', date'2026-01-02',"
        " timestamp'2026-01-02 03:04:05.678901', timestamp_ntz'0001-01-01 00:00:00',"
        " array(named_struct('place', 7, 'name', 'x')))"
    )
    spark.sql("insert into outside.all_types (words) values ('')")
    make = "create external schema if not exists outside from data catalog database 'outside'"
    with connect(lake) as connection:
        ask = ask_with(connection)
        ask(f"{make} iam_role default", f"{make} iam_role default")
        rows = ask("select * from outside.all_types order by small nulls last")
        elements = ask(
            'select cast(element."place" as integer) as place'
            " from outside.all_types as whole, whole.list as element"
        )
        spark.sql("delete from outside.all_types where words = ''")
        spark.sql("alter table outside.all_types add column later int")
        after = ask("select count(*) from outside.all_types")

    assert rows[0][:6] == [True, 1, 2, 0.5, 0.25, Decimal("3.99")]
    assert rows[0][6:9] == ['a "quoted", long\nßtext', "\\x00ff", date(2026, 1, 2)]
    assert rows[0][9:11] == [
        datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        datetime.fromisoformat("0001-01-01"),
    ]
    # An empty text is not a missing one.
    assert rows[1][:11] == [None] * 6 + [""] + [None] * 4
    assert elements == [[7]]
    assert after == [[1]]
    with connect(lake) as connection:
        ask = ask_with(connection)
        # A connection sees the columns of its time.
        assert ask("select later from outside.all_types") == [[None]]
        with pytest.raises(ProgrammingError, match="NO SCHEMA BINDING"):
            ask("create view public.bound as select words from outside.all_types")
        spark.sql("drop table outside.all_types")
    with connect(lake) as connection:
        ask = ask_with(connection)
        assert ask("select * from svv_external_tables where schemaname = 'outside'") == []
        ask("drop schema outside cascade")


def test_nobody_connects_as_its_owner(lake: Home) -> None:
    with pytest.raises(Error):
        connect(lake, user="stand_in", password="")


def test_it_ends_whole_when_its_server_is_killed(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = make_home(tmp_path_factory.mktemp("killed") / "sand box")
    own = Stack(home, program_environment(home))
    try:
        own.run("sandbox", "up", "redshift")
        record = read_record(SERVICES["redshift"].folder(home))
        assert record is not None
        children = psutil.Process(record.pid).children(recursive=True)
        assert children
        programs = {Path(child.exe()).parents[1] for child in children}

        psutil.Process(record.pid).kill()
        _, alive = psutil.wait_procs(children, timeout=20)

        assert not alive
        # It starts again with its data.
        own.run("sandbox", "up", "redshift")
        with socket.create_connection(("127.0.0.1", home.ports["redshift"]), timeout=5):
            pass
        if os.geteuid() == 0:
            # Root's are a copy: the killed server's is gone.
            assert not [copy for copy in programs if copy.exists()]
    finally:
        own.run("sandbox", "down", check=False)
    assert not own.run("sandbox", "status").stdout.count("ready")
    assert os.environ.get("SANDBOX_HOME") != str(home.path)


def bronze_tables() -> dict[str, bool]:
    """Each table of bronze, and whether the demo must have put rows into it."""
    tables = {
        table.get("identifier", table["name"]): table["config"].get("meta", {}).get("ingest", {})
        for file in PROJECT.glob("models/staging/*/_*__sources.yml")
        for source in yaml.safe_load(file.read_text())["sources"]
        # What dbt writes of its runs is in each engine's own state.
        if source["schema"] == "bronze"
        for table in source["tables"]
    }
    # Quarantine may be empty, and the demo captures no database, nor counts one.
    return {
        name: name not in {"quarantine", "ingest_reconciliations"} and "captured" not in ingest
        for name, ingest in sorted(tables.items())
    }


@pytest.mark.parametrize(("table", "has_rows"), bronze_tables().items())
def test_bronze_is_of_the_kind_that_redshift_reads(
    demo: DemoRun, home: Home, table: str, has_rows: bool
) -> None:
    # querying-iceberg-considerations: format version 2, Parquet, types, encodings.
    found = Lake(home.lake).table("bronze", table)

    assert found.metadata.format_version == 2
    for field in found.schema().fields:
        assert redshift_type(field.field_type), field.name
    files = [task.file for task in found.scan().plan_files()]
    assert files or not has_rows
    for file in files:
        assert str(file.file_format) == "FileFormat.PARQUET"
        footer = pyarrow.parquet.read_metadata(file.file_path.removeprefix("file:"))
        encodings = {
            encoding
            for group in range(footer.num_row_groups)
            for column in range(footer.num_columns)
            for encoding in footer.row_group(group).column(column).encodings
        }
        assert "DELTA_LENGTH_BYTE_ARRAY" not in encodings
