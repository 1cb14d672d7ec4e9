"""Passwords of database users: made once, each in a file beside the data that it opens."""

from __future__ import annotations

import secrets
from pathlib import Path

from sandbox.services.security import write_secret


def password(folder: Path, user: str) -> str:
    """A user's password; made when it is asked for the first time.

    ``folder`` is that of the database's service.
    """
    file = _file(folder, user)
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_secret(file, secrets.token_urlsafe(24))
    return file.read_text()


def _file(folder: Path, user: str) -> Path:
    return folder / f"{user}.password"
