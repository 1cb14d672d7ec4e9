"""The functions that a statement calls.

Found in the tokens: a parser normalizes function names, several of them to one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType

# Words before a parenthesis that are not function calls.
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
# Function calls without parentheses.
_BARE = frozenset({
    "current_date", "current_role", "current_schema", "current_time",
    "current_timestamp", "current_user", "localtime", "localtimestamp",
    "session_user", "sysdate",
})  # fmt: skip
# Words that are followed by a relation name and an optional column list.
_BEFORE_RELATIONS = frozenset({
    "exists", "into", "references", "table", "update", "view",
})  # fmt: skip
_NAMES_NOTHING = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.PARAMETER})


def function_calls(tokens: Sequence[Token]) -> Iterator[Token]:
    """The name tokens of all function calls, in order.

    ``tokens`` are from sqlglot's tokenizer, of one statement; a quoted name is not a call.
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
    """Whether the token before a type is a column name, or a word of the type."""
    before = tokens[at - 1] if at else None
    # Also one that is a word elsewhere: `settings varchar(64)`.
    return before is not None and (
        before.token_type == TokenType.IDENTIFIER
        or (before.text.isidentifier() and before.text.lower() not in _SYNTAX)
    )


def _names_columns(tokens: Sequence[Token], at: int) -> bool:
    """Whether it is the name of a relation or CTE, followed by a column list."""
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
