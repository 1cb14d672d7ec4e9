"""How the emulator translates a statement for PostgreSQL."""

from __future__ import annotations

import pytest

from sandbox.services.redshift.dialect import to_postgres
from sandbox.services.redshift.refusals import NotRedshift


def translated(sql: str) -> str:
    return " ".join(to_postgres(sql, lambda: "[]").split())


@pytest.mark.parametrize(
    "sql",
    [
        "select a, count(*) from s.t where b = 'x' group by a",
        "delete from s.t where 1 = 0",
        "alter table s.a rename to b",
        "grant select on s.t to reader",
        'drop view if exists "dev"."s"."v" cascade',
        "begin",
    ],
)
def test_what_both_say_alike_stays_as_it_is(sql: str) -> None:
    assert translated(sql) == sql


@pytest.mark.parametrize(
    ("sql", "postgres"),
    [
        (
            "select datediff(second, a, dateadd(day, 1, b)) as c from s.t",
            "select datediff('second', a, dateadd('day', 1, b)) as c from s.t",
        ),
        (
            "select cast(a || cast(b as varchar(11)) as varchar(64)) as c from s.t",
            (
                "select rs.cut((a || rs.cut((b )::text, 11)::varchar(11) )::text, 64)"
                "::varchar(64) as c from s.t"
            ),
        ),
        (
            "select cast(a as character varying(9)) as c from s.t",
            "select rs.cut((a )::text, 9)::varchar(9) as c from s.t",
        ),
        (
            'select element."partition" as p from s.t as whole, whole.offsets as element',
            (
                "select (element -> 'partition') as p from s.t as whole,"
                " jsonb_array_elements(whole.offsets) as elements (element)"
            ),
        ),
        (
            (
                "select (select listagg(f, ', ') within group (order by f)"
                " from t.s.fs as f) as fs from b.t as t"
            ),
            (
                "select (select string_agg(f, ', ' order by f) from"
                " jsonb_array_elements_text(nullif(t.s -> 'fs', 'null'::jsonb)) as f)"
                " as fs from b.t as t"
            ),
        ),
        (
            (
                "select (select listagg(f, ', ') within group (order by i)"
                " from t.s.fs as f at i) as fs from b.t as t"
            ),
            (
                "select (select string_agg(f, ', ' order by i) from (select x, n - 1 from"
                " jsonb_array_elements_text(nullif(t.s -> 'fs', 'null'::jsonb))"
                " with ordinality as l (x, n)) as f (f, i)) as fs from b.t as t"
            ),
        ),
        (
            "select * from information_schema.\"columns\" where table_name = 't'",
            "select * from rs.information_columns where table_name = 't'",
        ),
        ("set query_group to 'millrace'", "set rs.query_group to 'millrace'"),
        ("show timezone", "show timezone"),
        ("grant select on s.t to role a, group b", "grant select on s.t to a, b"),
        ("revoke select on s.t from role a", "revoke select on s.t from a"),
    ],
)
def test_what_redshift_says_otherwise_is_put_in_postgresqls_words(sql: str, postgres: str) -> None:
    assert translated(sql) == postgres


def test_texts_and_comments_are_no_code() -> None:
    sql = "select 'datediff(day, a)' as a, 'cast(a as varchar(3))' as b -- cast(x as text)"

    assert translated(sql) == sql


def test_the_values_of_a_seed_are_bound_as_the_driver_sends_them() -> None:
    sql = "insert into s.t (a, b) values ($1,$2),($3,$4)"

    assert translated(sql) == sql


def test_a_tables_layout_is_kept_beside_it() -> None:
    assert translated(
        '/* {"app": "dbt"} */ create table "dev"."s"."t" (a integer, b varchar(3))'
        " diststyle key distkey (a) compound sortkey(b, a);"
    ) == (
        'select rs.create_table($rs$create table "dev"."s"."t" (a integer, b varchar(3))'
        ' $rs$, $rs$"dev"."s"."t"$rs$, $rs$key$rs$, $rs$a$rs$,'
        " array[$rs$b$rs$, $rs$a$rs$]::text[])"
    )


def test_a_late_binding_view_becomes_a_call_with_its_query() -> None:
    assert translated("create view s.v as ( select a from s.t ) with no schema binding;") == (
        "select rs.create_late_binding_view($rs$s.v$rs$, $rs$( select a from s.t )$rs$)"
    )


def test_an_external_schema_gets_what_the_lake_lists() -> None:
    assert to_postgres(
        "create external schema if not exists b from data catalog database 'l' iam_role default",
        lambda: '[{"database": "l"}]',
    ) == (
        'select rs.create_external_schema($rs$b$rs$, $rs$l$rs$, true, $rs$[{"database": "l"}]$rs$)'
    )


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("create external schema b from kafka", "from data catalog database"),
        ("create or replace view s.v as select 1 as a", "create view"),
        ("create table s.t (a integer) interleaved sortkey(a) encode auto", "encode"),
        ("select string_agg(a, ',') from s.t", "string_agg"),
    ],
)
def test_unsupported_statements_are_rejected_with_a_message(sql: str, words: str) -> None:
    with pytest.raises(NotRedshift, match=words):
        to_postgres(sql, lambda: "[]")
