"""Constructs that Redshift rejects, or interprets differently from Spark.

Each rule refers to a page of the Amazon Redshift Database Developer Guide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

_GUIDE = "https://docs.aws.amazon.com/redshift/latest/dg/"


@dataclass(frozen=True)
class Page:
    """A page of the Amazon Redshift Database Developer Guide."""

    title: str
    page: str

    @property
    def url(self) -> str:
        return f"{_GUIDE}{self.page}"

    def __str__(self) -> str:
        return f"{self.title}, {self.url}"


@dataclass(frozen=True)
class Rule:
    """A construct that is rejected.

    Attributes:
        says: The error message, with the alternative.
        page: The page of the documentation.
        nodes: The syntax nodes that the rule checks.
        is_broken: Whether a node violates the rule.
    """

    says: str
    page: Page
    nodes: tuple[type[exp.Expr], ...]
    is_broken: Callable[[exp.Expr], object] = lambda _node: True


FEATURES = Page("Unsupported PostgreSQL features", "c_unsupported-postgresql-features.html")
UNSUPPORTED = Page("Unsupported PostgreSQL functions", "c_unsupported-postgresql-functions.html")
TYPES = Page("Data types", "c_Supported_data_types.html")
CHARACTERS = Page("Character types", "r_Character_types.html")
NUMBERS = Page("Numeric types", "r_Numeric_types201.html")
WINDOWS = Page("Window function syntax summary", "r_Window_function_synopsis.html")
SELECT = Page("SELECT", "r_SELECT_synopsis.html")
SELECT_LIST = Page("SELECT list", "r_SELECT_list.html")
FROM = Page("FROM clause", "r_FROM_clause30.html")
UNION = Page("UNION, INTERSECT, and EXCEPT", "r_UNION.html")
INSERT = Page("INSERT", "r_INSERT_30.html")
TABLE = Page("CREATE TABLE", "r_CREATE_TABLE_NEW.html")
VIEW = Page("CREATE VIEW", "r_CREATE_VIEW.html")
PATTERNS = Page("Pattern-matching conditions", "pattern-matching-conditions.html")
NESTED = Page("Querying semi-structured data", "query-super.html")
COMMANDS = Page("SQL commands", "c_SQL_commands.html")

_TYPES = {
    exp.DType.BIGINT, exp.DType.BOOLEAN, exp.DType.DATE, exp.DType.DECIMAL,
    exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.INT, exp.DType.SMALLINT,
    exp.DType.SUPER, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.VARBINARY,
    exp.DType.VARCHAR,
}  # fmt: skip
_BLANK_PADDED = {
    exp.DType.BPCHAR, exp.DType.CHAR, exp.DType.NCHAR, exp.DType.NVARCHAR,
}  # fmt: skip
_RANKING = (
    exp.CumeDist, exp.DenseRank, exp.Lag, exp.Lead, exp.Ntile, exp.PercentRank,
    exp.Rank, exp.RowNumber,
)  # fmt: skip
# These functions treat trailing blanks of their arguments as significant.
_PASSING_ON = (
    exp.Case, exp.Cast, exp.Coalesce, exp.Concat, exp.Greatest, exp.If, exp.Least,
    exp.Nullif,
)  # fmt: skip


def _is_table_of_values(node: exp.Expr) -> bool:
    return not isinstance(node.parent, exp.Insert)


def _windowed(window: exp.Expr) -> exp.Expr:
    function: exp.Expr = window.this
    while isinstance(function, (exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    return function


def _has_no_frame(window: exp.Expr) -> bool:
    function = _windowed(window)
    is_aggregate = isinstance(function, exp.AggFunc) and not isinstance(function, _RANKING)
    return bool(is_aggregate and window.args.get("order")) and not window.args.get("spec")


def _has_useless_frame(window: exp.Expr) -> bool:
    return isinstance(_windowed(window), _RANKING) and bool(window.args.get("spec"))


def _is_text_without_length(node: exp.Expr) -> bool:
    """In a statement of ours: dbt's merges of snapshots cast hashes and kinds of change to it."""
    return (
        node.this == exp.DType.TEXT or (node.this == exp.DType.VARCHAR and not node.expressions)
    ) and all(
        table.alias.upper() != "DBT_INTERNAL_SOURCE" for table in node.root().find_all(exp.Table)
    )


def _ends_in_blank(literal: exp.Expr) -> bool:
    if not (literal.is_string and literal.name.endswith(" ")):
        return False
    parent = literal.parent
    if isinstance(parent, exp.DPipe):
        # In the middle of a text it ends nothing.
        outer = parent.parent
        is_last = parent.expression is literal
        return is_last and not (isinstance(outer, exp.DPipe) and outer.this is parent)
    if isinstance(parent, (exp.Like, exp.ILike)):
        return False
    return isinstance(parent, _PASSING_ON) or not isinstance(parent, exp.Func)


def _names_alias_in_where(select: exp.Expr) -> bool:
    where = select.args.get("where")
    if not where:
        return False
    aliases = {
        projection.alias.lower()
        for projection in select.expressions
        if isinstance(projection, exp.Alias)
        and not (
            isinstance(projection.this, exp.Column)
            and projection.this.name.lower() == projection.alias.lower()
        )
    }
    return any(
        isinstance(node, exp.Column) and not node.table and node.name.lower() in aliases
        for node in where.walk(prune=lambda node: isinstance(node, exp.Query))
    )


def _names_bare_relation(create: exp.Expr) -> bool:
    if not create.args.get("no_schema_binding"):
        return False
    named = {cte.alias.lower() for cte in create.find_all(exp.CTE)}
    return any(
        not table.db and table.name.lower() not in named
        for table in create.expression.find_all(exp.Table)
    )


def _keys_no_column(create: exp.Expr) -> bool:
    if not isinstance(create.this, exp.Schema):
        return False
    columns = {
        column.name.lower()
        for column in create.this.expressions
        if isinstance(column, exp.ColumnDef)
    }
    keys = {
        name.name.lower()
        for key in create.find_all(exp.DistKeyProperty, exp.SortKeyProperty)
        for name in key.find_all(exp.Identifier)
    }
    return not keys <= columns


RULES = (
    Rule(
        "DISTINCT ON does not exist: number the rows and keep the first",
        SELECT_LIST,
        (exp.Distinct,),
        lambda node: node.args.get("on"),
    ),
    Rule(
        "FILTER (WHERE …) does not exist: write sum(case when … then … end)",
        Page("Aggregate functions", "c_Aggregate_Functions.html"),
        (exp.Filter,),
    ),
    Rule("LATERAL does not exist: use {{ array_rows(…) }}, or a plain join", FROM, (exp.Lateral,)),
    Rule(
        "VALUES is not a table: write select … union all select …",
        FEATURES,
        (exp.Values,),
        _is_table_of_values,
    ),
    Rule(
        "IS DISTINCT FROM does not exist: compare, and ask for nulls by themselves",
        UNSUPPORTED,
        (exp.NullSafeEQ, exp.NullSafeNEQ),
    ),
    Rule(
        "arrays and subscripts are not for models: use {{ array_rows(…) }}",
        FEATURES,
        (exp.Array, exp.Bracket),
    ),
    Rule(
        "a path into JSON is not written like this: flatten it in staging",
        NESTED,
        (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract),
    ),
    Rule("ON CONFLICT does not exist: delete, then insert", INSERT, (exp.OnConflict,)),
    Rule("RETURNING does not exist: select what was written", INSERT, (exp.Returning,)),
    Rule(
        "only schemas, tables and views are made: leave it out",
        FEATURES,
        (exp.Create,),
        lambda node: node.args["kind"] not in {"SCHEMA", "TABLE", "VIEW"},
    ),
    Rule(
        "a view WITH NO SCHEMA BINDING names each relation with its schema",
        VIEW,
        (exp.Create,),
        _names_bare_relation,
    ),
    Rule(
        "a table is spread and sorted by columns of its own: name others",
        TABLE,
        (exp.Create,),
        _keys_no_column,
    ),
    Rule(
        "a window's frame is of ROWS: RANGE and GROUPS do not exist",
        WINDOWS,
        (exp.WindowSpec,),
        lambda node: str(node.args.get("kind", "")).upper() != "ROWS",
    ),
    Rule(
        "an aggregate over ordered rows needs its frame: rows between … and …",
        WINDOWS,
        (exp.Window,),
        _has_no_frame,
    ),
    Rule(
        "a ranking function has no frame: leave it out", WINDOWS, (exp.Window,), _has_useless_frame
    ),
    Rule(
        "a window has no name of its own: write it at each function",
        SELECT,
        (exp.Select,),
        lambda node: node.args.get("windows"),
    ),
    Rule(
        "EXCEPT ALL and INTERSECT ALL do not exist: number the rows first",
        UNION,
        (exp.Except, exp.Intersect),
        lambda node: not node.args.get("distinct"),
    ),
    Rule("TABLESAMPLE does not exist: filter by a hash of the key", FROM, (exp.TableSample,)),
    Rule(
        "SEMI and ANTI joins do not exist: write where … in, or not exists",
        FROM,
        (exp.Join,),
        lambda node: {node.args.get("kind"), node.args.get("side")} & {"SEMI", "ANTI"},
    ),
    Rule(
        "text without a length is varchar(256): write varchar(n)",
        CHARACTERS,
        (exp.DataType,),
        _is_text_without_length,
    ),
    Rule(
        "a char is filled with blanks: write varchar(n)",
        CHARACTERS,
        (exp.DataType,),
        lambda node: node.this in _BLANK_PADDED,
    ),
    Rule(
        "a decimal without a scale is (18, 0) here and (10, 0) on Spark: write both numbers",
        NUMBERS,
        (exp.DataType,),
        lambda node: node.this == exp.DType.DECIMAL and len(node.expressions) != 2,
    ),
    Rule(
        "the type does not exist: take one of boolean, integer, bigint, decimal(p, s), "
        "varchar(n), date, timestamp",
        TYPES,
        (exp.DataType,),
        lambda node: node.this not in _TYPES | _BLANK_PADDED | {exp.DType.TEXT},
    ),
    Rule(
        "blanks at the end of a text do not count when it is compared: leave them out",
        CHARACTERS,
        (exp.Literal,),
        _ends_in_blank,
    ),
    Rule(
        "CONCAT takes two texts: write a || b || c",
        Page("CONCAT function", "r_CONCAT.html"),
        (exp.Concat,),
        lambda node: len(node.expressions) != 2,
    ),
    Rule(
        "IS asks nothing of a boolean in a SELECT list: write coalesce(x, false)",
        Page("Boolean type", "r_Boolean_type.html"),
        (exp.Is,),
        lambda node: (
            isinstance(node.expression, exp.Boolean)
            and isinstance(
                node.find_ancestor(exp.Where, exp.Join, exp.Having, exp.Select), exp.Select
            )
        ),
    ),
    Rule(
        "WHERE names what this SELECT gives that name: say whose column is meant",
        SELECT_LIST,
        (exp.Select,),
        _names_alias_in_where,
    ),
)

# Rules for words, anywhere in the statement.
WORDS = {
    "regexp": ("the operator is ~, and no part of models: use like", PATTERNS),
    "rlike": ("the operator is ~, and no part of models: use like", PATTERNS),
    ":": ("a path into JSON is not written like this: flatten it in staging", NESTED),
    "bytea": ("the type does not exist: bytes belong in no model", TYPES),
    "double": ("the type is called double precision: write decimal(p, s)", NUMBERS),
    "string": ("the type does not exist: write varchar(n)", TYPES),
    "tinyint": ("the type does not exist: write integer", TYPES),
}
