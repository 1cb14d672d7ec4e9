"""What must hold of rendered SQL before any engine sees it.

Spark: its own parser takes the text, and each function is one of `spark_functions.yml`.
Redshift: the text breaks none of the rules that the emulator goes by, each function is one
of its `functions.yml`, and sqlfluff's parser of the dialect takes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from sandbox.services.redshift.calls import function_calls
from sandbox.services.redshift.refusals import NotRedshift, check
from sandbox.settings import PROJECT
from tests.python.render.rendering import Engine, Text

SPARK_FUNCTIONS = Path(__file__).with_name("spark_functions.yml")
_LINT_PARTS = 8


@dataclass(frozen=True)
class Problem:
    """A text that a check refuses."""

    text: Text
    message: str

    def __str__(self) -> str:
        branch = "" if self.text.branch == "everything" else f", {self.text.branch}"
        kind = "asks " if self.text.kind == "query" else ""
        return f"{self.text.path} ({kind}{self.text.name}{branch}): {self.message}"


@dataclass(frozen=True)
class Checked:
    """One check of one engine's texts.

    Attributes:
        engine: Whose texts.
        check: What they were held against.
        texts: How many.
        problems: Those that were refused.
        seconds: How long it took.
    """

    engine: Engine
    check: str
    texts: int
    problems: list[Problem]
    seconds: float


class SparkParser:
    """The parser of the installed Spark."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._parser = jvm.org.apache.spark.sql.execution.SparkSqlParser()

    def reason(self, sql: str) -> str | None:
        """Why Spark does not take a text; none: it does."""
        from py4j.protocol import Py4JJavaError

        try:
            self._parser.parsePlan(sql)
        except Py4JJavaError as error:
            return str(error.java_exception.getMessage()).strip().splitlines()[0]
        return None

    def functions(self) -> set[str]:
        """The names of all functions that this Spark brings."""
        analysis = self._jvm.org.apache.spark.sql.catalyst.analysis
        names = set()
        for registry in (analysis.FunctionRegistry, analysis.TableFunctionRegistry):
            found = registry.builtin().listFunction().iterator()
            while found.hasNext():
                names.add(found.next().funcName())
        return names


@contextmanager
def spark_parser() -> Iterator[SparkParser]:
    """A JVM with Spark in it, and neither a session nor a lake."""
    from pyspark.java_gateway import launch_gateway

    launch: Callable[[], Any] = launch_gateway
    gateway = launch()
    try:
        yield SparkParser(gateway.jvm)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=30)


@cache
def spark_functions() -> dict[str, str]:
    """The functions that models may call on Spark, and the page of each."""
    return {
        name: group["page"]
        for group in yaml.safe_load(SPARK_FUNCTIONS.read_text())
        for name in group["functions"]
    }


def spark_function_reason(sql: str) -> str | None:
    """Why a text calls what is not listed for Spark; none: it does not."""
    try:
        tokens = Spark().tokenize(sql)
    except SqlglotError as error:
        return str(error)
    for token in function_calls(tokens):
        if token.text.lower() not in spark_functions():
            return (
                f"the function {token.text.lower()} is not listed: if Redshift has it too, "
                f"add it to {SPARK_FUNCTIONS.relative_to(PROJECT)} with its page; otherwise "
                "give it a macro in macros/cross_db"
            )
    return None


def redshift_reason(sql: str) -> str | None:
    """Why Redshift would refuse a text, or read it otherwise; none: it would not."""
    try:
        check(sql)
    except NotRedshift as error:
        return str(error)
    return None


def lint_redshift(texts: list[Text]) -> list[Problem]:
    """What sqlfluff's parser of Redshift's dialect does not take.

    Its rules of style are for files, and look at them with `make lint`.
    """
    from sqlfluff.core import FluffConfig, Linter

    linter = Linter(FluffConfig({"core": {"dialect": "redshift", "templater": "raw"}}))
    return [
        Problem(text, f"line {found.line_no}: {found.desc()}")
        for text in texts
        for found in linter.parse_string(text.sql).violations
    ]


def check_texts(
    engine: Engine, name: str, texts: Iterable[Text], reason_of: Callable[[str], str | None]
) -> Checked:
    """Hold texts against one check.

    Args:
        engine: Whose texts.
        name: What the check is called.
        texts: What is checked.
        reason_of: Gives the reason why a text is refused, or none.
    """
    begun = time.monotonic()
    texts = list(texts)
    problems = [Problem(text, reason) for text in texts if (reason := reason_of(text.sql))]
    return Checked(engine, name, len(texts), problems, time.monotonic() - begun)


def unlinted(texts: Mapping[Engine, list[Text]], parser: SparkParser) -> list[Checked]:
    """What all checks but sqlfluff say of both engines' texts."""
    checks: list[tuple[Engine, str, Callable[[str], str | None]]] = [
        ("spark", "parser", parser.reason),
        ("spark", "functions", spark_function_reason),
        ("redshift", "refusals", redshift_reason),
    ]
    return [check_texts(on, name, texts[on], reason) for on, name, reason in checks]


def ours(texts: Iterable[Text]) -> list[Text]:
    """Those that were written here, and are more than a command to a session.

    dbt's own tests of a column all look the same.
    """
    return [
        text
        for text in texts
        if (text.path.endswith(".sql") or "combination" in text.name)
        and text.sql.split(maxsplit=1)[0].lower() not in {"grant", "set", "show"}
    ]


class Linting:
    """sqlfluff at work on texts for Redshift, in other processes.

    Args:
        workers: Where it runs; each gets a part of the texts.
        texts: What is linted.
    """

    def __init__(self, workers: ProcessPoolExecutor, texts: list[Text]) -> None:
        self._begun = time.monotonic()
        self._count = len(texts)
        ordered = sorted(texts, key=lambda text: -len(text.sql))
        self._tasks = [
            workers.submit(lint_redshift, ordered[start::_LINT_PARTS])
            for start in range(_LINT_PARTS)
        ]

    def result(self) -> Checked:
        """What it found, when it is done."""
        problems = [problem for task in self._tasks for problem in task.result()]
        seconds = time.monotonic() - self._begun
        return Checked("redshift", "sqlfluff", self._count, problems, seconds)
