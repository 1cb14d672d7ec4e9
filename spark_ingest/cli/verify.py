"""The command that proves what was landed: verify."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_ingest.cli.app import Select, app, console, open_services

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_ingest.connect.broker import Topic
    from spark_ingest.operate.verify import PartitionProof
    from spark_ingest.sources import Stream
    from spark_ingest.streaming.services import Services


@app.command()
def verify(
    context: typer.Context,
    select: Select = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Prove from the first commit on, not from where it was proved before."
        ),
    ] = False,
) -> None:
    """Prove from the tables and the broker that every record is there exactly once.

    For each topic and partition: every offset between the first and the last
    committed one is in bronze or in quarantine once, or holds no record. Exits 1
    and names the offsets where that does not hold. A stream that never ran is
    reported, not failed. Records that expired unread, and that somebody gave up
    by `recover --accept-gap`, are reported as such. A commit id that two commits
    have fails, too: dbt may have passed over one of them.

    What holds is marked in bronze.ingest_proofs, and the next proof goes on
    there; it begins at the first commit again where anything behind the mark may
    have changed.
    """
    streams, services = open_services(context, select)
    from spark_ingest.lake import bronze

    proofs: list[PartitionProof] = []
    idle: list[str] = []
    gone: list[str] = []
    double: list[str] = []
    for stream in streams:
        topic = services.broker.topic(stream.topic)
        has_table = bronze.exists(services.spark, stream.table)
        if has_table:
            double += _there_twice(services.spark, stream, full)
        found: list[PartitionProof] = []
        note = None
        if has_table and topic is not None:
            found = _proved(services, stream, topic, full)
        elif has_table:
            note = _filled_from(services, stream)
        note = note or (None if found else _earlier_table(services, stream))
        proofs += found
        if note is not None:
            gone.append(note)
        elif not found:
            idle.append(stream.name)
    _print_proofs(proofs)
    for name in idle:
        print(f"{name}: never started, nothing to verify")
    broken = [proof for proof in proofs if not proof.holds]
    for proof in broken:
        _print_broken(proof)
    for note in [*gone, *double]:
        print(note, file=sys.stderr)
    if broken or gone or double:
        raise typer.Exit(1)
    total = sum(proof.bronze + proof.quarantined for proof in proofs)
    given_up = sum(proof.given_up for proof in proofs)
    but = f"; {given_up:,} offsets were given up" if given_up else ""
    if proofs:
        print(f"every one of {total:,} records is in exactly one table, exactly once{but}")


def _there_twice(spark: SparkSession, stream: Stream, full: bool) -> list[str]:
    """What to say of each commit id that several commits have."""
    from spark_ingest.operate import double_commits

    return [
        f"{stream.name}: {stream.table} has commit {double.commit_id} twice: {double}: another "
        "program wrote it; dbt may have passed over some of these rows: "
        f"`dbt build --full-refresh --select source:{stream.name}+`"
        for double in double_commits.find(spark, stream, full=full)
    ]


def _filled_from(services: Services, stream: Stream) -> str | None:
    """The report on a table whose topic is gone; None where nothing was ever committed."""
    from spark_ingest.commits.resume import position_of

    here = position_of(services.spark, stream)
    if here.topic_id is None:
        return None
    return (
        f"{stream.name}: topic {stream.topic} is gone and {stream.table} was filled from it, up "
        f"to commit {here.commit_id}: nothing can be proved; is it the right cluster in "
        "profiles/ingest.yml?"
    )


def _earlier_table(services: Services, stream: Stream) -> str | None:
    """What to say where all that was committed was of a table that is gone."""
    from spark_ingest.commits import commit_log

    earlier = commit_log.previous_table(services.spark, stream)
    if earlier is None:
        return None
    return (
        f"{stream.name}: the {stream.table} that was filled up to commit {earlier.last} is gone: "
        "`spark-ingest run` starts over with what the broker holds; "
        "docs/runbooks/lost-lake.md says what else there is"
    )


def _proved(services: Services, stream: Stream, topic: Topic, full: bool) -> list[PartitionProof]:
    """Prove one stream from its marks on, and mark what holds."""
    from spark_ingest.commits.table_identity import uuid_of
    from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_reason
    from spark_ingest.operate import proof_marks
    from spark_ingest.operate.verify import prove

    spark = services.spark
    uuid = uuid_of(Jvm(spark), stream.table)
    known = proof_marks.marks(spark, uuid)
    found = prove(spark, services.broker, stream, topic, {} if full else known)
    for mark in found.since.values():
        print(
            f"{stream.name}: proved before up to commit {mark.commit_id} "
            f"({mark.at:%Y-%m-%d %H:%M:%S} UTC), now from there on; --full proves it all"
        )
    if known and not found.since and not full:
        print(
            f"{stream.name}: proved from the first commit on: what was proved before may have "
            "changed"
        )
    if found.marks:
        try:
            proof_marks.write(spark, stream.table, uuid, found.marks)
        except JAVA_ERRORS as error:
            print(
                f"{stream.name}: no mark could be left in {proof_marks.TABLE}, so the next proof "
                f"begins where this one did: {java_reason(error)}",
                file=sys.stderr,
            )
    return found.partitions


def _print_proofs(proofs: list[PartitionProof]) -> None:
    table = Table(
        "stream", "partition", "first", "end", "bronze", "quarantine", "empty", "given up",
        "missing", "doubled", "lag",
    )  # fmt: skip
    for proof in proofs:
        missing = sum(end - first for first, end in proof.missing)
        numbers = (
            proof.partition, proof.first, proof.end, proof.bronze, proof.quarantined, proof.empty,
            proof.given_up, missing, proof.doubled, proof.lag,
        )  # fmt: skip
        table.add_row(_name(proof), *(f"{number:,}" for number in numbers))
    for column in table.columns[1:]:
        column.justify = "right"
    if proofs:
        console().print(table)


def _print_broken(proof: PartitionProof) -> None:
    from spark_ingest.operate.verify import gaps_text

    place = f"{_name(proof)} partition {proof.partition}"
    if proof.missing:
        print(f"{place}: missing offsets {gaps_text(proof.missing)}", file=sys.stderr)
    if proof.doubled:
        print(f"{place}: {proof.doubled} offsets are there more than once", file=sys.stderr)
    if proof.uncommitted:
        print(f"{place}: {proof.uncommitted} rows that no commit covers", file=sys.stderr)


def _name(proof: PartitionProof) -> str:
    earlier = f" (topic id {proof.topic_id})" if proof.is_earlier else ""
    return f"{proof.stream}{earlier}"
