"""The command that resumes streams with accepted data loss: recover."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from spark_ingest.cli.app import Select, app, open_services
from spark_ingest.errors import ConfigurationError


@app.command()
def recover(
    context: typer.Context,
    select: Select = None,
    accept_gap: Annotated[
        bool,
        typer.Option("--accept-gap", help="Accept that records expired before they were read."),
    ] = False,
    new_topic: Annotated[
        bool,
        typer.Option("--new-topic", help="Continue with a topic that was deleted and recreated."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Resume a stream that stopped because records are lost.

    Prints the lost offsets and asks for confirmation. The decision is stored as a
    commit of the stream's table and a row of the commit log, for `verify` and
    dbt's ledger.
    """
    if accept_gap == new_topic:
        raise ConfigurationError("give either --accept-gap or --new-topic")
    streams, services = open_services(context, select, topics_needed=True)
    from spark_ingest.commits.commit_log import create
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
        print(f"{stream.name} loses")
        for line in one.losses:
            print(f"  {line}")
        if one.previous is not None:
            print(f"and resumes on the topic with id {one.topic.id}")
    if dry_run or not found:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigurationError(
                "cannot ask for confirmation without a terminal: add --yes to accept the loss"
            )
        typer.confirm("Accept this data loss?", abort=True)
    create(services.spark)
    for one in found:
        commit = recovery.accept(services, one)
        if commit is None:
            print(f"{one.stream.name}: no longer needed")
            continue
        places = ", ".join(f"{p}: {o}" for p, o in sorted(commit.position.items()))
        print(f"{one.stream.name}: commit {commit.id}; resumes at {places}")
