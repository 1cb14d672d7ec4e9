"""The policy of the job's role allows the calls to S3 and Glue that ingest makes, and no others.

Fails when a command of ingest needs an action that deploy/emr-serverless does not give its role.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from string import Template
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx2
import pytest

from sandbox.settings import PROJECT
from spark_ingest.operate.maintain import Policy, maintain
from tests.python import catalogs
from tests.python.gate import Answer, Gate, Request
from tests.python.stack.conftest import ORDER, Feed, orders, proofs, running, wait_for

pytestmark = [pytest.mark.nightly, pytest.mark.aws]

POLICY = PROJECT / "deploy" / "emr-serverless" / "ingest-policy.json"
PARAMETERS = {"BUCKET": "lake", "AWS_REGION": "us-east-1", "AWS_ACCOUNT": "123456789012"}
GLUE = "arn:aws:glue:us-east-1:123456789012"
# Calls to MSK and of EMR Serverless itself, and of an upload that fails.
OTHERS = ("kafka-cluster:", "secretsmanager:", "s3:AbortMultipartUpload")


def calls(request: Request) -> Iterator[tuple[str, str]]:
    """The IAM actions of a request, each with a resource."""
    address = urlsplit(request.path)
    for name, value in request.headers.items():
        if name.lower() == "x-amz-target":
            action, asked = f"glue:{value.partition('.')[2]}", json.loads(request.body)
            table = asked.get("TableInput", asked).get("Name")
            database = asked.get("DatabaseInput", {}).get("Name") or asked.get("DatabaseName")
            yield action, f"{GLUE}:catalog"
            yield action, f"{GLUE}:database/{database or table}"
            if database and table and "DatabaseInput" not in asked:
                yield action, f"{GLUE}:table/{database}/{table}"
            return
    bucket, _, key = unquote(address.path).lstrip("/").partition("/")
    query = parse_qs(address.query, keep_blank_values=True)
    resource = f"arn:aws:s3:::{bucket}"
    if request.method == "POST" and "delete" in query:
        for part in request.body.decode().split("<Key>")[1:]:
            yield "s3:DeleteObject", f"{resource}/{part.partition('</Key>')[0]}"
    elif not key:
        yield "s3:ListBucket", f"{resource}/{query.get('prefix', [''])[0]}"
    elif request.method == "DELETE":
        is_upload = "uploadId" in query
        yield f"s3:{'AbortMultipartUpload' if is_upload else 'DeleteObject'}", f"{resource}/{key}"
    else:
        is_read = request.method in {"GET", "HEAD"}
        yield f"s3:{'GetObject' if is_read else 'PutObject'}", f"{resource}/{key}"


def resources(statement: Any) -> list[str]:
    """The patterns of a statement's resources; those of a listed bucket have its prefixes."""
    prefixes = statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix", [])
    found: list[str] = statement["Resource"]
    return [f"{bucket}/{prefix}" for bucket in found for prefix in prefixes] or found


def is_allowed(statements: list[Any], action: str, resource: str) -> bool:
    return any(
        action in one["Action"]
        and any(fnmatch.fnmatchcase(resource, given) for given in resources(one))
        for one in statements
    )


def test_the_role_may_do_what_ingest_does_and_no_more(feed: Feed) -> None:
    policy = json.loads(Template(POLICY.read_text()).safe_substitute(PARAMETERS))
    made: set[tuple[str, str]] = set()
    with catalogs.glue(feed.services.spark) as before:
        httpx2.put(f"{before.service}/lake").raise_for_status()

        def record(request: Request) -> Answer:
            made.update(calls(request))
            return before.pass_on(request)

        with before.treating(lambda _: True, record):
            work(feed, before)
    statements = policy["Statement"]
    assert [call for call in sorted(made) if not is_allowed(statements, *call)] == []
    given = {action for one in statements for action in one["Action"]}
    needed = {action for action, _ in made}
    assert [action for action in sorted(given - needed) if not action.startswith(OTHERS)] == []


def work(feed: Feed, before: Gate) -> None:
    """Land, verify and maintain; nothing but S3FileIO and Glue is used."""
    settings = {
        "type": "glue",
        "glue.endpoint": before.address,
        "client.region": "us-east-1",
        "io_impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": before.address,
        "s3.path-style-access": "true",
        "warehouse": "s3://lake/lake",
    }
    spark = catalogs.use(feed.services.spark, **settings)
    on_s3 = replace(feed, services=replace(feed.services, spark=spark))
    number = feed.register(ORDER)
    with running(on_s3) as failures:
        for batch in range(6):
            feed.send(*orders(number, 2 * batch, 2), b"junk")
            wait_for(partial(lambda many: len(on_s3.offsets()) == many, 2 * batch + 2))
    assert failures == []
    assert all(proof.holds for proof in proofs(on_s3))
    policy = Policy(timedelta(0), 2**27, timedelta(days=3))
    done = maintain(spark, on_s3.stream.table, policy)
    assert done.after.files < done.before.files
