"""The requests of deploy/emr-serverless, as AWS's own client and moto take them."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from sandbox.install import cluster_folder
from sandbox.settings import PROJECT
from spark_ingest.lake.required_settings import refuse_limits, refuse_settings

FOLDER = PROJECT / "deploy" / "emr-serverless"
FILES = sorted(file.name for file in FOLDER.glob("*.json"))
DEFAULTS = (PROJECT / "profiles" / "spark-defaults.conf").read_text()
ENVIRONMENT = {
    "AWS_REGION": "eu-central-1",
    "AWS_ACCOUNT": "123456789012",
    "BUCKET": "lake-of-mine",
    "SUBNET": "subnet-1",
    "SECURITY_GROUP": "sg-1",
    "MSK_CLUSTER": "events",
    "KAFKA_BOOTSTRAP_SERVERS": "b-1.events:9098,b-2.events:9098",
    "SCHEMA_REGISTRY_URL": "https://registry",
    "SCHEMA_REGISTRY_USER": "ingest",
    "REGISTRY_SECRET_ARN": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:registry",
    "KAFKA_AWS_ROLE_ARN": "",
    "INGEST_ROLE": "millrace-ingest",
    "EMR_APPLICATION": "00abc",
}


def program() -> Any:
    spec = importlib.util.spec_from_file_location("render", FOLDER / "render.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """The folder that `make cluster-archive` writes, as far as it is read here."""
    text = cluster_folder.properties(DEFAULTS, ["jars/a.jar", "jars/b.jar"])
    (tmp_path / "spark.conf").write_text(text)
    return tmp_path


@mock_aws
def test_aws_takes_the_application_and_the_job(cluster: Path) -> None:
    client = boto3.client("emr-serverless", "eu-central-1")
    render = program().rendered
    application = render("application.json", cluster, ENVIRONMENT)
    # Moto's list of releases ends before those with Spark 4.
    made = client.create_application(**application | {"releaseLabel": "emr-7.0.0"})
    here = {**ENVIRONMENT, "EMR_APPLICATION": made["applicationId"]}
    job = render("job.json", cluster, here)
    run = client.start_job_run(**job)
    found = client.get_job_run(applicationId=made["applicationId"], jobRunId=run["jobRunId"])
    assert found["jobRun"]["jobDriver"] == job["jobDriver"]
    client.start_job_run(**render("job.json", cluster, here, ["maintain", "--all"]))


@mock_aws
def test_iam_takes_the_role_and_its_policy(cluster: Path) -> None:
    client, render = boto3.client("iam", "eu-central-1"), program().rendered
    trust = json.dumps(render("trust.json", cluster, ENVIRONMENT))
    client.create_role(RoleName="ingest", AssumeRolePolicyDocument=trust)
    policy = json.dumps(render("ingest-policy.json", cluster, ENVIRONMENT))
    client.put_role_policy(RoleName="ingest", PolicyName="ingest", PolicyDocument=policy)


def test_a_job_has_the_clusters_settings_with_paths_in_the_bucket(cluster: Path) -> None:
    job = program().rendered("job.json", cluster, ENVIRONMENT)
    (defaults,) = job["configurationOverrides"]["applicationConfiguration"]
    found = defaults["properties"]
    refuse_settings(
        {
            "spark.sql.ansi.enabled": "true",
            "spark.sql.storeAssignmentPolicy": "ANSI",
            "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
            "spark.sql.legacy.timeParserPolicy": "CORRECTED",
            **found,
        }
    )
    for side in ("driver", "executor"):
        options = found[f"spark.{side}.extraJavaOptions"].split()
        limits = dict(option[2:].split("=") for option in options if option.startswith("-Dorg"))
        refuse_limits(limits, side, "")
    folder = "s3://lake-of-mine/millrace"
    assert found["spark.jars"] == f"{folder}/jars/a.jar,{folder}/jars/b.jar"
    assert found["spark.archives"] == f"{folder}/millrace.tar.gz#millrace"
    assert found["spark.sql.catalog.lake.warehouse"] == "s3://lake-of-mine/lake"
    # Of an empty variable nothing is left, so that the connections file has its default.
    assert not any(key.endswith("KAFKA_AWS_ROLE_ARN") for key in found)


def test_secrets_are_references(cluster: Path) -> None:
    job = program().rendered("job.json", cluster, ENVIRONMENT)
    (defaults,) = job["configurationOverrides"]["applicationConfiguration"]
    for key, value in defaults["properties"].items():
        if re.search("password|secret", key, re.IGNORECASE):
            assert value.startswith("EMR.secret@arn:")
    without = {**ENVIRONMENT, "REGISTRY_SECRET_ARN": "", "SCHEMA_REGISTRY_USER": ""}
    text = json.dumps(program().rendered("job.json", cluster, without))
    assert "EMR.secret@" not in text
    policy = program().rendered("ingest-policy.json", cluster, without)
    assert not any("secretsmanager" in str(each) for each in policy["Statement"])


def test_a_command_makes_a_batch_job(cluster: Path) -> None:
    job = program().rendered("job.json", cluster, ENVIRONMENT, ["maintain", "--all"])
    assert job["mode"] == "BATCH"
    arguments = job["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    assert arguments[-4:] == ["--target", "msk", "maintain", "--all"]


@pytest.mark.parametrize("name", FILES)
def test_nothing_of_an_account_stands_in_a_file(name: str) -> None:
    text = re.sub(r"\$\{\w+\}", "", (FOLDER / name).read_text()).replace("2012-10-17", "")
    assert not re.search(r"\d{6}|subnet-|sg-\w|s3://\w|(eu|us|ap|ca|sa)-[a-z]+-\d", text)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "render.py"), "trust.json"]
    done = subprocess.run(
        command, env={"AWS_REGION": "r"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "trust.json needs the variables AWS_ACCOUNT, EMR_APPLICATION" in done.stderr
    with pytest.raises(SystemExit, match="make cluster-archive"):
        program().rendered("job.json", tmp_path, ENVIRONMENT)
