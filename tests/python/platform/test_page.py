"""What docs/dbt-platform.md has people type before they have an account.

Fails when a command of docs/dbt-platform.md fails as it is written, on one of the engines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.services import stack as services
from sandbox.settings import DEFAULT_PORTS, PROJECT
from tests.python.conftest import PROGRAM_SECONDS, bring_spark, make_home, program_environment
from tests.python.programs import ran
from tests.python.project_copy import copy_checkout

PAGE = PROJECT / "docs/dbt-platform.md"
COMMIT = ("git", "-c", "user.name=ada", "-c", "user.email=ada@millrace.example", "commit")


@pytest.mark.long
def test_the_page_can_be_typed(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path / "checkout")
    for words in (["git", "init"], ["git", "add", "."], [*COMMIT, "-m", "The project"]):
        subprocess.run(words, cwd=checkout, check=True, capture_output=True)
    home = make_home(tmp_path / "sand box")
    bring_spark(home)
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    script = "\n".join(blocks)
    for name in ("thrift", "redshift"):
        assert f"port: {DEFAULT_PORTS[name]}," in script
        script = script.replace(f"port: {DEFAULT_PORTS[name]},", f"port: {home.ports[name]},")
    environment = program_environment(home)
    try:
        done = ran(
            ["bash", "-exc", script],
            cwd=checkout,
            env={
                **{key: of for key, of in environment.items() if key != "DBT_TARGET_PATH"},
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}",
            },
            timeout=2 * PROGRAM_SECONDS,
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    finally:
        services.down(home)
