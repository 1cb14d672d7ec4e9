"""Rounds of dbt increments: the messages of the program, and their summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rich.table import Table

PREPARING = "preparing"
READY = "ready"
ROUND = "round"


@dataclass(frozen=True)
class Round:
    """One round of dbt increments.

    Attributes:
        number: From 1 on.
        seconds: How long dbt took.
        rows: How many more rows the incremental marts have.
        ages: By fact, seconds since its newest event when the round was over; None
            without events.
        ages_before: The same for the newest event that the fact had until then: as old as
            a reader saw it.
    """

    number: int
    seconds: float
    rows: int
    ages: dict[str, float | None]
    ages_before: dict[str, float | None]

    @classmethod
    def read(cls, message: dict[str, Any]) -> Round:
        """Parse a message of the rounds' program."""
        return cls(**{name: message[name] for name in cls.__dataclass_fields__})

    @property
    def age(self) -> float | None:
        """The age of the fact table that is furthest behind, in seconds."""
        return _oldest(self.ages)

    @property
    def age_before(self) -> float | None:
        """The same before this round."""
        return _oldest(self.ages_before)


@dataclass
class History:
    """What happened so far.

    Attributes:
        lags: By stream, the records that its last batch left on the broker.
    """

    rounds: list[Round] = field(default_factory=list)
    lags: dict[str, int | None] = field(default_factory=dict)

    @property
    def lag(self) -> int | None:
        """The ingest lag in records; None before the first batch."""
        known = [lag for lag in self.lags.values() if lag is not None]
        return sum(known) if known else None

    def last_line(self) -> str:
        """The last round as a log line."""
        last = self.rounds[-1]
        facts = ", ".join(
            f"{table.removeprefix('marts.')} {_seconds(age)}" for table, age in last.ages.items()
        )
        lag = "unknown" if self.lag is None else f"{self.lag:,}"
        return (
            f"round {last.number}: {last.seconds:.1f} s, {last.rows:+,} rows in marts,"
            f" age {_seconds(last.age)} ({facts}), ingest lag {lag}"
        )

    def summary(self) -> str:
        """Summary of all rounds."""
        if not self.rounds:
            return "ended before the first round"
        first, *later = self.rounds
        parts = [f"{_count(len(self.rounds), 'round')}: the first took {first.seconds:.1f} s"]
        if later:
            parts.append(_spread("the others", [one.seconds for one in later]))
        # The first round processes the backlog.
        ages = [one.age for one in later if one.age is not None]
        seen = [one.age_before for one in later[1:] if one.age_before is not None]
        if ages:
            parts.append(_spread("age after them", ages))
        if seen:
            parts.append(f"at most {max(seen):.1f} s before one")
        return "; ".join(parts)

    def table(self, title: str) -> Table:
        """The current state as a table for the terminal."""
        table = Table(title=title, title_justify="left", show_header=False)
        table.add_column()
        table.add_column(justify="right")
        if not self.rounds:
            table.add_row("rounds", "0")
            return table
        last = self.rounds[-1]
        table.add_row("rounds", f"{len(self.rounds)}")
        table.add_row("last round", f"{last.seconds:.1f} s")
        table.add_row("rows new in marts", f"{last.rows:,}")
        for name, age in last.ages.items():
            table.add_row(f"newest event in {name}", f"{_seconds(age)} old")
        ages = [one.age for one in self.rounds[1:] if one.age is not None]
        if ages:
            table.add_row("age, median and most", f"{median(ages):.1f} / {max(ages):.1f} s")
        table.add_row("ingest lag", "" if self.lag is None else f"{self.lag:,} records")
        return table


def _oldest(ages: dict[str, float | None]) -> float | None:
    known = [age for age in ages.values() if age is not None]
    return max(known) if known else None


def _seconds(age: float | None) -> str:
    return "unknown" if age is None else f"{age:.1f} s"


def _spread(name: str, values: list[float]) -> str:
    return f"{name} {median(values):.1f} s (median), {max(values):.1f} s at most"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
