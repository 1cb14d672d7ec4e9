"""Random Avro schemas, versions of them, and records of these, sound and damaged."""

from __future__ import annotations

import random
import struct
from typing import Any

_PLAIN = ("boolean", "int", "long", "float", "double", "bytes", "string")
_WIDER = {"int": "long", "float": "double"}
_TEXTS = ("", "a", "Ada", "żółw", "日本語", "🐢 and \x00", "x" * 70, "né" * 40)


class Schemas:
    """Makes schemas; each type that has a name has one of its own."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0

    def name(self, first: str) -> str:
        self._count += 1
        return f"{first}{self._count}"

    def versions(self) -> list[dict[str, Any]]:
        """A record's schema and one or two that followed it, which all fit one table."""
        fields = [
            (self.name("f"), self.kind(3)) for _ in range(self._chance.randint(4, 9))
        ]
        # Every type is somewhere.
        fields += [(self.name("f"), self._leaf(kind)) for kind in (*_PLAIN, "decimal")]
        found = [_record("Top", fields)]
        for _ in range(self._chance.randint(1, 2)):
            fields = [
                (name, self._later(kind))
                for name, kind in fields
                if self._chance.random() > 0.1
            ]
            fields.append((self.name("f"), self.kind(2)))
            self._chance.shuffle(fields)
            found.append(_record("Top", fields))
        return found

    def kind(self, deep: int) -> Any:
        """A type of several parts, as deep as this, or a plain one."""
        choice = self._chance.random()
        if deep == 0 or choice < 0.3:
            return self._leaf()
        if choice < 0.45:
            return ["null", self._several(deep)]
        if choice < 0.55:
            return self._union(deep)
        return self._several(deep)

    def _several(self, deep: int) -> Any:
        choice = self._chance.randrange(4)
        if choice == 0:
            return {"type": "array", "items": self.kind(deep - 1)}
        if choice == 1:
            return {"type": "map", "values": self.kind(deep - 1)}
        if choice == 2:
            count = self._chance.randint(1, 3)
            fields = [(self.name("f"), self.kind(deep - 1)) for _ in range(count)]
            return _record(self.name("R"), fields)
        return self._leaf()

    def _union(self, deep: int) -> list[Any]:
        branches: list[Any] = self._chance.sample(
            ["long", "double", "string", "boolean"], 2
        )
        branches.append(
            _record(self.name("R"), [(self.name("f"), self.kind(deep - 1))])
        )
        branches.append({"type": "array", "items": self.kind(deep - 1)})
        self._chance.shuffle(branches)
        if {"long", "double"} <= {b for b in branches if isinstance(b, str)}:
            branches.remove("double")
        branches.insert(self._chance.randint(0, len(branches)), "null")
        return branches

    def _leaf(self, kind: str | None = None) -> Any:
        others = (
            "decimal",
            "decimal",
            "fixed",
            "enum",
            "date",
            "millis",
            "micros",
            "local",
        )
        kind = kind or self._chance.choice(_PLAIN + others)
        if kind == "enum":
            symbols = [f"S{i}" for i in range(self._chance.choice((1, 3, 70)))]
            return {"type": "enum", "name": self.name("E"), "symbols": symbols}
        if kind == "fixed":
            return {"type": "fixed", "name": self.name("F"), "size": 3}
        if kind == "decimal":
            precision = self._chance.choice((1, 5, 10, 18, 19, 30, 38))
            money = {"logicalType": "decimal", "precision": precision}
            money["scale"] = self._chance.randint(0, precision)
            if self._chance.random() < 0.7:
                return {"type": "bytes", **money}
            size = self._chance.choice((17, 20))
            return {"type": "fixed", "name": self.name("F"), "size": size, **money}
        if kind in _PLAIN:
            return kind
        return {
            "date": {"type": "int", "logicalType": "date"},
            "millis": {"type": "long", "logicalType": "timestamp-millis"},
            "micros": {"type": "long", "logicalType": "timestamp-micros"},
            "local": {"type": "long", "logicalType": "local-timestamp-millis"},
        }[kind]

    def _later(self, kind: Any) -> Any:
        """The type that a field may have in the next version."""
        choice = self._chance.random()
        if choice < 0.6:
            return kind
        if isinstance(kind, str) and kind in _WIDER and choice < 0.8:
            return _WIDER[kind]
        if isinstance(kind, dict) and kind.get("logicalType") == "decimal":
            room = 38 - kind["precision"]
            if kind["type"] == "bytes":
                return {
                    **kind,
                    "precision": kind["precision"] + self._chance.randint(0, room),
                }
        if isinstance(kind, dict) and kind["type"] == "record":
            fields = [(f["name"], self._later(f["type"])) for f in kind["fields"]]
            return _record(kind["name"], [*fields, (self.name("f"), self.kind(1))])
        if isinstance(kind, dict) and kind["type"] in ("array", "map"):
            inside = "items" if kind["type"] == "array" else "values"
            return {**kind, inside: self._later(kind[inside])}
        return kind if isinstance(kind, list) else ["null", kind]


class Writer:
    """Writes random values of a schema, and now and then something that is none."""

    def __init__(self, chance: random.Random, harm: float) -> None:
        """Bind to a source of chance.

        Args:
            chance: The source.
            harm: How likely each number, text, boolean or index is a bad one.
        """
        self._chance = chance
        self._harm = harm

    def record(self, schema: Any) -> bytes:
        """One value of a schema."""
        return b"".join(self._write(schema))

    def _bad(self) -> bool:
        return self._chance.random() < self._harm

    def _number(self, number: int, bits: int = 64) -> bytes:
        if self._bad():
            return self._chance.choice(
                (
                    zigzag(number + (self._chance.choice((1, -3)) << (bits - 1))),
                    zigzag(number + (1 << self._chance.randint(bits - 2, bits + 5))),
                    # More bytes than it needs: still the same number.
                    zigzag(number, self._chance.randint(2, 11)),
                )
            )
        return zigzag(number)

    def _index(self, at: int, size: int) -> bytes:
        if self._bad():
            return self._number(self._chance.choice((size, -1, 2**31 - 1)), 32)
        return self._number(at, 32)

    def _chunk(self, content: bytes) -> bytes:
        size = len(content)
        if self._bad():
            size += self._chance.choice((-1, 1, 5, -size - 1, 2**31, 2**40))
        return self._number(size) + content

    def _text(self) -> bytes:
        content = self._chance.choice(_TEXTS).encode()
        if self._bad():
            at = self._chance.randint(0, len(content))
            harm = (
                b"\xff",
                b"\x80",
                b"\xc0\x80",
                b"\xed\xa0\x80",
                b"\xe3\x81",
                b"\xe0\x80\x80",
                b"\xf0\x80\x80\x80",
                b"\xf4\x90\x80\x80",
                b"\xf5",
            )
            content = content[:at] + self._chance.choice(harm) + content[at:]
        return self._chunk(content)

    def _write(self, schema: Any) -> list[bytes]:
        chance = self._chance
        if isinstance(schema, list):
            at = chance.randrange(len(schema))
            return [self._index(at, len(schema)), *self._write(schema[at])]
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind == "record":
            return [
                part for each in schema["fields"] for part in self._write(each["type"])
            ]
        if kind in ("array", "map"):
            return [self._blocks(schema)]
        if isinstance(schema, dict) and schema.get("logicalType") == "decimal":
            return [self._decimal(schema)]
        if kind == "enum":
            size = len(schema["symbols"])
            return [self._index(chance.randrange(size), size)]
        if kind == "fixed":
            return [chance.randbytes(schema["size"])]
        return [self._primitive(kind)]

    def _primitive(self, kind: str) -> bytes:
        chance = self._chance
        if kind == "null":
            return b""
        if kind == "boolean":
            return bytes(
                [chance.choice((2, 127, 255)) if self._bad() else chance.randrange(2)]
            )
        if kind == "int":
            return self._number(_some_number(chance, 31), 32)
        if kind == "long":
            return self._number(_some_number(chance, 52))
        if kind == "float":
            return chance.choice(
                (chance.randbytes(4), struct.pack("<f", chance.random()))
            )
        if kind == "double":
            return chance.choice(
                (chance.randbytes(8), struct.pack("<d", chance.random()))
            )
        if kind == "string":
            return self._text()
        return self._chunk(chance.randbytes(chance.choice((0, 1, 8, 70))))

    def _decimal(self, schema: Any) -> bytes:
        chance = self._chance
        number = _some_number(chance, 10 ** schema["precision"], power=False)
        if self._bad():
            number += chance.choice((1, -1)) * 2 ** chance.randint(60, 72)
        size: int = schema.get("size", number.bit_length() // 8 + 1)
        if "size" not in schema and chance.random() < 0.2:
            size += chance.randint(1, 9)
        content = (number % (1 << 8 * size)).to_bytes(size, "big")
        if "size" in schema:
            return content
        return self._chunk(b"" if self._bad() else content)

    def _blocks(self, schema: Any) -> bytes:
        chance = self._chance
        parts = []
        key = 0
        for _ in range(chance.choice((0, 1, 1, 2))):
            count = chance.randint(1, 3)
            items = b""
            for _ in range(count):
                if schema["type"] == "map":
                    key += not self._bad()
                    items += self._chunk(f"k{key}".encode())
                items += b"".join(
                    self._write(schema.get("items", schema.get("values")))
                )
            if chance.random() < 0.3:
                size = len(items) + (chance.choice((1, -1)) if self._bad() else 0)
                parts += [self._number(-count), self._number(size), items]
            else:
                parts += [self._number(count), items]
        return b"".join((*parts, self._number(0)))


def damaged(chance: random.Random, one: bytes, other: bytes) -> bytes:
    """Bytes with a change anywhere, whatever stands there."""
    at = chance.randint(0, max(0, len(one) - 1))
    kind = chance.randrange(6)
    if kind == 0 and one:
        return one[:at] + bytes([one[at] ^ 1 << chance.randrange(8)]) + one[at + 1 :]
    if kind == 1:
        return one[:at]
    if kind == 2:
        return one[:at] + chance.randbytes(chance.randint(1, 4)) + one[at:]
    if kind == 3:
        return one[:at] + other[chance.randint(0, len(other)) :]
    if kind == 4:
        return one + chance.randbytes(chance.randint(1, 3))
    run = chance.choice((b"\x80", b"\xff", b"\x00", b"\x7f")) * chance.randint(1, 11)
    return one[:at] + run + one[at + len(run) :]


def zigzag(number: int, least_bytes: int = 1) -> bytes:
    """A number as Avro writes it, however wide, in as many bytes at least."""
    rest = number * 2 if number >= 0 else -number * 2 - 1
    groups: list[int] = []
    while rest or len(groups) < least_bytes:
        groups.append(rest % 128)
        rest //= 128
    return bytes([*(group + 128 for group in groups[:-1]), groups[-1]])


def _some_number(chance: random.Random, size: int, power: bool = True) -> int:
    most = 2**size if power else size
    number = chance.choice((0, 1, 63, 64, most - 1, chance.randrange(most)))
    return chance.choice((1, -1)) * min(number, most - 1)


def _record(name: str, fields: list[tuple[str, Any]]) -> dict[str, Any]:
    listed = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": listed}
