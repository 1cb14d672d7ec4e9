"""What the dbt macros render, without dbt: on each engine, and for wrong settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import CodeType, SimpleNamespace
from typing import Any

import duckdb
import jinja2
import pytest

from sandbox.settings import PROJECT

ENGINES = ["spark", "redshift"]
SETTINGS: dict[str, Any] = {
    "sales_window_minutes": 10,
    "sales_window_slide_minutes": 5,
    "sales_window_time": "paid_at",
    "bare_schema_targets": ["sandbox", "production"],
    "accept_changed_code": False,
}
# Those of dbt's own that work by themselves.
_OVERRIDES = {"spark__create_view_as", "spark__persist_docs", "text_literal"}
# What Redshift does not have, or only with another meaning.
SPARK_ONLY = re.compile(r"unix_seconds|timestamp_seconds|\brange\s*\(|explode|sequence")


class CompilerError(Exception):
    """What ``exceptions.raise_compiler_error`` raises here."""


class Returned(Exception):
    """What ``return`` of a macro raises; carries the value, as dbt does it."""


class Table(str):
    """A relation: SQL writes its name, macros ask for it."""

    __slots__ = ()
    schema = "marts"

    @property
    def identifier(self) -> str:
        return str(self)


def _raise(message: str) -> None:
    raise CompilerError(message)


def _return(value: Any) -> None:
    raise Returned(value)


def _variable(settings: Mapping[str, Any], name: str, *default: Any) -> Any:
    """As dbt: a variable that nobody set is an error where there is no default."""
    return settings.get(name, *default) if default else settings[name]


def _environment() -> jinja2.Environment:
    return jinja2.Environment(extensions=["jinja2.ext.do"], undefined=jinja2.StrictUndefined)


@cache
def _compiled() -> dict[str, CodeType]:
    """Each macro by itself, as dbt compiles them.

    Under another name: a macro must find its neighbours, and itself, in the context, or what
    they return would end it too.
    """
    files = [
        file.read_text()
        for file in sorted((PROJECT / "macros").glob("*/*.sql"))
        if file.parent.name != "overrides" or file.stem in _OVERRIDES
    ]
    codes = {}
    for text, name in re.findall(r"({%-? macro (\w+).*?endmacro -?%})", "".join(files), re.DOTALL):
        renamed = text.replace(f"macro {name}", f"macro dbt_macro__{name}", 1)
        codes[name] = _environment().compile(renamed)
    return codes


class Macros:
    """The project's macros under the names that dbt gives them.

    Args:
        engine: Whose implementations ``adapter.dispatch`` finds.
        target: What ``target`` is.
        settings: The variables that differ from dbt_project.yml.
        context: What else macros find in dbt's context.
    """

    def __init__(
        self,
        engine: str = "spark",
        target: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        self._engine = engine
        self._macros: dict[str, Callable[..., Any]] = {}
        environment = _environment()
        given = dict(context or {})
        adapter = vars(given.pop("adapter", SimpleNamespace()))
        environment.globals.update(
            {
                "adapter": SimpleNamespace(dispatch=self._dispatch, **adapter),
                "exceptions": SimpleNamespace(raise_compiler_error=_raise),
                "execute": True,
                "return": _return,
                "target": target or {"name": "sandbox", "schema": "dev"},
                "var": partial(_variable, {**SETTINGS, **(settings or {})}),
                **given,
            }
        )
        codes = _compiled()
        for name in codes:
            environment.globals[name] = partial(self._call, name)
        for name, code in codes.items():
            template = jinja2.Template.from_code(environment, code, environment.globals)
            self._macros[name] = getattr(template.module, f"dbt_macro__{name}")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        try:
            return self._macros[name](*arguments, **named)
        except Returned as returned:
            return returned.args[0]

    def implementation(self, name: str) -> str:
        """The name of the macro that the engine uses for a dispatched one."""
        for prefix in (self._engine, "default"):
            if f"{prefix}__{name}" in self._macros:
                return f"{prefix}__{name}"
        raise LookupError(f"{name} has no implementation for {self._engine}")

    def _dispatch(self, name: str) -> Callable[..., Any]:
        return partial(self._call, self.implementation(name))


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 100])
def test_numbers_for_every_engine_count_from_zero(count: int) -> None:
    query = Macros("redshift").whole_numbers(count)

    numbers = duckdb.sql(f"select whole_number from ({query}) order by 1").fetchall()

    assert numbers == [(number,) for number in range(count)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("length", "slide", "windows"), [(10, 5, 2), (10, 4, 3), (10, 10, 1), (3, 10, 1)]
)
def test_an_event_is_tried_for_as_many_windows_as_there_can_be(
    engine: str, length: int, slide: int, windows: int
) -> None:
    macros = Macros(engine)

    query = macros.sliding_windows("sales", "paid_at", ["amount"], length, slide)

    assert macros.whole_numbers(windows).strip() in query


def test_redshift_is_not_given_what_only_spark_has() -> None:
    query = Macros("redshift").sliding_windows("sales", "paid_at", ["amount"], 10, 5)

    assert not SPARK_ONLY.search(query)
    assert "date_trunc('second', paid_at)" in query
    assert "dateadd(second, " in query


@pytest.mark.parametrize(
    ("engine", "element", "rows"),
    [
        ("spark", "cast(element.partition as integer) as p", "lateral view explode(whole.offsets)"),
        (
            "redshift",
            'cast(element."partition" as integer) as p',
            "from bronze.t as whole, whole.offsets as element",
        ),
    ],
)
def test_each_engine_unnests_in_its_own_way(engine: str, element: str, rows: str) -> None:
    fields = {"partition": ["p", "integer"]}

    query = Macros(engine).array_rows("bronze.t", ["id"], "offsets", fields)

    text = " ".join(query.split())
    assert text.startswith(f"select whole.id, {element} from bronze.t as whole")
    assert rows in text


def test_every_dispatched_macro_is_there_for_both_engines() -> None:
    names = {
        name
        for file in (PROJECT / "macros").glob("*/*.sql")
        for name in re.findall(r'adapter\.dispatch\("(\w+)"\)', file.read_text())
    }

    assert names
    for engine in ENGINES:
        macros = Macros(engine)
        for name in names:
            assert macros.implementation(name).endswith(f"__{name}")


def test_the_settings_of_the_sales_windows_come_from_the_variables() -> None:
    macros = Macros(
        settings={
            "sales_window_minutes": 60,
            "sales_window_slide_minutes": 15,
            "sales_window_time": "_kafka_timestamp",
        }
    )

    assert macros.sales_window() == {
        "length_minutes": 60,
        "slide_minutes": 15,
        "time_column": "_kafka_timestamp",
        "days_before": 1,
    }


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("sales_window_minutes", 0, "is 0: it must be a whole number of minutes"),
        ("sales_window_minutes", -10, "is -10: it must be a whole number of minutes"),
        ("sales_window_minutes", 7.5, "is 7.5: it must be a whole number of minutes"),
        ("sales_window_minutes", "ten", 'is "ten": it must be a whole number of minutes'),
        ("sales_window_minutes", None, "is null: it must be a whole number of minutes"),
        ("sales_window_slide_minutes", True, "is true: it must be a whole number"),
        ("sales_window_slide_minutes", 11, "is 11: it must not exceed sales_window_minutes"),
        ("sales_window_time", "paid", 'is "paid": it must be paid_at or _kafka_timestamp'),
    ],
)
def test_a_wrong_setting_stops_and_names_its_variable(
    variable: str, value: Any, reason: str
) -> None:
    with pytest.raises(CompilerError) as stopped:
        Macros(settings={variable: value}).sales_window()

    assert str(stopped.value).startswith(f"{variable} {reason}")


@pytest.mark.parametrize(
    ("target", "schema", "asked", "expected"),
    [
        ("sandbox", "dev", "marts", "marts"),
        ("production", "live", "marts", "marts"),
        ("thrift", "ada", "marts", "ada_marts"),
        ("production", "dbt_cloud_pr_1_2", "marts", "dbt_cloud_pr_1_2_marts"),
        ("thrift", "pr_7", "staging", "pr_7_staging"),
        ("sandbox", "dev", None, "dev"),
        ("thrift", "ada", None, "ada"),
    ],
)
def test_only_production_and_the_sandbox_have_bare_schemas(
    target: str, schema: str, asked: str | None, expected: str
) -> None:
    macros = Macros(target={"name": target, "schema": schema})

    assert macros.generate_schema_name(asked, node=None).strip() == expected


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "null"),
        ("Peru", "'Peru'"),
        ("Côte d'Ivoire", r"'Côte d\'Ivoire'"),
        ("a\\b", r"'a\\b'"),
        (7, "'7'"),
        ("", "''"),
    ],
)
def test_a_text_is_escaped_the_way_spark_reads_it(value: object, literal: str) -> None:
    assert Macros().text_literal(value).strip() == literal
