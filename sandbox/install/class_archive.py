"""Spark's classes in an archive of Java's, which a JVM maps instead of reading JARs.

A session on the lake loads 20,000 classes. From the JARs that costs a core some ten seconds
at each start of dbt or `spark-ingest`; from the archive, half. Java takes an archive only
with the Java and the JARs that it was written with, down to the times of their files, and
goes on without it otherwise:
https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from sandbox.install.parts import cache_folder, component_folder
from sandbox.processes.locks import locked
from sandbox.ui import say
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.preflight import java_program, pyspark_folder

_SECONDS = 300
# The option of the rendered settings, and the one that writes what it reads.
READS, WRITES = "-XX:SharedArchiveFile=", "-XX:ArchiveClassesAtExit="
# What dbt and the ingest have Spark do, on a lake that is thrown away: its classes are kept.
_WORK = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("create namespace work")
spark.sql("create table work.a using iceberg partitioned by (days(at)) as select id,"
    " cast(id as string) as text, cast(id as decimal(18, 2)) as amount,"
    " timestamp '2026-01-01 00:00:00' + make_interval(0, 0, 0, id) as at from range(9)")
spark.sql("create view work.v as select * from work.a")
spark.sql("create or replace temporary view t as select *, row_number() over"
    " (partition by text order by at desc) as recency, sum(amount) over (order by at) as total"
    " from work.v left join (select text as other, count(*) as n, min(at) as first_at"
    " from work.a group by text) as grouped on work.v.text = grouped.other")
spark.sql("select * from t union all select * from t order by id").collect()
spark.sql("insert into work.a replace where id > 3"
    " select id, text, amount, at from t where id > 3")
spark.sql("insert into work.a select id, text, amount, at from work.v")
spark.sql("delete from work.a where id = 2")
for statement in ("describe extended work.a", "show views in work", "show tables in work",
    "select * from work.a.snapshots", "select * from work.a.files", "show namespaces",
    "alter table work.a alter column text comment 'some text'"):
    spark.sql(statement).collect()
jvm = spark._jvm
for name in ("org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "org.apache.kafka.clients.consumer.KafkaConsumer",
    "org.apache.kafka.clients.admin.KafkaAdminClient",
    "org.apache.spark.sql.avro.AvroDataToCatalyst",
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"):
    jvm.java.lang.Class.forName(name)
gateway = spark.sparkContext._gateway
spark.stop()
gateway.proc.stdin.close()
gateway.proc.wait()
"""


def archive_file() -> Path:
    """Where the archive of this Java, this PySpark and these parts is, or would be."""
    try:
        java = str(java_program().resolve())
    except ConfigurationError:
        java = "none"
    jars = str(pyspark_folder() / "jars")
    key = hashlib.sha256(f"{java}\n{jars}\n{component_folder('spark')}".encode())
    return cache_folder() / f"classes-{key.hexdigest()[:10]}.jsa"


def is_current() -> bool:
    """Whether there is an archive, and no JAR was installed or fetched since.

    The start-up file beside Spark's settings asks the same before Java starts.
    """
    try:
        written = archive_file().stat().st_mtime_ns
    except FileNotFoundError:
        return False
    folders = (pyspark_folder() / "jars", component_folder("spark"))
    return all(folder.stat().st_mtime_ns <= written for folder in folders if folder.exists())


def write(conf: Path) -> bool:
    """Write the archive, unless a current one is there.

    Where Java cannot, an empty file stands for it, so that nobody tries again at each start.
    ``conf`` are settings for Spark, rendered for a lake that nobody needs; they are changed.
    Returns whether there was something to do.
    """
    file = archive_file()
    with locked(cache_folder() / "classes.lock", "another program is archiving Spark's classes"):
        if is_current():
            return False
        say("Archiving Spark's classes for Java, once (half a minute or so)")
        _remove_unused()
        made = file.with_suffix(".new")
        made.unlink(missing_ok=True)
        defaults = conf / "spark-defaults.conf"
        settings = defaults.read_text().replace(f"{READS}{file}", f"{WRITES}{made}")
        defaults.write_text(settings)
        (conf / "spark-env.sh").unlink(missing_ok=True)
        _work(conf)
        if not made.exists():
            say("Java wrote no archive of Spark's classes: each start takes longer")
            made.touch()
        used_by = {"jars": str(pyspark_folder() / "jars")}
        file.with_suffix(".json").write_text(json.dumps(used_by) + "\n")
        made.replace(file)
    return True


def _work(conf: Path) -> None:
    env = {**os.environ, "SPARK_CONF_DIR": str(conf)}
    for name in ("SPARK_HOME", "SPARK_SUBMIT_OPTS"):
        env.pop(name, None)
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-c", _WORK],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )


def _remove_unused() -> None:
    """Remove the archives of environments that are gone: each has a few hundred megabytes."""
    for file in cache_folder().glob("classes-*.jsa"):
        listed = file.with_suffix(".json")
        try:
            jars = Path(json.loads(listed.read_text())["jars"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if not jars.is_dir():
            file.unlink(missing_ok=True)
            listed.unlink(missing_ok=True)
