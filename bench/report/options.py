"""The options that each benchmark has: where its results go, and whether into the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ResultsFile = Annotated[Path, typer.Option(help="The file of the results.")]
WriteDocs = Annotated[
    bool, typer.Option("--write-docs", help="Put the results into the docs, too.")
]
OnlyDocs = Annotated[
    bool, typer.Option("--only-docs", help="Measure nothing; write docs from the file.")
]
