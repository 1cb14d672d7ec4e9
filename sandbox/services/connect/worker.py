"""Configuration of a Connect worker: settings, plugins and secrets."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from sandbox.install.parts import component_folder
from sandbox.services.captured_databases import password
from sandbox.services.java_programs import java_command, properties_text
from sandbox.services.security import write_secret
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.preflight import java_program

SECRETS = "secrets.properties"
"""Referenced by connectors as ``${file:secrets.properties:KEY}``; in the working directory."""
_CONVERTER = "millrace.NullKeepingConverter"
_CONVERTER_SOURCE = Path(__file__).with_name("NullKeepingConverter.java")
_CONVERTER_SERVICE = "META-INF/services/org.apache.kafka.connect.storage.Converter"


def prepare(home: Home, folder: Path) -> None:
    """Write the configuration of the worker.

    Raises:
        ConfigurationError: Connect does not support the path of the folder.
    """
    if "," in str(folder):
        raise ConfigurationError(
            f"SANDBOX_HOME is {home.path}: Connect takes no comma in the path of its plugins"
        )
    folder.mkdir(parents=True, exist_ok=True)
    _lay_out_plugins(folder)
    (folder / "worker.properties").write_text(properties_text(_settings(home, folder)))
    write_secret(folder / SECRETS, properties_text(_secrets(home)))


def command(folder: Path) -> list[str]:
    """The command that runs the worker in the foreground."""
    return java_command(
        "connect",
        "org.apache.kafka.connect.cli.ConnectDistributed",
        str(folder / "worker.properties"),
        heap="384m",
        options=("-XX:+UseSerialGC",),
    )


def _settings(home: Home, folder: Path) -> dict[str, str]:
    settings = {
        "bootstrap.servers": home.bootstrap_servers,
        "group.id": "connect",
        "listeners": f"http://127.0.0.1:{home.ports['connect']}",
        "rest.advertised.host.name": "127.0.0.1",
        "plugin.path": str(folder / "plugins"),
        # Discover plugins by service files; scanning all classes takes 20 s.
        "plugin.discovery": "service_load",
        "config.providers": "file",
        "config.providers.file.class": (
            "org.apache.kafka.common.config.provider.FileConfigProvider"
        ),
        # Commit offsets often, so that the position is up to date; the default is a minute.
        "offset.flush.interval.ms": "1000",
        # One worker: do not wait for a killed one to rejoin.
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "2000",
        "scheduled.rebalance.max.delay.ms": "0",
        "producer.compression.type": "zstd",
    }
    for kind in ("config", "offset", "status"):
        settings[f"{kind}.storage.topic"] = f"connect-{kind}"
        settings[f"{kind}.storage.replication.factor"] = "1"
        if kind != "config":
            settings[f"{kind}.storage.partitions"] = "1"
    converter = {
        "": _CONVERTER,
        ".apicurio.registry.url": (f"http://127.0.0.1:{home.ports['registry']}/apis/registry/v2"),
        ".apicurio.registry.auto-register": "true",
        # Confluent framing: a zero byte and the four-byte schema id.
        ".apicurio.registry.headers.enabled": "false",
        ".apicurio.registry.id-handler": ("io.apicurio.registry.serde.Legacy4ByteIdHandler"),
        ".apicurio.registry.use-id": "contentId",
    }
    for what in ("key", "value"):
        settings |= {f"{what}.converter{key}": value for key, value in converter.items()}
    return settings


def _secrets(home: Home) -> dict[str, str]:
    """Values that differ between sandboxes, and secrets."""
    found = {"kafka.bootstrap.servers": home.bootstrap_servers}
    for database in ("postgres", "mariadb"):
        found[f"{database}.port"] = str(home.ports[database])
        found[f"{database}.debezium.password"] = password(home.services / database, "debezium")
    return found


def _lay_out_plugins(folder: Path) -> None:
    """One folder per plugin, which Connect loads in a class loader of its own."""
    own = _converter_package(folder)
    plugins = folder / "plugins"
    shutil.rmtree(plugins, ignore_errors=True)
    converter = plugins / "avro-converter"
    converter.mkdir(parents=True)
    for package in [*component_folder("avro-converter").glob("*.jar"), own]:
        (converter / package.name).symlink_to(package)
    for plugin in component_folder("connect").glob("debezium-connector-*"):
        (plugins / plugin.name).symlink_to(plugin)


def _converter_package(folder: Path) -> Path:
    """Our converter, compiled once against Apicurio's converter that it wraps, as a JAR."""
    parts = [component_folder(name) for name in ("avro-converter", "connect")]
    source = _CONVERTER_SOURCE.read_bytes()
    made_of = source + "".join(map(str, parts)).encode()
    package = folder / f"converter-{hashlib.sha256(made_of).hexdigest()[:10]}.jar"
    if package.exists():
        return package
    with tempfile.TemporaryDirectory(dir=folder) as classes:
        # The compiler is part of a JDK, but not of a JRE.
        compiler = [str(java_program()), "-m", "jdk.compiler/com.sun.tools.javac.Main"]
        packages = [str(file) for part in parts for file in part.glob("*.jar")]
        compiler += ["-cp", ":".join(packages), "-proc:none"]
        done = subprocess.run(
            [*compiler, "-d", classes, str(_CONVERTER_SOURCE)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            output = (done.stdout + done.stderr).strip().splitlines()
            raise ConfigurationError(
                f"{java_program()} cannot compile Connect's converter ({output[0]}):"
                " install a JDK 17 or 21, not only its runtime"
            )
        new = package.with_suffix(".new")
        with zipfile.ZipFile(new, "w") as jar:
            for file in Path(classes).rglob("*.class"):
                jar.write(file, file.relative_to(classes))
            # The service file, which Apicurio's own JAR lacks.
            jar.writestr(_CONVERTER_SERVICE, f"{_CONVERTER}\n")
        new.replace(package)
    return package
