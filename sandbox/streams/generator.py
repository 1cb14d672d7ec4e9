"""What `sandbox produce` sends: a generator for each of its commands.

A module below this folder that has a ``GENERATOR`` is found by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from sandbox.streams import STREAMS, Stream, avro_bytes
from sandbox.streams.timeline import LATE, ON_TIME, WRONG, Draw, Plan, Record, timeline
from spark_ingest.errors import ConfigurationError

SchemaIds = Mapping[str, tuple[int, int]]
"""The registry's ids of key and value schema, by the name of the stream."""
Make = Callable[[Plan, SchemaIds], Iterator[Record]]
"""Makes the records of a plan; the same plan gives the same bytes."""
Chance = Callable[[], float]
"""The next number of the seeded chance, 0 to 1."""
Row = Callable[[Chance, int, int], Mapping[str, Any]]
"""Makes one event: (chance, number, event time in ms) -> its value, by field."""


@dataclass(frozen=True)
class Generator:
    """Events of a stream, and the records that go beside them.

    Attributes:
        name: The stream whose records are the events that ``--count`` counts.
        make: The records of a plan.
        help: What `sandbox produce COMMAND --help` says of them.
        command: Its command; that of no other generator. Default: the stream's name.
        also: Names of the streams of the records that go beside the events.
        noun: What an event is, in the plural. Default: the stream's entity.
        number: What ``--first-id`` numbers.
        largest: Its largest number.
        makes_wrong: It can make events that contradict themselves (``--wrong``).
    """

    name: str
    make: Make
    help: str
    command: str = ""
    also: tuple[str, ...] = ()
    noun: str = ""
    number: str = "number"
    largest: int = 2**31 - 1
    makes_wrong: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", self.command or self.name)
        object.__setattr__(self, "noun", self.noun or self.name.partition(".")[2])

    @property
    def events(self) -> Stream:
        return STREAMS[self.name]

    @property
    def beside(self) -> tuple[Stream, ...]:
        return tuple(STREAMS[name] for name in self.also)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What a decodable event can be."""
        return (ON_TIME, LATE, WRONG) if self.makes_wrong else (ON_TIME, LATE)


def of_draws(stream: str, draws: Callable[[int, int], Draw]) -> Make:
    """Records whose bytes a generator writes itself.

    ``draws`` gives what makes one event, for the ids of key and value schema.
    """

    def make(plan: Plan, schema_ids: SchemaIds) -> Iterator[Record]:
        return timeline(plan, draws(*schema_ids[stream]))

    return make


def of_rows(stream: str, row: Row) -> Make:
    """Records of rows in the stream's schemas; its key is the field that it names."""
    return of_draws(
        stream, lambda key_id, value_id: _encoded(STREAMS[stream], key_id, value_id, row)
    )


def _encoded(stream: Stream, key_id: int, value_id: int, row: Row) -> Draw:
    # Commands that send nothing need not wait for it.
    from fastavro import parse_schema, schemaless_writer

    key_frame, value_frame = avro_bytes.frame(key_id), avro_bytes.frame(value_id)
    key_schema = parse_schema(stream.key_schema)
    value_schema = parse_schema(stream.value_schema)

    def draw(random: Chance, number: int, at: int) -> tuple[bytes, bytes]:
        values = row(random, number, at)
        key, value = BytesIO(key_frame), BytesIO(value_frame)
        for out, schema, written in (
            (key, key_schema, values[stream.key_field]),
            (value, value_schema, values),
        ):
            out.seek(0, 2)
            schemaless_writer(out, schema, written)
        return key.getvalue(), value.getvalue()

    return draw


@cache
def generators() -> Mapping[str, Generator]:
    """All generators by command, in the order of their modules.

    Raises:
        ConfigurationError: Two have one command.
    """
    folder = Path(__file__).parent
    found: dict[str, Generator] = {}
    for file in sorted(folder.glob("*/*.py")):
        module = import_module(f"sandbox.streams.{file.parent.name}.{file.stem}")
        if hasattr(module, "GENERATOR"):
            generator: Generator = module.GENERATOR
            if generator.command in found:
                raise ConfigurationError(
                    f"{file}: `sandbox produce {generator.command}` is the command of"
                    f" {found[generator.command].name} already: give GENERATOR another"
                )
            found[generator.command] = generator
    return found
