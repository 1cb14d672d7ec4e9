"""What is not Redshift SQL, or says something else there than on Spark.

No server is asked: the text is parsed, held against the rules below, and each function
against `functions.yml`. Every rule names its page of the Amazon Redshift Database
Developer Guide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import yaml
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.redshift import Redshift
from sqlglot.errors import SqlglotError

from sandbox.services.redshift.calls import function_calls
from spark_ingest.errors import MillraceError

FUNCTIONS = Path(__file__).with_name("functions.yml")
_GUIDE = "https://docs.aws.amazon.com/redshift/latest/dg/"


class NotRedshift(MillraceError):
    """A statement that Redshift refuses, or reads otherwise than Spark.

    The text says which construct, what to write instead, and which page says so.
    """


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
    """A construct that is refused.

    Attributes:
        says: What is wrong, and what to write instead.
        page: Where the documentation says so.
        nodes: The parts of a statement that the rule looks at.
        is_broken: Whether such a part breaks it.
    """

    says: str
    page: Page
    nodes: tuple[type[exp.Expr], ...]
    is_broken: Callable[[exp.Expr], object] = lambda _node: True


@dataclass(frozen=True)
class Functions:
    """What `functions.yml` says.

    Attributes:
        allowed: The page of each function that may be called.
        leader_node: The page of each that may be called where no table is read.
        instead: For each that is refused by name: what to write, and the page.
    """

    allowed: dict[str, Page]
    leader_node: dict[str, Page]
    instead: dict[str, tuple[str, Page]]


FEATURES = Page(
    "Unsupported PostgreSQL features", "c_unsupported-postgresql-features.html"
)
UNSUPPORTED = Page(
    "Unsupported PostgreSQL functions", "c_unsupported-postgresql-functions.html"
)
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
# A blank at the end of what these are given is given on as a value.
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
    is_aggregate = isinstance(function, exp.AggFunc) and not isinstance(
        function, _RANKING
    )
    return bool(is_aggregate and window.args.get("order")) and not window.args.get(
        "spec"
    )


def _has_useless_frame(window: exp.Expr) -> bool:
    return isinstance(_windowed(window), _RANKING) and bool(window.args.get("spec"))


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


_RULES = (
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
    Rule(
        "LATERAL does not exist: use {{ array_rows(…) }}, or a plain join",
        FROM,
        (exp.Lateral,),
    ),
    Rule(
        "VALUES is no table: write select … union all select …",
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
    Rule(
        "ON CONFLICT does not exist: delete, then insert",
        INSERT,
        (exp.OnConflict,),
    ),
    Rule(
        "RETURNING does not exist: select what was written",
        INSERT,
        (exp.Returning,),
    ),
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
        "a ranking function has no frame: leave it out",
        WINDOWS,
        (exp.Window,),
        _has_useless_frame,
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
    Rule(
        "TABLESAMPLE does not exist: filter by a hash of the key",
        FROM,
        (exp.TableSample,),
    ),
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
        lambda node: (
            node.this == exp.DType.TEXT
            or (node.this == exp.DType.VARCHAR and not node.expressions)
        ),
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
        "WHERE names what this SELECT gives that name: say whose column is meant",
        SELECT_LIST,
        (exp.Select,),
        _names_alias_in_where,
    ),
)

_WORDS = {
    "regexp": ("the operator is ~, and no part of models: use like", PATTERNS),
    "rlike": ("the operator is ~, and no part of models: use like", PATTERNS),
    ":": ("a path into JSON is not written like this: flatten it in staging", NESTED),
    "bytea": ("the type does not exist: bytes belong in no model", TYPES),
    "double": ("the type is called double precision: write decimal(p, s)", NUMBERS),
    "string": ("the type does not exist: write varchar(n)", TYPES),
    "tinyint": ("the type does not exist: write integer", TYPES),
}
# What is not looked into: it reads nothing and computes nothing.
_COMMANDS = frozenset({
    "abort", "alter", "analyze", "begin", "call", "cancel", "comment", "commit",
    "deallocate", "drop", "end", "explain", "grant", "lock", "reset", "revoke",
    "rollback", "set", "show", "start", "truncate", "use", "vacuum",
})  # fmt: skip
_QUERIES = frozenset({
    "(", "create", "delete", "insert", "merge", "select", "update", "with",
})  # fmt: skip
_CATALOGUE = re.compile(
    r"(pg|stl|stv|svl|svv|sys)_\w+|information_schema", re.IGNORECASE
)
# How dbt asks for no row. Redshift runs it, because nothing of it is left to compute.
_NO_ROW = ["false", "and", "current_timestamp", "=", "current_timestamp"]


def check(sql: str) -> None:
    """Refuse what Redshift refuses, or reads otherwise than Spark.

    The adapter's questions about the catalogue, and commands like ``grant``, pass.

    Args:
        sql: One or more statements, as they would be sent.

    Raises:
        NotRedshift: In one line: the construct, what to write instead, the page.
    """
    if reason := _reason(sql):
        raise NotRedshift(reason)


@cache
def functions() -> Functions:
    """What `functions.yml` says."""
    said = yaml.safe_load(FUNCTIONS.read_text())
    return Functions(
        allowed={name: Page(**page) for name, page in said["functions"].items()},
        leader_node={name: Page(**page) for name, page in said["leader_node"].items()},
        instead={
            name: (instead, Page(group["title"], group["page"]))
            for group in said["refused"]
            for name, instead in group["instead"].items()
        },
    )


@lru_cache(maxsize=2048)
def _reason(sql: str) -> str | None:
    """Why the text is refused; none: it is not."""
    try:
        for tokens in _statements(Redshift().tokenize(sql)):
            if reason := _statement_reason(tokens, sql):
                return reason
    except SqlglotError as error:
        plain = re.sub(r"\x1b\[\d*m", "", str(error))
        return f"not Redshift SQL: {' '.join(plain.split())[:300]} ({COMMANDS})"
    return None


def _statements(tokens: Sequence[Token]) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _statement_reason(tokens: list[Token], sql: str) -> str | None:
    words = [token.text.lower() for token in tokens]
    if words[0] in _COMMANDS or words[:2] == ["create", "external"]:
        return None
    if words[0] not in _QUERIES:
        return f"{words[0]} begins no statement of ours: leave it out ({COMMANDS})"
    if _asks_the_catalogue(tokens):
        return None
    tokens = _without_no_row(tokens, words)
    for token in tokens:
        if token.text.lower() in _WORDS and _is_bare(token):
            says, page = _WORDS[token.text.lower()]
            return f"{token.text}: {says} ({page})"
    trees = Redshift().parser().parse(tokens, sql)
    for tree in trees:
        for node in tree.walk() if tree else ():
            for rule in _RULES:
                if isinstance(node, rule.nodes) and rule.is_broken(node):
                    part = " ".join(node.sql(dialect="redshift").split())
                    return f"{rule.says} ({rule.page}), in: {part[:120]}"
    return _call_reason(tokens)


def _call_reason(tokens: list[Token]) -> str | None:
    known = functions()
    reads = any(token.token_type == TokenType.FROM for token in tokens)
    for token in function_calls(tokens):
        name = token.text.lower()
        if name in known.allowed or (name in known.leader_node and not reads):
            continue
        if name in known.instead:
            instead, page = known.instead[name]
            return f"{name} is not for models: write {instead} ({page})"
        if name in known.leader_node:
            page = known.leader_node[name]
            return f"{name} runs on the leader node alone, where no table is ({page})"
        return (
            f"nothing says that Redshift has the function {name}: if it does, and Spark "
            "means the same by it, add it to "
            f"sandbox/services/redshift/{FUNCTIONS.name} with its page; otherwise give it "
            "a macro in macros/cross_db"
        )
    return None


def _asks_the_catalogue(tokens: list[Token]) -> bool:
    for at, token in enumerate(tokens):
        if token.token_type != TokenType.STRING and _CATALOGUE.fullmatch(token.text):
            before = tokens[at - 1].text.lower() if at else ""
            behind = tokens[at + 1].text if at + 1 < len(tokens) else ""
            if before in {"from", "join", ",", "."} or behind == ".":
                return True
    return False


def _without_no_row(tokens: list[Token], words: list[str]) -> list[Token]:
    for at in range(len(words) - len(_NO_ROW) + 1):
        if words[at : at + len(_NO_ROW)] == _NO_ROW:
            return tokens[: at + 1] + tokens[at + len(_NO_ROW) :]
    return tokens


def _is_bare(token: Token) -> bool:
    return token.token_type not in {TokenType.STRING, TokenType.IDENTIFIER}
