"""A captured table's SQL, as the project's own macros render it for an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.python.histories.options import ATTRIBUTES, Options
from tests.python.unit.dbt.test_change_histories import STREAM, context
from tests.python.unit.dbt.test_dbt_macros import Table
from tests.python.unit.dbt.test_increment_macros import FACT, increment, recorded_read


@dataclass(frozen=True)
class Names:
    """What the relations of a captured table are called.

    Attributes:
        bronze: Its records.
        changes: Its staging model.
        history: Its history.
    """

    bronze: str = "bronze"
    changes: str = "changes"
    history: str = "history"


@dataclass
class HistorySql:
    """The statements of one captured table's staging and history.

    Attributes:
        options: Of the table.
        columns: Of bronze with their types, as the source describes them.
        ask: Gives the rows of a query that a macro asks the lake.
        engine: Whose SQL the macros render.
        names: Of the relations.
        warnings: What dbt warned of.
    """

    options: Options
    columns: Mapping[str, str]
    ask: Callable[[str], Sequence[Sequence[Any]]]
    engine: str = "spark"
    names: Names = field(default_factory=Names)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = self.options
        restarts = options.log_restarts
        long = {name: f"varchar({64 if name in options.left_out else 8})" for name in ATTRIBUTES}
        types = {
            **{
                name: {"int": "integer"}.get(kind, "varchar(512)")
                for name, kind in options.key_types.items()
            },
            **long,
        }
        self._increment: dict[str, Any] = {}
        self._has_truncates = True
        self._macros = context(
            engine=self.engine,
            restarts={} if restarts is None else {STREAM.split(".")[0]: restarts},
            options=options.captured,
            columns={
                name: SimpleNamespace(name=name, data_type=kind)
                for name, kind in self.columns.items()
            },
            this=Table(self.names.history),
            target=SimpleNamespace(name="sandbox", schema="dev"),
            model=SimpleNamespace(
                resource_type="model",
                unique_id="history",
                columns={name: {"data_type": kind} for name, kind in types.items()},
                config=SimpleNamespace(materialized="incremental"),
            ),
            exceptions=SimpleNamespace(raise_compiler_error=self._stop, warn=self.warnings.append),
            run_query=lambda query: SimpleNamespace(rows=self.ask(query)),
        )
        self._macros._macros["begin_increment"] = lambda **_: self._increment
        self._macros._macros["bronze_table"] = lambda _: self.names.bronze

    @staticmethod
    def _stop(message: str) -> None:
        raise AssertionError(message)

    def changes(self) -> str:
        """The query of the staging model."""
        macros = self._macros
        names = ", ".join([*self.options.key_types, *ATTRIBUTES])
        records = macros.changes_of_records(self.names.bronze, macros.captured_stream(STREAM))
        return f"select {names}, {macros.columns_of_change()} from ({records}) as records"

    def versions(self, after: int, to: int, is_full_refresh: bool) -> str:
        """The query of the history's model.

        Args:
            after: Up to which commit it has read.
            to: The newest commit.
            is_full_refresh: It is a first build, or a full refresh.
        """
        recorded = recorded_read(FACT, STREAM, after, 7, has_truncates=self._has_truncates)
        self._increment = increment(
            is_full_refresh=is_full_refresh,
            reads={STREAM: {"after": after, "to": to}},
            recorded={"reads": [recorded], "days": []},
        )
        return str(
            self._macros.change_history(
                Table(self.names.changes),
                STREAM,
                list(self.options.key_types),
                ATTRIBUTES,
                track=self.options.track,
                ignore_null_updates=list(self.options.ignore_null_updates),
            )
        )

    def record(self) -> None:
        """Let later increments know what read points record of the last query of versions."""
        self._has_truncates = self._increment["has_truncates"]

    @property
    def is_full_refresh(self) -> bool:
        """Whether the last query of versions takes the place of the whole history."""
        return bool(self._increment["is_full_refresh"])

    def replacement(self, rows: str, columns: Sequence[str]) -> str:
        """What brings the result of the last query of versions into the history.

        Args:
            rows: The table that holds it.
            columns: Of the history.
        """
        return str(
            self._macros.replace_versions(
                self.names.history,
                rows,
                columns,
                self._increment["key"],
                self._increment["keys_to_rebuild"],
            )
        )
