"""The command for what a person has to decide: recover."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from spark_ingest.cli.app import Select, app, open_lake, open_services
from spark_ingest.errors import ConfigurationError


@app.command()
def recover(
    context: typer.Context,
    select: Select = None,
    accept_gap: Annotated[
        bool,
        typer.Option(
            "--accept-gap", help="Give up records that expired before they were read."
        ),
    ] = False,
    new_topic: Annotated[
        bool,
        typer.Option(
            "--new-topic", help="Continue with a topic that was deleted and recreated."
        ),
    ] = False,
    renumber: Annotated[
        bool,
        typer.Option(
            "--renumber", help="Give two commits that have one id an id each."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be done; change nothing."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
) -> None:
    """Resume a stream that stopped because records are gone, or mend commit ids of its table.

    Says what is given up, or which rows get another commit id, and asks. The
    decision is a commit of the stream's table and a row of the commit log, where
    `verify` and dbt's ledger find it.
    """
    if [accept_gap, new_topic, renumber].count(True) != 1:
        raise ConfigurationError("give one of --accept-gap, --new-topic and --renumber")
    if renumber:
        _renumber(context, select, dry_run, yes)
        return
    streams, services = open_services(context, select, topics_needed=True)
    from spark_ingest.lake.commit_log import create
    from spark_ingest.operate import recover as recovery

    find = recovery.find_gap if accept_gap else recovery.find_new_topic
    found = []
    for stream in streams:
        one = find(services, stream)
        if one is None:
            what = "no gap" if accept_gap else "no new topic"
            print(f"{stream.name}: {what}, nothing to recover")
            continue
        found.append(one)
        print(f"{stream.name} gives up")
        for line in one.gives_up:
            print(f"  {line}")
        if one.earlier is not None:
            print(f"and goes on with the topic that has the id {one.topic.id} now")
    if dry_run or not found:
        return
    if not yes:
        _ask("Give this up, for good?", "all of this shall be given up")
    create(services.spark)
    for one in found:
        commit = recovery.accept(services, one)
        if commit is None:
            print(f"{one.stream.name}: not needed any more")
            continue
        places = ", ".join(f"{p}: {o}" for p, o in sorted(commit.position.items()))
        print(f"{one.stream.name}: commit {commit.id}; goes on at {places}")


def _renumber(
    context: typer.Context, select: list[str] | None, dry_run: bool, yes: bool
) -> None:
    streams, spark = open_lake(context, select)
    from spark_ingest.lake import bronze
    from spark_ingest.operate import double_commits

    found = []
    for stream in streams:
        has_table = bronze.exists(spark, stream.table)
        double = double_commits.find(spark, stream, full=True) if has_table else []
        if not double:
            print(f"{stream.name}: no commit id is there twice, nothing to recover")
        for one in double:
            found.append((stream, one))
            print(f"{stream.name}: commit {one.commit_id} has {one}")
            print("  all but the first get an id of their own")
    if dry_run or not found:
        return
    if not yes:
        _ask("Renumber them? dbt then needs a full refresh", "they shall be renumbered")
    for stream, one in found:
        for commit in double_commits.renumber(spark, stream, one):
            print(
                f"{stream.name}: rows of commit {one.commit_id} are commit {commit.id} now: run "
                f"`dbt build --full-refresh --select source:{stream.name}+`"
            )


def _ask(question: str, agreed: str) -> None:
    """Go on only where a person says so."""
    if not sys.stdin.isatty():
        raise ConfigurationError(f"nobody is there to ask: add --yes if {agreed}")
    typer.confirm(question, abort=True)
