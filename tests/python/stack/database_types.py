"""Every type of PostgreSQL 17 and MariaDB 11.4, with values, and what is expected of each.

The types are those of "Data Types" in both manuals; spatial ones and those that the server makes
for itself (pg_lsn, snapshots) among them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    """A type as a column has it.

    Attributes:
        ddl: How the database calls it.
        values: SQL of its smallest, largest and odd values; null is tried of each, too.
        nulls: Those of them that the models have as null, for no engine has such a value.
        text: SQL that gives a value as the models should have it, as a text; ``{}`` is the
            column. What the database itself makes of it by default.
    """

    ddl: str
    values: tuple[str, ...]
    nulls: tuple[str, ...] = ()
    text: str = ""

    def column(self, number: int) -> str:
        """The name of its column."""
        return f"c{number:02}"


_MICROS = "(extract(epoch from {}) * 1000000)::bigint"
_MOMENT = "to_char({}, 'YYYY-MM-DD HH24:MI:SS.US')"
_ZONED = "to_char({} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
# Debezium counts a month as a twelfth of 365.25 days (debezium.io, "interval").
_SPAN = (
    "((extract(year from {0}) * 12 + extract(month from {0})) * 2629800000000"
    " + extract(day from {0}) * 86400000000 + extract(hour from {0}) * 3600000000"
    " + extract(minute from {0}) * 60000000 + extract(second from {0}) * 1000000)::bigint"
)

POSTGRESQL = (
    Type("smallint", ("-32768", "32767")),
    Type("integer", ("-2147483648", "2147483647")),
    Type("bigint", ("-9223372036854775808", "9223372036854775807")),
    Type("oid", ("0", "4294967295")),
    Type("numeric(38,0)", (f"-{'9' * 38}", "9" * 38)),
    Type("numeric(30,10)", (f"-{'9' * 20}.{'9' * 10}", "0.0000000001")),
    Type("numeric(3,5)", ("-0.00999", "0.00001"), text="{}::numeric(5,5)"),
    Type("numeric(3,-2)", ("12300", "-99900")),
    Type("numeric(78,0)", ("9" * 38, "-1")),
    Type("numeric", ("1.50", f"1{'0' * 30}.5", "'NaN'", "'Infinity'")),
    Type("money", ("-92233720368547.58", "12.34"), text="{}::numeric(38,2)"),
    Type("real", ("1.5", "'NaN'", "'Infinity'")),
    Type("double precision", ("1.5", "'NaN'", "'-Infinity'")),
    Type("boolean", ("true", "false")),
    Type('"char"', ("'a'", "'~'")),
    Type("char(5)", ("'ab'", "'abcde'", "''"), text="rtrim({}::text)"),
    Type("varchar(20)", ("''", "'Añb𝄞'", "' a '"), text="rtrim({}::text)"),
    Type("text", ("''", "E'a\\nb\\tc'", "repeat('ü', 2000)"), text="rtrim({}::text)"),
    Type("name", ("'n'", "repeat('n', 63)")),
    Type("bytea", ("'\\x00ff'", "''")),
    Type("bit(1)", ("b'1'", "b'0'"), text="{}::int::boolean"),
    Type("bit(9)", ("b'101010101'",)),
    Type("bit varying", ("b'101'", "b''")),
    Type(
        "date",
        ("'0001-01-01'", "'9999-12-31'", "'15000-12-31'", "'infinity'", "'-infinity'"),
        nulls=("'infinity'", "'-infinity'"),
        # As Spark writes a year of five digits.
        text="case when {0} > '9999-12-31' then '+' else '' end || {0}",
    ),
    Type("time", ("'00:00'", "'23:59:59.999999'"), text=_MICROS),
    Type("time(3)", ("'00:00'", "'23:59:59.999'"), text=f"{_MICROS} / 1000"),
    Type(
        "timetz",
        ("'10:11:12.5+02'", "'00:00+00'"),
        # Debezium writes it in UTC.
        text="replace(({} at time zone 'UTC')::text, '+00', 'Z')",
    ),
    Type(
        "timestamp",
        (
            "'1582-10-15 00:00:00.000001'",
            "'9999-12-31 23:59:59.999999'",
            "'infinity'",
            "'-infinity'",
        ),
        nulls=("'infinity'", "'-infinity'"),
        text=_MOMENT,
    ),
    Type("timestamp(3)", ("'1969-12-31 23:59:59.999'",), text=_MOMENT),
    Type(
        "timestamptz",
        (
            "'1582-10-15 00:00:00.000001Z'",
            "'9999-12-31 23:59:59.999999Z'",
            "'15000-12-31 00:00Z'",
            "'0044-03-15 00:00Z BC'",
            "'infinity'",
            "'-infinity'",
        ),
        nulls=("'15000-12-31 00:00Z'", "'0044-03-15 00:00Z BC'", "'infinity'", "'-infinity'"),
        text=_ZONED,
    ),
    Type("interval", ("'1 year 2 mons 3 days 04:05:06.7'", "'-00:00:01'"), text=_SPAN),
    Type("uuid", ("'00000000-0000-0000-0000-000000000000'",)),
    Type("json", ("'{\"a\": [1, null]}'", "'null'")),
    Type("jsonb", ("'{\"a\": [1, null]}'", "'null'")),
    Type("xml", ("'<a>b</a>'",)),
    Type("mood", ("'calm'", "'very happy'")),
    Type("positive", ("1", "2147483647")),
    Type("pair", ("row(1, 'a')",)),
    Type("integer[]", ("'{1,null,2}'", "'{}'")),
    Type("text[]", ("'{a,null,\"b c\"}'", "'{}'")),
    Type("int4range", ("'[1,5)'", "'empty'", "'(,)'")),
    Type("int8range", ("'[1,5)'",)),
    Type("numrange", ("'[1.5,2.5]'",)),
    Type("tsrange", ("'[2026-01-01,2026-01-02)'",)),
    Type("tstzrange", ("'[2026-01-01Z,2026-01-02Z)'",)),
    Type("daterange", ("'[2026-01-01,2026-01-02)'",)),
    Type("int4multirange", ("'{[1,2),[5,6)}'",)),
    Type("inet", ("'10.0.0.1/8'", "'::1'"), text="abbrev({})"),
    Type("cidr", ("'10.0.0.0/8'",)),
    Type("macaddr", ("'08:00:2b:01:02:03'",)),
    Type("macaddr8", ("'08:00:2b:01:02:03:04:05'",)),
    Type("tsvector", ("'a b'",)),
    Type("tsquery", ("'a & b'",)),
    Type("point", ("'(1,2)'",)),
    Type("line", ("'{1,2,3}'",)),
    Type("lseg", ("'[(0,0),(1,1)]'",)),
    Type("box", ("'((0,0),(1,1))'",)),
    Type("path", ("'((0,0),(1,1))'",)),
    Type("polygon", ("'((0,0),(1,1),(1,0))'",)),
    Type("circle", ("'<(0,0),1>'",)),
    Type("pg_lsn", ("'16/B374D848'",)),
    Type("pg_snapshot", ("'10:20:10,14,15'",)),
)

_SECONDS = "date_format({}, '%Y-%m-%d %H:%i:%s.%f')"
_CLOCK = "cast(round(time_to_sec({}) * 1000000) as signed)"
MARIADB = (
    Type("tinyint", ("-128", "127")),
    Type("tinyint unsigned", ("0", "255")),
    Type("boolean", ("true", "false")),
    Type("smallint", ("-32768", "32767")),
    Type("smallint unsigned", ("65535",)),
    Type("mediumint", ("-8388608", "8388607")),
    Type("mediumint unsigned", ("16777215",)),
    Type("int", ("-2147483648", "2147483647")),
    Type("int unsigned", ("4294967295",)),
    Type("bigint", ("-9223372036854775808", "9223372036854775807")),
    Type("bigint unsigned", ("0", "18446744073709551615")),
    Type("decimal(38,10)", (f"-{'9' * 28}.{'9' * 10}", "0.0000000001")),
    Type("decimal(65,0)", ("9" * 38, "-1")),
    Type("float", ("1.5",)),
    Type("double", ("1.5",)),
    Type("bit(1)", ("b'1'", "b'0'"), text="if({0} is null, null, if({0}, 'true', 'false'))"),
    Type("bit(9)", ("b'101010101'",)),
    Type("char(5)", ("'ab'", "''")),
    Type("varchar(20)", ("''", "'Añb𝄞'", "' a '"), text="rtrim({})"),
    Type("tinytext", ("'a'",)),
    Type("text", ("'a\\nb'", "repeat('ü', 2000)")),
    Type("mediumtext", ("'a'",)),
    Type("longtext", ("'a'",)),
    Type("binary(4)", ("x'00ff'",)),
    Type("varbinary(4)", ("x'00ff'",)),
    Type("tinyblob", ("x'00ff'",)),
    Type("blob", ("x'00ff'",)),
    Type("mediumblob", ("x'00ff'",)),
    Type("longblob", ("x'00ff'",)),
    Type("enum('calm', 'very happy')", ("'calm'", "'very happy'")),
    Type("set('a', 'b')", ("'a,b'", "''")),
    Type("json", ("'{\"a\": [1, null]}'",)),
    Type("uuid", ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",)),
    Type(
        "date",
        ("'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2026-02-00'"),
        nulls=("'0000-00-00'", "'2026-02-00'"),
    ),
    Type("time", ("'-838:59:59'", "'838:59:59'"), text=_CLOCK),
    Type("time(6)", ("'00:00:00.000001'",), text=_CLOCK),
    Type(
        "datetime",
        ("'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'"),
        nulls=("'0000-00-00 00:00:00'",),
        text=_SECONDS,
    ),
    Type("datetime(6)", ("'2026-01-01 00:00:00.000001'",), text=_SECONDS),
    Type("timestamp null", ("'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"), text=_SECONDS),
    Type("year", ("1901", "2155")),
    Type("point", ("point(1, 2)",)),
    Type("geometry", ("point(1, 2)",)),
    Type("linestring", ("linestring(point(0, 0), point(1, 1))",)),
)
