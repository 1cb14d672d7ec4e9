"""Reject what is not Redshift SQL, or has another meaning there than on Spark.

A static check without a server: the parsed statement is checked against `rules`, and each
function against `functions.yml`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import yaml
from sqlglot import Token, TokenType
from sqlglot.dialects.redshift import Redshift
from sqlglot.errors import SqlglotError

from sandbox.services.redshift.calls import function_calls
from sandbox.services.redshift.rules import COMMANDS, RULES, WORDS, Page
from spark_ingest.errors import MillraceError

__all__ = ["Functions", "NotRedshift", "Page", "check", "functions"]

FUNCTIONS = Path(__file__).with_name("functions.yml")


class NotRedshift(MillraceError):
    """A statement that Redshift rejects, or interprets differently from Spark.

    The message names the construct, the alternative and the page of the documentation.
    """


@dataclass(frozen=True)
class Functions:
    """The content of `functions.yml`.

    Attributes:
        allowed: Supported functions, with their page.
        leader_node: Functions that are allowed only if no table is read, with their page.
        instead: Rejected functions, with the alternative and the page.
    """

    allowed: dict[str, Page]
    leader_node: dict[str, Page]
    instead: dict[str, tuple[str, Page]]


# Statements that are not checked: they neither read nor compute anything.
_COMMANDS = frozenset({
    "abort", "alter", "analyze", "begin", "call", "cancel", "comment", "commit",
    "deallocate", "drop", "end", "explain", "grant", "lock", "reset", "revoke",
    "rollback", "set", "show", "start", "truncate", "unload", "use", "vacuum",
})  # fmt: skip
_QUERIES = frozenset({
    "(", "create", "delete", "insert", "merge", "select", "update", "with",
})  # fmt: skip
_CATALOGUE = re.compile(r"(pg|stl|stv|svl|svv|sys)_\w+|information_schema", re.IGNORECASE)
# dbt's query for no rows, which Redshift optimizes away.
_NO_ROW = ["false", "and", "current_timestamp", "=", "current_timestamp"]


def check(sql: str) -> None:
    """Reject what Redshift rejects, or interprets differently from Spark.

    Catalog queries of the adapter, and commands like ``grant``, are accepted. ``sql`` is one or
    more statements.

    Raises:
        NotRedshift: On one line: the construct, the alternative, the page.
    """
    if reason := _reason(sql):
        raise NotRedshift(reason)


@cache
def functions() -> Functions:
    """Load `functions.yml`."""
    content = yaml.safe_load(FUNCTIONS.read_text())
    return Functions(
        allowed={name: Page(**page) for name, page in content["functions"].items()},
        leader_node={name: Page(**page) for name, page in content["leader_node"].items()},
        instead={
            name: (instead, Page(group["title"], group["page"]))
            for group in content["refused"]
            for name, instead in group["instead"].items()
        },
    )


@lru_cache(maxsize=2048)
def _reason(sql: str) -> str | None:
    """The reason to reject the text; None if it is accepted."""
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
        if token.text.lower() in WORDS and _is_bare(token):
            says, page = WORDS[token.text.lower()]
            return f"{token.text}: {says} ({page})"
    trees = Redshift().parser().parse(tokens, sql)
    for tree in trees:
        for node in tree.walk() if tree else ():
            for rule in RULES:
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
