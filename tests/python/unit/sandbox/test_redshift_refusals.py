"""What the Redshift emulator and `make render` reject, and what they accept."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest

from sandbox.services.redshift.refusals import NotRedshift, check, functions

GOOD = """
with

sales as (

    select * from marts.fct_sales

),

counted (country, sale_count, last_paid_at) as (

    select
        country,
        cast(count(*) as bigint) as sale_count,
        max(paid_at) as last_paid_at
    from sales
    where coalesce(country, 'none') <> '' and paid_at >= cast('2026-01-01' as timestamp)
    group by country

),

final as (

    select
        counted.country,
        counted.country || ' - ' || cast(counted.sale_count as varchar(20)) as label,
        sum(counted.sale_count) over (
            order by counted.country asc
            rows between unbounded preceding and current row
        ) as running_count,
        row_number() over (order by counted.country asc) as place,
        lag(counted.sale_count) over (order by counted.country asc) as count_before,
        replace(counted.country, ' ', '') as packed,
        cast(counted.sale_count as decimal(18, 0)) as sale_count_decimal,
        datediff(second, counted.last_paid_at, getdate()) as age_seconds
    from counted
    left join marts.dim_countries as countries
        on counted.country = countries.country
    where (counted.country, 1) in (select countries.country, 1 from marts.dim_countries)

)

select * from final
"""

REFUSED = {
    "select distinct on (a) a, b from t": "DISTINCT ON does not exist",
    "select sum(a) filter (where b) from t": "FILTER (WHERE …) does not exist",
    "select * from t, lateral (select t.a) as u": "LATERAL does not exist",
    "select e from t lateral view explode(t.a) x as e": "LATERAL does not exist",
    "select * from (values (1), (2)) as v (a)": "VALUES is not a table",
    "select 1 from t where a is distinct from b": "IS DISTINCT FROM does not exist",
    "select 1 from t where a <=> b": "IS DISTINCT FROM does not exist",
    "select array[1, 2]": "arrays and subscripts",
    "select a[0] from t": "arrays and subscripts",
    "select a ->> 'b' from t": "a path into JSON",
    "select a:b from t": "a path into JSON",
    "create index i on t (a)": "only schemas, tables and views",
    "insert into t values (1) on conflict do nothing": "ON CONFLICT does not exist",
    "delete from t where a = 1 returning a": "RETURNING does not exist",
    "select sum(a) over (order by b range unbounded preceding) from t": "of ROWS",
    "select sum(a) over (partition by c order by b) from t": "needs its frame",
    "select last_value(a) over (order by b) from t": "needs its frame",
    "select rank() over (order by b rows unbounded preceding) from t": "has no frame",
    "select sum(a) over w from t window w as (partition by b)": "no name of its own",
    "select a from t except all select a from u": "EXCEPT ALL",
    "select a from t tablesample (10)": "TABLESAMPLE does not exist",
    "select a from t left semi join u on t.a = u.a": "SEMI and ANTI joins",
    "select cast(a as text) from t": "text without a length",
    "select a::varchar from t": "text without a length",
    "create table t (a varchar)": "text without a length",
    "select cast(a as string) from t": "string: the type does not exist",
    "select cast(a as char(3)) from t": "a char is filled with blanks",
    "select cast(a as decimal) from t": "a decimal without a scale",
    "select cast(a as uuid) from t": "the type does not exist",
    "select cast(a as json) from t": "the type does not exist",
    "select cast(a as bytea) from t": "the type does not exist",
    "create table t (a text[])": "the type does not exist",
    "create table t (a date) diststyle key distkey (b)": "columns of its own",
    "create table t (a date) compound sortkey (a, b)": "columns of its own",
    "select cast(a as double) from t": "double precision",
    "create table t (a serial)": "the type does not exist",
    "select 1 from t where country = 'US '": "blanks at the end",
    "select a || ' ' from t": "blanks at the end",
    "select case when a then 'yes ' end from t": "blanks at the end",
    "select upper(a) as a from t where a = 'x'": "WHERE names what this SELECT",
    "create view v.a as (select * from b) with no schema binding": "with its schema",
    "select 1 from t where a rlike 'x'": "rlike: the operator is ~",
    "select `a` from t": "not Redshift SQL",
    "select 5 div 2": "not Redshift SQL",
    "do $$ begin end $$": "do begins no statement of ours",
    "select string_agg(a, ',') from t": "write listagg",
    "select a from generate_series(1, 9) as s (a)": "{{ whole_numbers(count) }}",
    "select current_timestamp as now_at from t": "{{ dbt.current_timestamp() }}",
    "select now()": "{{ dbt.current_timestamp() }}",
    "select substr(a, 1, 2) from t": "write substring",
    "select current_user from t": "runs on the leader node alone",
    "select collect_list(a) from t": "the function collect_list",
    "select unix_seconds(a) from t": "add it to sandbox/services/redshift/functions.yml",
    "select 1 from t inner join u on zip(t.a) = u.a": "the function zip",
    "select timestamp(a) from t": "the function timestamp",
    "with b (x) as (select 1) select zip_with(x) from b": "the function zip_with",
}

PASSES = [
    GOOD,
    "create table t (a varchar(8), b decimal(18, 2), c character varying(9), d date)",
    "select a::decimal(18, 2) as a, cast(b as double precision) as b from t",
    "begin; insert into t (a, b) values ($1, $2), ($3, $4); commit",
    "set time zone to 'UTC'",
    "grant select on marts.t to role reader",
    "comment on column marts.t.a is $$says now() and 'so on '$$",
    "create external schema bronze from data catalog database 'bronze' iam_role default",
    "alter table marts.t rename to u",
    "select has_table_privilege(current_user, 'svv_table_info', 'SELECT')",
    "select * from a.b where false and current_timestamp = current_timestamp limit 0",
    "create temporary table s diststyle key distkey (a) sortkey (a) as (select 1 as a)",
    "create view v.a as (with b as (select 1 as c) select * from b) with no schema binding",
    'select element."partition" from bronze.t as whole, whole.offsets as element',
    "select a from t where a like 'x %' or left(a, 2) = right(b, 2)",
    "select a, upper(b) as c from t where t.c = 'x' and exists (select 1 as c)",
    "select country as country from t where country = 'US'",
    "select '/* now() */' as a, \"now\" from t -- now()",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_redshift_does_not_know_is_refused_with_its_page(sql: str) -> None:
    with pytest.raises(NotRedshift, match=re.escape(REFUSED[sql])) as raised:
        check(sql)

    message = str(raised.value)
    assert "\n" not in message
    assert "docs.aws.amazon.com/redshift/" in message or "functions.yml" in message


@pytest.mark.parametrize("sql", PASSES)
def test_what_redshift_knows_passes(sql: str) -> None:
    check(sql)


def test_a_second_statement_is_looked_at_too() -> None:
    with pytest.raises(NotRedshift, match="write listagg"):
        check("delete from t where a = 1; insert into t select string_agg(a, '') from u")


def test_each_function_is_listed_once_with_a_page() -> None:
    known = functions()
    names = [*known.allowed, *known.leader_node, *known.instead]

    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)
    pages = [*known.allowed.values(), *known.leader_node.values()]
    pages += [page for _, page in known.instead.values()]
    assert all(page.page.endswith(".html") and page.title for page in pages)


class Adapter:
    """The macros that dbt-redshift brings, and the statements that they would send."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        folder = files("dbt.include.redshift") / "macros"
        texts = [
            (folder / name).read_text()
            for name in ("adapters.sql", "relations.sql", "catalog/catalog.sql")
        ] + [(folder / "adapters" / "apply_grants.sql").read_text()]
        environment = jinja2.Environment(extensions=["jinja2.ext.do"])
        environment.globals.update(
            {
                "adapter": SimpleNamespace(quote='"{}"'.format),
                "config": {"bind": False},
                "load_result": lambda _name: SimpleNamespace(table=[{}]),
                "redshift__use_grants_extended": lambda: False,
                "redshift__use_show_apis": lambda: False,
                "return": lambda _value: "",
                "sql_convert_columns_in_relation": lambda _table: None,
                "statement": self._statement,
            }
        )
        self.macros: dict[str, Callable[..., str]] = {}
        for macro in re.findall(r"{%-? macro .*?endmacro -?%}", "".join(texts), re.DOTALL):
            if "validation." not in macro:
                self.macros.update(vars(environment.from_string(macro).module))

    def _statement(self, _name: str, caller: Callable[[], str], **_other: Any) -> str:
        self.sent.append(caller())
        return ""


RELATION = SimpleNamespace(schema="marts", identifier="fct_sales", database="dev")


@pytest.mark.parametrize(
    ("macro", "arguments"),
    [
        ("redshift__get_columns_in_relation_legacy", [RELATION]),
        ("redshift__list_relations_without_caching", [RELATION]),
        ("redshift__list_function_relations_without_caching", [RELATION]),
        ("redshift__get_relations", []),
        ("redshift__get_late_binding_sql", []),
        ("redshift__get_early_binding_sql", ["dev"]),
        ("redshift__get_table_owners_sql", []),
        ("redshift__get_extended_catalog_sql", []),
        ("redshift__can_select_from", ["svv_table_info"]),
        ("redshift__get_show_grant_sql", [RELATION]),
    ],
)
def test_what_the_adapter_asks_of_the_catalogue_passes(macro: str, arguments: list[Any]) -> None:
    adapter = Adapter()

    adapter.sent.append(adapter.macros[macro](*arguments))

    sent = [sql for sql in adapter.sent if "select" in sql]
    assert sent
    for sql in sent:
        check(sql)
