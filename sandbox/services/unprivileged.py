"""Run programs that refuse to run as root: as `nobody` if the user is root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

NOBODY = "nobody"


def as_somebody(command: list[str], *, dies_with_us: bool = False) -> list[str]:
    """The command, run as `nobody` if the user is root.

    `nobody` can still access the parent folders of its data. ``dies_with_us`` interrupts it when
    the parent process exits.
    """
    if sys.platform != "linux":
        return command
    options = ["--pdeathsig", "INT"] if dies_with_us else []
    if os.geteuid() == 0:
        group = str(pwd.getpwnam(NOBODY).pw_gid)
        options += ["--reuid", NOBODY, "--regid", group, "--clear-groups"]
        options += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return ["setpriv", *options, "--", *command] if options else command


def give(path: Path) -> None:
    """Make the user of such programs the owner of a file or folder."""
    if os.geteuid() == 0:
        shutil.chown(path, NOBODY)


def give_new_folder(path: Path) -> None:
    """Create an empty private folder for such a program."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True, mode=0o700)
    give(path)


def run_as_somebody(
    command: list[str], environment: dict[str, str], script: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run such a program, with a text on its standard input."""
    return subprocess.run(
        as_somebody(command, dies_with_us=True),
        input=script,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
