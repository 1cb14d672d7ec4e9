"""Programs that refuse root: run by `nobody` where the person is root, else as they are."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

NOBODY = "nobody"


def as_somebody(command: list[str], *, dies_with_us: bool = False) -> list[str]:
    """The command as one that root does not run.

    `nobody` may enter the folders above its data all the same. ``dies_with_us`` ends it, as
    Ctrl-C would, when the process that started it ends.
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
    """Let who runs such programs own a file or folder of theirs."""
    if os.geteuid() == 0:
        shutil.chown(path, NOBODY)


def give_new_folder(path: Path) -> None:
    """Make an empty folder that such a program owns, and nobody else may enter."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True, mode=0o700)
    give(path)


def run_as_somebody(
    command: list[str], environment: dict[str, str], script: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run such a program to its end, with a text on its standard input."""
    return subprocess.run(
        as_somebody(command, dies_with_us=True),
        input=script,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
