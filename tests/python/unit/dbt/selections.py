"""What dbt selects, asked of dbt itself: `python -m tests.python.unit.dbt.selections`.

Takes the folder in which the project was parsed, and selections, each the words behind `dbt ls`
as a list in JSON. Prints a list of unique ids for each, in JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dbt.cli.main import dbtRunner


def main(folder: str, *selections: str) -> None:
    """Parse once, which finds all that was parsed before, and list for each selection."""
    common = ["--target", "lint", "--target-path", folder, "--log-path", folder]
    manifest: Any = dbtRunner().invoke(["--quiet", "parse", *common]).result
    found = []
    for words in selections:
        done = dbtRunner(manifest=manifest).invoke(
            [
                *("--quiet", "ls", *json.loads(words), *common),
                *("--output", "json", "--output-keys", "unique_id"),
            ]
        )
        if not done.success:
            raise SystemExit(f"dbt ls {words}: {done.exception}")
        lines: Any = done.result
        found.append([json.loads(line)["unique_id"] for line in lines])
    # dbt prints its lists, too: this is the last line.
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
