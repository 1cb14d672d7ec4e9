"""The databases that tables are captured from: where they are, and how they are connected to."""

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
# Of the address, behind `?`: how the connection is made safe.
_OPTIONS: Mapping[Engine, tuple[str, ...]] = {
    "postgresql": ("sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding"),
    "mariadb": ("ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert"),
}
_KEYS = ("url", "password")
_CONNECT_SECONDS = 10


class DatabaseRefuses(MillraceError):
    """A database does not answer, or does not do what it is asked.

    Attributes:
        code: The server's number for it; empty where it gave none.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class Cursor(Protocol):
    """What both drivers have."""

    def execute(self, query: str, args: Any = None, /) -> Any: ...

    def fetchone(self) -> Any: ...


class Connection(Protocol):
    """What both drivers have."""

    def cursor(self) -> Cursor: ...


@dataclass(frozen=True)
class Database:
    """One database.

    Attributes:
        engine: Which server it is at.
        name: The database; of MariaDB the one to begin in.
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
    """The database that the profile has under a name; None where it has none.

    Raises:
        ConfigurationError: What it says of the database cannot be used.
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
        # The text may hold a password: it is not shown.
        raise ConfigurationError(f"{where} is no address: {wanted}") from error
    if address.password is not None:
        raise ConfigurationError(
            f"{where} holds a password: write password beside it, as ${{NAME}} or ${{file:PATH}}"
        )
    engine = next((one for one in _PORTS if one == address.scheme), None)
    if engine is None:
        raise ConfigurationError(f"{where} begins with {address.scheme!r}: {wanted}")
    name = unquote(address.path.removeprefix("/"))
    if not address.hostname or not name:
        raise ConfigurationError(f"{where} names no host or no database: {wanted}")
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
    """See to it that the engine's driver is installed.

    Raises:
        ConfigurationError: It is not.
    """
    try:
        __import__(_DRIVERS[database.engine])
    except ImportError as error:
        raise ConfigurationError(
            f"{database.address} is asked through {_DRIVERS[database.engine]}, which is not "
            "installed: pip install 'millrace[reconcile]'"
        ) from error


@contextmanager
def opened(database: Database) -> Iterator[Connection]:
    """A connection, closed at the end; what was not committed by then is undone.

    Raises:
        DatabaseRefuses: The server does not answer, refuses a statement, or goes away.
    """
    is_postgresql = database.engine == "postgresql"
    way = _to_postgresql if is_postgresql else _to_mariadb
    with way(database) as connection:
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
            # Transactions begin where a statement says so.
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


def _refusal(database: Database, error: Exception, code: str) -> DatabaseRefuses:
    text = str(error.args[-1]) if error.args else ""
    first = (text.strip().splitlines() or [type(error).__name__])[0]
    return DatabaseRefuses(f"{database.address}: {first}", code)
