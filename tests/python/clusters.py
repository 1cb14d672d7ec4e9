"""A Spark cluster of two workers, with a catalog on it: where programs of a feed run.

The test's own Spark, which looks at what they left, sees the same catalog.
"""

from __future__ import annotations

import os
import shutil
import site
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sandbox.services import stack as sandbox_services
from sandbox.settings import PROJECT
from tests.python import catalogs
from tests.python.conftest import Stack, add_aws_if_wanted
from tests.python.gate import Gate, gate
from tests.python.stack.conftest import Feed


@dataclass(frozen=True)
class Cluster:
    """A feed whose programs run on the cluster, with their way to the catalog.

    Attributes:
        feed: What the test asks goes past the gate.
        before: The gate before the catalog, and before S3 where that is of the same server.
        beside: The same feed for a program on this machine's Spark alone: as long as one
            application has all cores of the cluster, a second one gets no executor.
    """

    feed: Feed
    before: Gate
    beside: Feed


@pytest.fixture(scope="module")
def master(request: pytest.FixtureRequest, stack: Stack) -> Iterator[str]:
    """The master of the cluster."""
    sandbox_services.up(stack.home, ["spark-cluster"])
    # `up` writes Spark's settings.
    add_aws_if_wanted(request, stack.home)
    yield f"spark://127.0.0.1:{stack.home.ports['spark-cluster']}"
    sandbox_services.down(stack.home, ["spark-cluster"])


@contextmanager
def with_glue(feed: Feed, master: str, folder: Path) -> Iterator[Cluster]:
    """The cluster with Glue and S3, as moto plays them; ``folder`` gets Spark's settings."""
    with catalogs.glue(feed.services.spark) as before:
        catalogs.make_bucket(before)
        env = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
        near, far = catalogs.on_s3(before.service), catalogs.on_s3(before.address)
        yield _cluster(feed, master, folder, before, near, far, env)


@contextmanager
def with_rest(feed: Feed, master: str, folder: Path) -> Iterator[Cluster]:
    """The cluster with a REST catalog, whose warehouse is a folder that all workers see."""
    files = folder / "rest"
    files.mkdir()
    with catalogs.rest_catalog(files) as address, gate(catalogs.port_of(address)) as before:
        shared = {"type": "rest", "warehouse": f"{files}/warehouse"}
        near, far = shared | {"uri": address}, shared | {"uri": before.address}
        yield _cluster(feed, master, folder, before, near, far, {})


def on_a_cluster(feed: Feed, folder: Path, settings: Mapping[str, str]) -> Feed:
    """The same feed for programs whose Spark runs on a cluster.

    Args:
        feed: The feed.
        folder: Gets the configuration of that Spark.
        settings: Of Spark, without ``spark.``: master, memory, catalog.
    """
    file = shutil.copytree(feed.stack.home.spark_conf, folder) / "spark-defaults.conf"
    lines = [line for line in file.read_text().splitlines() if line.startswith("spark.")]
    merged = dict(line.split(maxsplit=1) for line in lines)
    merged["spark.executor.extraClassPath"] = merged["spark.driver.extraClassPath"]
    merged |= {f"spark.{key}": value for key, value in settings.items()}
    file.write_text("".join(f"{key} {value}\n" for key, value in merged.items()))
    env = feed.stack.env | {"SPARK_CONF_DIR": str(folder)}
    return replace(feed, stack=replace(feed.stack, env=env))


def _cluster(
    feed: Feed,
    master: str,
    folder: Path,
    before: Gate,
    near: Mapping[str, str],
    far: Mapping[str, str],
    env: Mapping[str, str],
) -> Cluster:
    """Settings of the catalog as the test's Spark has them, ``near``, and the programs, ``far``."""
    there = replace(
        feed,
        services=replace(feed.services, spark=catalogs.use(feed.services.spark, **near)),
        stack=replace(feed.stack, env={**feed.stack.env, **env}),
    )
    catalog = {f"sql.catalog.lake.{key.replace('_', '-')}": value for key, value in far.items()}
    # The workers' Python has no packages.
    packages = os.pathsep.join([str(PROJECT), *site.getsitepackages()])
    workers = {"master": master, "executorEnv.PYTHONPATH": packages}
    return Cluster(
        on_a_cluster(there, folder / "cluster", catalog | workers),
        before,
        on_a_cluster(there, folder / "beside", {**catalog, "master": "local[1]"}),
    )
