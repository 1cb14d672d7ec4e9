"""Translate Redshift SQL to PostgreSQL SQL, by small edits of the text.

Text that no rule matches is passed to PostgreSQL unchanged. ``refusals`` has checked before that
the statement is Redshift SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import Token, TokenType
from sqlglot.dialects.redshift import Redshift

from sandbox.services.redshift.refusals import NotRedshift, check

_DATE_PART_FUNCTIONS = {"dateadd", "datediff"}
# Columns of late-binding views and external tables are not in Redshift's.
_MOVED = {"information_schema.columns": "rs.information_columns"}
_COMMENT = re.compile(r"\s*(?:/\*.*?\*/\s*|--[^\n]*\n\s*)*", re.DOTALL)


def to_postgres(sql: str, listing: Callable[[], str]) -> str:
    """Translate one statement of Redshift's driver to PostgreSQL.

    ``listing`` returns the data catalog, in the format of ``lake.sql``.

    Raises:
        NotRedshift: It is not Redshift SQL, or not supported by the emulator.
    """
    text = _COMMENT.sub("", sql, count=1)
    # Values of a seed: the driver binds them to $1, $2, ..., which read as quotes.
    if re.match(r"insert\s+into\b.*\$\d", text, re.IGNORECASE | re.DOTALL):
        check(re.sub(r"\$\d+", "null", text))
        return sql
    words = _Words.of(text)
    first = words.low[:3]
    if first == ["create", "external", "schema"]:
        return _external_schema(words, listing())
    if first[:1] in (["set"], ["show"], ["reset"]):
        return _setting(words)
    if first[:1] in (["grant"], ["revoke"]):
        return _granting(words)
    check(text)
    if first[:1] == ["create"] and "table" in first:
        return _create_table(words)
    if first[:1] == ["create"] and "view" in words.low[:4]:
        return _create_view(words)
    return _edited(words)


@dataclass
class _Words:
    """A statement, its tokens and the edits to apply."""

    sql: str
    tokens: list[Token]
    low: list[str]
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, sql: str) -> _Words:
        tokens = Redshift().tokenize(sql)
        while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
            sql = sql[: tokens.pop().start]
        # A quoted name or a string literal is never a keyword.
        quoted = {TokenType.IDENTIFIER, TokenType.STRING}
        low = [f"'{t.text}" if t.token_type in quoted else t.text.lower() for t in tokens]
        return cls(sql, tokens, low)

    def text(self, first: int, last: int) -> str:
        """The text from one token to another, inclusive."""
        return self.sql[self.tokens[first].start : self.tokens[last].end + 1]

    def replace(self, first: int, last: int, text: str) -> None:
        self.edits.append((self.tokens[first].start, self.tokens[last].end + 1, text))

    def closing(self, opening: int) -> int:
        """The token that closes a parenthesis."""
        depth = 0
        for at in range(opening, len(self.low)):
            depth += (self.low[at] == "(") - (self.low[at] == ")")
            if depth == 0:
                return at
        raise NotRedshift("a parenthesis is not closed")

    def rest(self, first: int, last: int | None = None) -> _Words:
        """A part of the statement as a statement of its own."""
        return _Words.of(self.text(first, len(self.low) - 1 if last is None else last))

    def edited(self) -> str:
        out = self.sql
        for start, end, text in sorted(self.edits, reverse=True):
            out = out[:start] + text + out[end:]
        return out


def _edited(words: _Words) -> str:
    """The statement with the edits that apply to every statement."""
    low = words.low
    for at, word in enumerate(low):
        following = low[at + 1] if at + 1 < len(low) else ""
        if word in _DATE_PART_FUNCTIONS and following == "(":
            if not low[at + 2].startswith("'"):
                words.replace(at + 2, at + 2, f"'{low[at + 2]}'")
        elif word == "cast" and following == "(":
            _edit_cast(words, at)
        elif word == "listagg" and following == "(":
            _edit_listagg(words, at)
        elif following == "." and at + 2 < len(low):
            name = f"{word}.{low[at + 2]}".replace("'", "").lower()
            if name in _MOVED:
                words.replace(at, at + 2, _MOVED[name])
    _edit_unnesting(words)
    _edit_fields(words)
    return words.edited()


def _edit_cast(words: _Words, at: int) -> None:
    """``cast(x as varchar(n))`` truncates to n bytes."""
    low, end = words.low, words.closing(at + 1)
    depth, last_as = 0, None
    for here in range(at + 1, end):
        depth += (low[here] == "(") - (low[here] == ")")
        if low[here] == "as" and depth == 1:
            last_as = here
    if last_as is None or low[last_as + 1] not in {"varchar", "character varying", "text"}:
        return
    bytes_ = low[end - 2] if low[end - 1] == ")" else "256"
    words.replace(at, at + 1, "rs.cut((")
    words.replace(last_as, end, f")::text, {bytes_})::varchar({bytes_})")


def _edit_listagg(words: _Words, at: int) -> None:
    """``listagg(x, ', ') within group (order by x)`` is ``string_agg``.

    Without an order the result is undefined; PostgreSQL rejects it.
    """
    end = words.closing(at + 1)
    if words.low[end + 1 : end + 4] == ["within", "group", "("]:
        words.replace(at, at, "string_agg")
        words.replace(end, end + 3, " ")


def _edit_unnesting(words: _Words) -> None:
    """``from t, t.list as x`` and its ``x."field"`` (query-super, unnesting)."""
    low = words.low
    elements = set()
    for at in range(len(low) - 5):
        is_list = (
            low[at] == ","
            and low[at + 2] == "."
            and low[at + 4] == "as"
            and low[at - 2] == "as"
            and low[at - 1] == low[at + 1]
        )
        if is_list:
            name = low[at + 5]
            elements.add(name)
            words.replace(
                at + 1,
                at + 5,
                f"jsonb_array_elements({words.text(at + 1, at + 3)}) as {name}s ({name})",
            )
    for at in range(len(low) - 2):
        if low[at] in elements and low[at + 1] == ".":
            named = words.tokens[at + 2].text
            words.replace(at, at + 2, f"({low[at]} -> '{named}')")


def _edit_fields(words: _Words) -> None:
    """``t.struct.field`` of ``from x as t``: a field's value, as text (nested data).

    After ``from`` it is a list of texts; ``as x at i`` counts them from 0
    (query-super, unnesting).
    """
    low = words.low
    aliases = {low[at + 1] for at in range(len(low) - 1) if low[at] == "as"}
    for at in range(len(low) - 4):
        is_field = (
            low[at] in aliases and low[at + 1] == "." and low[at + 3] == "." and low[at - 1] != "."
        )
        if is_field:
            named = words.tokens[at + 4].text
            if low[at - 1] == "from":
                whole = f"{words.text(at, at + 2)} -> '{named}'"
                texts = f"jsonb_array_elements_text(nullif({whole}, 'null'::jsonb))"
                if low[at + 5 : at + 6] == ["as"] and low[at + 7 : at + 8] == ["at"]:
                    element, place = low[at + 6], low[at + 8]
                    listed = f"(select x, n - 1 from {texts} with ordinality as l (x, n))"
                    words.replace(at, at + 8, f"{listed} as {element} ({element}, {place})")
                else:
                    words.replace(at, at + 4, texts)
            else:
                words.replace(at + 3, at + 4, f" ->> '{named}'")


def _create_table(words: _Words) -> str:
    """Remove ``dist`` and ``sort``, which the emulator stores separately."""
    low = words.low
    start = low.index("table") + 1
    if low[start : start + 3] == ["if", "not", "exists"]:
        start += 3
    end = start
    while end + 1 < len(low) and low[end + 1] == ".":
        end += 2
    name, at = words.text(start, end), end + 1
    style = key = None
    sort_keys: list[str] = []
    if at < len(low) and low[at] == "(":
        at = words.closing(at) + 1
    while at < len(low) and low[at] != "as":
        last = at
        if low[at] == "diststyle":
            last = at + 1
            style = low[last]
        elif low[at] == "distkey":
            last = words.closing(at + 1)
            key = words.tokens[at + 2].text
        elif low[at] == "sortkey":
            last = words.closing(at + 1)
            sort_keys = [token.text for token in words.tokens[at + 2 : last] if token.text != ","]
        elif low[at] == "backup":
            last = at + 1
        elif low[at] not in {"compound", "interleaved"}:
            raise NotRedshift(f"the emulator does not support table attribute {low[at]}")
        words.replace(at, last, "")
        at = last + 1
    arrayed = ", ".join(_literal(key_) for key_ in sort_keys)
    statement = _edited(words)
    return (
        f"select rs.create_table({_literal(statement)}, {_literal(name)},"
        f" {_literal(style)}, {_literal(key)}, array[{arrayed}]::text[])"
    )


def _create_view(words: _Words) -> str:
    low = words.low
    if "replace" in low[:3]:
        raise NotRedshift("the emulator supports `create view`, not `create or replace view`")
    body = low.index("as") + 1
    name = words.text(low.index("view") + 1, body - 2)
    if low[-4:] != ["with", "no", "schema", "binding"]:
        statement = _edited(words)
        return f"select rs.create_view({_literal(statement)}, {_literal(name)})"
    query = _edited(words.rest(body, len(low) - 5))
    return f"select rs.create_late_binding_view({_literal(name)}, {_literal(query)})"


def _external_schema(words: _Words, listing: str) -> str:
    low = words.low
    may_exist = low[3:6] == ["if", "not", "exists"]
    named = words.tokens[6 if may_exist else 3].text
    catalog = ["from", "data", "catalog", "database"]
    at = next((i for i in range(len(low)) if low[i : i + 4] == catalog), None)
    if at is None:
        raise NotRedshift(
            "the emulator supports external schemas `from data catalog database` only"
        )
    database = words.tokens[at + 4].text
    return (
        f"select rs.create_external_schema({_literal(named)}, {_literal(database)},"
        f" {str(may_exist).lower()}, {_literal(listing)})"
    )


def _setting(words: _Words) -> str:
    """Map settings that only Redshift has to settings without effect."""
    for at, word in enumerate(words.low[:3]):
        if word in {"query_group", "enable_result_cache_for_session", "statement_timeout"}:
            words.replace(at, at, f"rs.{word}")
    return words.edited()


def _granting(words: _Words) -> str:
    """Remove the kind of the grantee, which PostgreSQL does not have (r_GRANT)."""
    for at, word in enumerate(words.low):
        if word in {"role", "group"} and words.low[at - 1] in {"to", "from", ","}:
            words.replace(at, at, "")
    return words.edited()


def _literal(text: str | None) -> str:
    if text is None:
        return "null"
    tag = "$rs$"
    while tag in text:
        tag = tag[:-1] + "x$"
    return f"{tag}{text}{tag}"
