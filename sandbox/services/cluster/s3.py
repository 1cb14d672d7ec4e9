"""S3 and AWS Glue, emulated by moto: a lake on an object store without an account.

They are in memory: what they hold ends with them.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

import httpx2

from sandbox.processes.process import accepts
from sandbox.services.service import Service
from sandbox.settings import Home

BUCKET = "lake"
# moto accepts any; programs need some.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "sandbox",
    "AWS_SECRET_ACCESS_KEY": "sandbox",
    "AWS_REGION": "us-east-1",
}


def endpoint(home: Home) -> str:
    """The address of both services."""
    return f"http://127.0.0.1:{home.ports['s3']}"


def _command(home: Home) -> list[str]:
    return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(home.ports["s3"])]


def _is_ready(home: Home) -> bool:
    return accepts(home.ports["s3"])


def _settle(home: Home) -> list[str]:
    bucket = f"{endpoint(home)}/{BUCKET}"
    if httpx2.head(bucket).is_success:
        return []
    httpx2.put(bucket).raise_for_status()
    return [f"bucket s3://{BUCKET}"]


def _lacks_moto() -> str | None:
    return None if find_spec("moto") else "s3 needs moto: `make install`"


S3 = Service(
    name="s3",
    title="S3 and Glue (moto, in memory)",
    parts=(),
    ports=("s3",),
    command=_command,
    is_ready=_is_ready,
    settle=_settle,
    is_asked_for=True,
    is_open_only=True,
    lacks_platform=_lacks_moto,
)
