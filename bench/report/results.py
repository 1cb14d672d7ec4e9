"""Results as files keep them: what all benchmarks share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from spark_ingest.errors import ConfigurationError


class Kept(BaseModel):
    """A part of results; a file with other keys is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Machine(Kept):
    """Where it was measured.

    Attributes:
        processor: As the system names it.
        cores: Logical ones.
        memory_gib: Of the machine.
        system: Operating system and its release.
        versions: Of Python, Java, Spark, Iceberg and dbt.
    """

    processor: str
    cores: int
    memory_gib: float
    system: str
    versions: dict[str, str]


class About(Kept):
    """When, where and how one part was measured.

    Attributes:
        measured_on: The day, ISO.
        minutes: What it took, all in all.
        command: As it can be typed again.
        machine: Where.
        load_before: Load average of the machine when it began, over a minute.
    """

    measured_on: str
    minutes: float
    command: str
    machine: Machine
    load_before: float


_LINE = 100
T = TypeVar("T", bound=Kept)


def write_kept(results: Kept, file: Path) -> None:
    """Write results to their file, in lines that a diff can show."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = _lines(results.model_dump(mode="json"))
    file.write_text("\n".join(lines) + "\n")


def _lines(value: Any) -> list[str]:
    """JSON, indented; entries that fit on a line share it."""
    if not isinstance(value, dict | list):
        return [json.dumps(value, ensure_ascii=False)]
    entries = (
        [(f"{json.dumps(key)}: ", item) for key, item in value.items()]
        if isinstance(value, dict)
        else [("", item) for item in value]
    )
    found: list[str] = []
    is_short = False
    for number, (name, item) in enumerate(entries, 1):
        first, *more = _lines(item)
        entry = [name + first, *more]
        entry[-1] += "," if number < len(entries) else ""
        if is_short and not more and len(found[-1]) + len(entry[0]) < _LINE:
            found[-1] += f" {entry[0]}"
        else:
            found += entry
        is_short = not more
    begin, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    if len(found) <= 1:
        return ["".join([begin, *found, end])]
    return [begin, *(f" {line}" for line in found), end]


def read_kept(file: Path, kind: type[T], command: str) -> T:
    """Results from their file.

    Args:
        file: Where they are.
        kind: What it holds.
        command: What writes it.

    Raises:
        ConfigurationError: It is missing, or not one.
    """
    try:
        return kind.model_validate_json(file.read_text())
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{file} does not exist: run `{command}` first"
        ) from error
    except ValidationError as error:
        raise ConfigurationError(
            f"{file} holds no results of `{command}`: run it again"
        ) from error
