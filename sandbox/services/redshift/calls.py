"""Which functions a text calls, by the names that stand in it.

Read from tokens: a parser gives functions names of its own, and one name to several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType

# What stands before a parenthesis and calls nothing.
_SYNTAX = frozenset({
    "all", "and", "any", "as", "between", "by", "case", "check", "cross",
    "distinct", "distkey", "else", "encode", "except", "exists", "filter", "from",
    "full", "group", "having", "ilike", "in", "inner", "insert", "intersect", "is",
    "join", "key", "lateral", "like", "limit", "minus", "not", "null", "offset", "on",
    "or", "outer", "over", "partition", "primary", "references", "return", "select",
    "set", "similar", "some", "sortkey", "tablesample", "tblproperties", "then", "to", "top",
    "union", "unique", "using", "values", "when", "where", "with",
})  # fmt: skip
_TYPES = frozenset({
    "bpchar", "char", "character", "dec", "decimal", "double", "float", "nchar",
    "numeric", "nvarchar", "precision", "time", "timestamp", "timestamptz", "timetz",
    "varbyte", "varchar", "varying",
})  # fmt: skip
# Calls that need no parentheses.
_BARE = frozenset({
    "current_date", "current_role", "current_schema", "current_time",
    "current_timestamp", "current_user", "localtime", "localtimestamp",
    "session_user", "sysdate",
})  # fmt: skip
# Behind these stands the name of a relation, and then perhaps the names of its columns.
_BEFORE_RELATIONS = frozenset({
    "exists", "into", "references", "table", "update", "view",
})  # fmt: skip
_NAMES_NOTHING = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.PARAMETER})


def function_calls(tokens: Sequence[Token]) -> Iterator[Token]:
    """The name tokens of all calls, in the order of the text.

    ``tokens`` are one statement's, as sqlglot tokenizes it; a quoted name is no call.
    """
    for at, token in enumerate(tokens):
        if token.token_type in _NAMES_NOTHING or token.token_type == TokenType.IDENTIFIER:
            continue
        name = token.text.lower()
        following = tokens[at + 1].token_type if at + 1 < len(tokens) else None
        before = tokens[at - 1].text.lower() if at else ""
        if following != TokenType.L_PAREN:
            if name in _BARE and before not in {".", "as"} and following != TokenType.DOT:
                yield token
        elif (
            # `character varying` is one token.
            token.text.isidentifier()
            and name not in _SYNTAX
            and before not in {"as", "::"}
            and not (name in _TYPES and _follows_name(tokens, at))
            and not _names_columns(tokens, at)
        ):
            yield token


def _follows_name(tokens: Sequence[Token], at: int) -> bool:
    """Whether a column's name stands before a type, or a word that belongs to the type."""
    before = tokens[at - 1] if at else None
    # Also one that is a word elsewhere: `settings varchar(64)`.
    return before is not None and (
        before.token_type == TokenType.IDENTIFIER
        or (before.text.isidentifier() and before.text.lower() not in _SYNTAX)
    )


def _names_columns(tokens: Sequence[Token], at: int) -> bool:
    """Whether the name is a relation's or a CTE's, and a list of columns follows."""
    first = at
    while first >= 2 and tokens[first - 1].token_type == TokenType.DOT:
        first -= 2
    before = tokens[first - 1].text.lower() if first else ""
    if before in _BEFORE_RELATIONS:
        return first < 2 or tokens[first - 2].text.lower() != "lateral"
    if before not in {"with", "recursive", ","}:
        return False
    depth = 0
    for end in range(at + 1, len(tokens)):
        depth += tokens[end].token_type == TokenType.L_PAREN
        depth -= tokens[end].token_type == TokenType.R_PAREN
        if depth == 0:
            rest = tokens[end + 1 : end + 3]
            return [one.text.lower() for one in rest] == ["as", "("]
    return False
