"""Random Avro schemas, and versions of them that all fit one table."""

from __future__ import annotations

import random
from typing import Any

from tests.python.spark.avro_reference import is_decimal

_PLAIN = ("boolean", "int", "long", "float", "double", "bytes", "string")
_OTHERS = ("decimal", "fixed", "enum", "date", "millis", "micros", "local", "plain")
_WIDER = {"int": "long", "float": "double"}
_SPACES = ("n", "n.deep", "m")
# Logical types that leave the column as it is.
_KEPT_PLAIN: tuple[dict[str, Any], ...] = (
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "string", "logicalType": "decimal", "precision": 3},
    {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": -2},
    {"type": "bytes", "logicalType": "decimal"},
    {"type": "long", "logicalType": "nobody-knows"},
)
_TIMES: dict[str, dict[str, Any]] = {
    "date": {"type": "int", "logicalType": "date"},
    "millis": {"type": "long", "logicalType": "timestamp-millis"},
    "micros": {"type": "long", "logicalType": "timestamp-micros"},
    "local": {"type": "long", "logicalType": "local-timestamp-millis"},
}


class Schemas:
    """Makes the schemas of one topic's values or keys.

    Inside, a type that has a name is its full name, with its definition beside it: it is
    spelled where a schema first comes to it, and named everywhere else.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0
        self._named: dict[str, dict[str, Any]] = {}
        self._spaces = chance.choice((("",), _SPACES))
        # Those that may be named anywhere: none of them contains itself.
        self._free: list[str] = []
        self._in_text = False

    def of_records(self, versions: int, recursive: bool, nullable: bool) -> list[dict[str, Any]]:
        """A record's schema and those that followed it.

        Args:
            versions: How many.
            recursive: Whether some of its fields contain themselves.
            nullable: Whether it is in a union with null, in most of them.
        """
        top = self._full("Top")
        fields = [self._field(self.kind(3)) for _ in range(self._chance.randint(3, 6))]
        # Every type is somewhere.
        fields += [self._field(self._leaf(each)) for each in (*_PLAIN, "decimal")]
        fields += [self._field(self._union(2)), self._field("null")]
        if recursive:
            loops = [self._recursive(), self._recursive()]
            for _ in range(3):
                loop = self._chance.choice(loops)
                fields.append(self._field(self._around(loop)))
            fields.append(self._field(self._link(top), "link"))
        self._chance.shuffle(fields)
        self._named[top] = {"type": "record", "fields": fields}
        found = []
        for number in range(versions):
            if number:
                self._evolve(top)
            is_nullable = nullable and self._chance.random() < 0.7
            found.append(self._spelled(["null", top] if is_nullable else top))
        return found

    def of_others(self, versions: int, recursive: bool) -> list[Any]:
        """A schema of something that is no record, and those that followed it."""
        # A record with null beside it is columns.
        whole = self._around(self._recursive(in_text=False)) if recursive else self._no_record()
        found = [self._spelled(whole)]
        for _ in range(versions - 1):
            self._evolve("")
            if not recursive:
                whole = self._later(whole)
            found.append(self._spelled(whole))
        return found

    def _no_record(self) -> Any:
        choice = self._chance.randrange(4)
        if choice == 0:
            return self._union(2)
        if choice == 1:
            return {"type": "array", "items": self.kind(2)}
        return self._leaf()

    def kind(self, deep: int) -> Any:
        """A type of several parts, as deep as this, or a plain one."""
        choice = self._chance.random()
        if deep == 0 or choice < 0.25:
            return self._leaf()
        if choice < 0.4:
            return ["null", self._several(deep)]
        if choice < 0.6:
            return self._union(deep)
        return self._several(deep)

    def _several(self, deep: int) -> Any:
        choice = self._chance.randrange(4)
        if choice == 0:
            return {"type": "array", "items": self.kind(deep - 1)}
        if choice == 1:
            return {"type": "map", "values": self.kind(deep - 1)}
        return self._record(deep)

    def _record(self, deep: int) -> str:
        """A record, a new one or one that is there."""
        known = [n for n in self._free if self._named[n]["type"] == "record"]
        if known and self._chance.random() < 0.3:
            return self._chance.choice(known)
        full = self._full("R")
        kinds = [self.kind(deep - 1) for _ in range(self._chance.randint(1, 3))]
        if self._chance.random() < 0.1:
            kinds.append("null")
        self._named[full] = {"type": "record", "fields": [self._field(each) for each in kinds]}
        return self._keep(full)

    def _union(self, deep: int) -> list[Any]:
        chance = self._chance
        number: Any = chance.choice(("int", "long", _TIMES["date"], _TIMES["millis"]))
        plain = [number, chance.choice(("float", "double")), "boolean", "string"]
        plain.append(chance.choice(("bytes", self._money())))
        branches: list[Any] = chance.sample(plain, chance.randint(0, 3))
        if "int" in branches and chance.random() < 0.3:
            branches.append("long")
        named = [self._record(deep), self._record(deep)]
        named += [self._leaf("enum"), self._leaf("fixed")]
        if "." in named[0] and chance.random() < 0.3:
            named.append(self._namesake(named[0]))
        kept = list(dict.fromkeys(named))
        branches += chance.sample(kept, chance.randint(2, len(kept)))
        if chance.random() < 0.3:
            branches.append({"type": "array", "items": self.kind(deep - 1)})
        if chance.random() < 0.3:
            branches.append({"type": "map", "values": self.kind(deep - 1)})
        if chance.random() < 0.7:
            branches.append("null")
        chance.shuffle(branches)
        return branches

    def _namesake(self, full: str) -> str:
        """A record with the name of another and a namespace of its own."""
        other = f"of_{self._count}.{full.rpartition('.')[2]}"
        self._named[other] = {"type": "record", "fields": [self._field("int")]}
        return self._keep(other)

    def _recursive(self, *, in_text: bool = True) -> str:
        """A record that contains itself, by itself or by way of another."""
        if self._chance.random() < 0.2:
            full = self._full("Chain")
            fields = [self._field(["null", full], "link")]
            self._named[full] = {"type": "record", "fields": fields}
            return full
        self._in_text = in_text
        one, other = self._full("Loop"), self._full("Loop")
        ways = [(one, one)]
        if self._chance.random() < 0.5:
            ways = [(one, other), (other, one)]
        for full, inside in ways:
            fields = [self._field(self.kind(1)) for _ in range(2)]
            fields.append(self._field(self._link(inside), "link"))
            self._chance.shuffle(fields)
            self._named[full] = {"type": "record", "fields": fields}
        self._in_text = False
        return one

    def _link(self, full: str) -> Any:
        """A type that has that record in it, and a value without one."""
        choice = self._chance.randrange(5)
        if choice == 0:
            return ["null", full]
        if choice == 1:
            return {"type": "array", "items": full}
        if choice == 2:
            return {"type": "map", "values": full}
        branches = ["null", full, "string", self._leaf("fixed"), self._leaf("enum")]
        branches.append(self._record(1))
        branches = branches[: self._chance.randint(3, 6)]
        self._chance.shuffle(branches)
        return branches

    def _around(self, full: str) -> Any:
        """A type that leads to a record."""
        choice = self._chance.randrange(5)
        if choice == 0:
            holder = self._full("R")
            fields = [self._field(self._leaf()), self._field(full)]
            self._named[holder] = {"type": "record", "fields": fields}
            return {"type": "array", "items": holder}
        return [
            {"type": "array", "items": full},
            {"type": "map", "values": ["null", full]},
            ["null", full],
            self._link(full),
        ][choice - 1]

    def _leaf(self, kind: str | None = None) -> Any:
        chance = self._chance
        kind = kind or chance.choice(_PLAIN + _OTHERS)
        if kind in ("enum", "fixed"):
            known = [n for n in self._free if self._named[n]["type"] == kind]
            if known and chance.random() < 0.4:
                return chance.choice(known)
            made: dict[str, Any] = {"type": kind}
            if kind == "enum":
                made["symbols"] = [f"S{i}" for i in range(chance.choice((1, 3, 70)))]
            else:
                made |= chance.choice(({"size": 3}, {"size": 12}, self._fixed_money()))
            full = self._full(kind[0].upper())
            self._named[full] = made
            return self._keep(full)
        if kind == "decimal":
            return self._money()
        if kind == "plain":
            return chance.choice(_KEPT_PLAIN)
        return _TIMES.get(kind, kind)

    def _money(self) -> dict[str, Any]:
        # No column has more digits than 38, and text has.
        most = (60,) if self._in_text else ()
        precision = self._chance.choice((1, 5, 10, 18, 19, 30, 38, *most))
        scale = self._chance.randint(0, precision)
        money = {"logicalType": "decimal", "precision": precision, "scale": scale}
        return {"type": "bytes", **money}

    def _fixed_money(self) -> dict[str, Any]:
        money = self._money()
        # The second has no room for these digits: then it is no decimal.
        size = self._chance.choice((26, 26, 20, 1))
        if money["precision"] > 38:
            size = 26
        return {**money, "type": "fixed", "size": size}

    def _evolve(self, top: str) -> None:
        """Change what the named types are, each as a table can follow."""
        for full, made in list(self._named.items()):
            changed: dict[str, Any] = {}
            if made["type"] == "enum" and self._chance.random() < 0.2:
                changed["symbols"] = [*made["symbols"], f"T{self._count}"]
            is_top = full == top
            if made["type"] == "record" and (is_top or self._chance.random() < 0.5):
                changed["fields"] = self._other_fields(made, is_top)
            self._named[full] = {**made, **changed}

    def _other_fields(self, record: dict[str, Any], at_top: bool) -> list[Any]:
        chance = self._chance
        fields = record["fields"]
        kept = [each for each in fields if chance.random() > 0.1] or fields[:1]
        fields = [
            # Without null, what leads to itself would have no end.
            each if each["name"].startswith("link") else {**each, "type": self._later(each["type"])}
            for each in kept
        ]
        # A record that comes to contain itself would fit no column.
        fields.append(self._field(self.kind(2) if at_top else self._leaf()))
        chance.shuffle(fields)
        return fields

    def _later(self, kind: Any) -> Any:
        """The type that may stand there in the next version."""
        choice = self._chance.random()
        if choice < 0.6:
            return kind
        if kind == "null":
            return self._leaf()
        if isinstance(kind, list):
            return self._later_union(kind)
        changed = self._later_branch(kind, [])
        if changed != kind and choice < 0.9:
            return changed
        if isinstance(kind, str) and kind in self._named and choice < 0.8:
            made = self._named[kind]
            if made["type"] == "enum":
                return "string"
            if made["type"] == "fixed" and "logicalType" not in made:
                return "bytes"
        return ["null", kind]

    def _later_branch(self, kind: Any, union: list[Any]) -> Any:
        if isinstance(kind, str):
            wider = _WIDER.get(kind, kind)
            return kind if wider in union else wider
        if kind["type"] in ("array", "map"):
            inside = "items" if kind["type"] == "array" else "values"
            return {**kind, inside: self._later(kind[inside])}
        if kind == _TIMES["millis"]:
            return _TIMES["micros"]
        if self._is_money(kind):
            more = self._chance.randint(0, max(0, 38 - kind["precision"]))
            return {**kind, "precision": kind["precision"] + more}
        return kind

    def _is_money(self, kind: Any) -> bool:
        return bool(kind["type"] == "bytes") and is_decimal(kind)

    def _later_union(self, union: list[Any]) -> Any:
        chance = self._chance
        changed = [self._later_branch(each, union) for each in union]
        others = [each for each in changed if each != "null"]
        if len(others) == 1:
            return others[0]
        chance.shuffle(changed)
        if chance.random() < 0.5:
            new = self._leaf(chance.choice(("enum", "fixed")))
            return changed if new in changed else [*changed, new]
        # More than one is left, or the table could not have it by that type alone.
        least = {repr(each) for each in others if each not in ("int", "long")}
        if len(least) > 2:
            changed.remove(chance.choice([e for e in others if repr(e) in least]))
        return changed

    def _field(self, kind: Any, first: str = "f") -> dict[str, Any]:
        self._count += 1
        return {"name": f"{first}{self._count}", "type": kind}

    def _keep(self, full: str) -> str:
        """Let a type be named anywhere: one made for text may be too much for a column."""
        if not self._in_text:
            self._free.append(full)
        return full

    def _full(self, first: str) -> str:
        self._count += 1
        space = self._chance.choice(self._spaces)
        return f"{space}.{first}{self._count}" if space else f"{first}{self._count}"

    def _spelled(self, kind: Any) -> Any:
        return self._spell(kind, "", set())

    def _spell(self, kind: Any, space: str, written: set[str]) -> Any:
        if isinstance(kind, list):
            return [self._spell(each, space, written) for each in kind]
        if isinstance(kind, dict):
            inner = {
                key: self._spell(kind[key], space, written)
                for key in ("items", "values")
                if key in kind
            }
            return {**kind, **inner}
        if kind not in self._named:
            return {"type": kind} if self._chance.random() < 0.03 else kind
        own, _, short = kind.rpartition(".")
        if kind in written:
            return short if own == space and self._chance.random() < 0.7 else kind
        written.add(kind)
        ways = [{"name": short, "namespace": own}, {"name": kind}]
        if own:
            # A name with dots has no other namespace.
            ways.append({"name": kind, "namespace": "elsewhere"})
        if own == space:
            ways = [{"name": short}]
        made = self._named[kind]
        found = {**made, **self._chance.choice(ways)}
        if made["type"] == "record":
            found["fields"] = [
                {**each, "type": self._spell(each["type"], own, written)} for each in made["fields"]
            ]
        return found
