"""Connections to the databases that tables are captured from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from spark_ingest.connect.profile import Target
from spark_ingest.errors import ConfigurationError, MillraceError

Engine = Literal["postgresql", "mariadb"]
_DRIVERS: Mapping[Engine, str] = {"postgresql": "psycopg2", "mariadb": "pymysql"}
_PORTS: Mapping[Engine, int] = {"postgresql": 5432, "mariadb": 3306}
# Supported query parameters of the URL, for TLS.
_OPTIONS: Mapping[Engine, tuple[str, ...]] = {
    "postgresql": ("sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding"),
    "mariadb": ("ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert"),
}
_KEYS = ("url", "password")
_CONNECT_SECONDS = 10


class DatabaseError(MillraceError):
    """A database is unavailable, or a statement failed.

    Attributes:
        code: The server's error code; empty if there is none.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class Cursor(Protocol):
    """The interface that both drivers share."""

    def execute(self, query: str, args: Any = None, /) -> Any: ...

    def fetchone(self) -> Any: ...


class Connection(Protocol):
    """The interface that both drivers share."""

    def cursor(self) -> Cursor: ...


@dataclass(frozen=True)
class Database:
    """One database.

    Attributes:
        engine: The kind of its server.
        name: The database; with MariaDB the default one.
        options: Options of the driver, such as ``sslmode``.
    """

    engine: Engine
    host: str
    port: int
    name: str
    user: str | None
    password: str | None = field(default=None, repr=False)
    options: tuple[tuple[str, str], ...] = ()

    @property
    def address(self) -> str:
        return f"{self.engine}://{self.host}:{self.port}/{self.name}"


def database_of(target: Target, name: str) -> Database | None:
    """A database of the profile by name; None if it is not declared.

    Raises:
        ConfigurationError: Its settings are invalid.
    """
    if name not in target.databases:
        return None
    where = f"{target.where}.databases.{name}"
    settings = target.filled(target.databases[name], where)
    unknown = sorted(set(settings) - set(_KEYS))
    if unknown:
        raise ConfigurationError(
            f"{where}.{unknown[0]}: unknown key; there are: {', '.join(_KEYS)}"
        )
    if "url" not in settings:
        return None
    return _database(settings["url"], settings.get("password"), f"{where}.url")


def _database(url: str, password: str | None, where: str) -> Database:
    wanted = "postgresql://USER@HOST:PORT/DATABASE or mariadb://…"
    try:
        address = urlsplit(url)
        port = address.port
    except ValueError as error:
        # Do not show the URL, which may contain a password.
        raise ConfigurationError(f"{where} is not a URL: {wanted}") from error
    if address.password is not None:
        raise ConfigurationError(
            f"{where} contains a password: set the key password, as ${{NAME}} or ${{file:PATH}}"
        )
    engine = next((one for one in _PORTS if one == address.scheme), None)
    if engine is None:
        raise ConfigurationError(f"{where} begins with {address.scheme!r}: {wanted}")
    name = unquote(address.path.removeprefix("/"))
    if not address.hostname or not name:
        raise ConfigurationError(f"{where} has no host or no database: {wanted}")
    options = parse_qsl(address.query)
    for option, _ in options:
        if option not in _OPTIONS[engine]:
            known = ", ".join(_OPTIONS[engine])
            raise ConfigurationError(f"{where}: unknown option {option}; there are: {known}")
    return Database(
        engine,
        address.hostname,
        port or _PORTS[engine],
        name,
        unquote(address.username) if address.username else None,
        password,
        tuple(options),
    )


def check_driver(database: Database) -> None:
    """Check that the engine's driver is installed.

    Raises:
        ConfigurationError: It is not.
    """
    try:
        __import__(_DRIVERS[database.engine])
    except ImportError as error:
        raise ConfigurationError(
            f"{database.address} requires {_DRIVERS[database.engine]}, which is not installed: "
            "pip install 'millrace[reconcile]'"
        ) from error


@contextmanager
def opened(database: Database) -> Iterator[Connection]:
    """A connection, closed at the end; uncommitted changes are rolled back.

    Raises:
        DatabaseError: The server is unavailable, or a statement failed.
    """
    connect = _to_postgresql if database.engine == "postgresql" else _to_mariadb
    with connect(database) as connection:
        yield connection


@contextmanager
def _to_postgresql(database: Database) -> Iterator[Connection]:
    import psycopg2

    settings: dict[str, Any] = {
        "host": database.host,
        "port": database.port,
        "dbname": database.name,
        "user": database.user,
        "password": database.password,
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "spark-ingest reconcile",
        **dict(database.options),
    }
    try:
        with closing(psycopg2.connect(**settings)) as found:
            # Transactions start with an explicit statement.
            found.autocommit = True
            yield found
    except psycopg2.Error as error:
        raise _refusal(database, error, error.pgcode or "") from error


@contextmanager
def _to_mariadb(database: Database) -> Iterator[Connection]:
    import pymysql

    settings: dict[str, Any] = {
        "host": database.host,
        "port": database.port,
        "database": database.name,
        "user": database.user,
        "password": database.password or "",
        "charset": "utf8mb4",
        "connect_timeout": _CONNECT_SECONDS,
        "program_name": "spark-ingest reconcile",
        "autocommit": True,
        **dict(database.options),
    }
    try:
        with closing(pymysql.connect(**settings)) as found:
            yield found
    except pymysql.MySQLError as error:
        code = str(error.args[0]) if error.args else ""
        raise _refusal(database, error, code) from error


def _refusal(database: Database, error: Exception, code: str) -> DatabaseError:
    text = str(error.args[-1]) if error.args else ""
    first = (text.strip().splitlines() or [type(error).__name__])[0]
    return DatabaseError(f"{database.address}: {first}", code)
