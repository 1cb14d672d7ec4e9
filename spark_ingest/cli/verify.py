"""The command that proves what was landed: verify."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from spark_ingest.cli.app import Select, app, console, open_services
from spark_ingest.errors import MillraceError

if TYPE_CHECKING:
    from spark_ingest.proof import PartitionProof


@app.command()
def verify(context: typer.Context, select: Select = None) -> None:
    """Prove from the tables and the broker that every record is there exactly once.

    For each topic and partition: every offset between the first and the last committed one
    is in bronze or in quarantine once, or holds no record. Exits 1 and names the offsets
    where that does not hold. A stream that never ran is reported, not failed. Records that
    expired unread, and that somebody gave up by `recover --accept-gap`, are told as that.
    """
    streams, services = open_services(context, select)
    from spark_ingest import bronze
    from spark_ingest.lease import own_snapshots
    from spark_ingest.proof import prove
    from spark_ingest.session import Jvm

    proofs: list[PartitionProof] = []
    idle: list[str] = []
    for stream in streams:
        if not bronze.exists(services.spark, stream.table):
            idle.append(stream.name)
            continue
        topic = services.broker.topic(stream.topic)
        if topic is None:
            if own_snapshots(Jvm(services.spark), stream.table):
                raise MillraceError(
                    f"topic {stream.topic} is gone and {stream.table} was filled from it: "
                    "nothing can be proved; is it the right cluster in profiles/ingest.yml?"
                )
            idle.append(stream.name)
            continue
        found = prove(services.spark, services.broker, stream, topic)
        proofs += found
        if not found:
            idle.append(stream.name)
    _print_proofs(proofs)
    for name in idle:
        print(f"{name}: never started, nothing to verify")
    broken = [proof for proof in proofs if not proof.holds]
    for proof in broken:
        _print_broken(proof)
    if broken:
        raise typer.Exit(1)
    total = sum(proof.bronze + proof.quarantined for proof in proofs)
    given_up = sum(proof.given_up for proof in proofs)
    but = f"; {given_up:,} offsets were given up" if given_up else ""
    if proofs:
        print(
            f"every one of {total:,} records is in exactly one table, exactly once{but}"
        )


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
    from spark_ingest.proof import gaps_text

    place = f"{_name(proof)} partition {proof.partition}"
    if proof.missing:
        print(f"{place}: missing offsets {gaps_text(proof.missing)}", file=sys.stderr)
    if proof.doubled:
        print(
            f"{place}: {proof.doubled} offsets are there more than once",
            file=sys.stderr,
        )
    if proof.uncommitted:
        print(
            f"{place}: {proof.uncommitted} rows that no commit covers", file=sys.stderr
        )


def _name(proof: PartitionProof) -> str:
    earlier = f" (topic id {proof.topic_id})" if proof.is_earlier else ""
    return f"{proof.stream}{earlier}"
