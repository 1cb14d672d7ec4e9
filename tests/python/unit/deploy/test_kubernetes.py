"""The Deployment of deploy/kubernetes: what the pod is given is what spark-ingest takes."""

from __future__ import annotations

import re
from string import Template
from typing import Any

import typer.main
import yaml

from sandbox.settings import PROJECT
from spark_ingest.cli.app import app

FOLDER = PROJECT / "deploy" / "kubernetes"
TEXT = (FOLDER / "ingest.yaml").read_text()
SCRIPT = "spark-ingest.py"


def container() -> Any:
    names = Template(TEXT).get_identifiers()
    resources = yaml.safe_load_all(Template(TEXT).substitute(dict.fromkeys(names, "value")))
    (found,) = [one for one in resources if one["kind"] == "Deployment"]
    # Two pods would take the tables from each other.
    assert (found["spec"]["replicas"], found["spec"]["strategy"]["type"]) == (1, "Recreate")
    (only,) = found["spec"]["template"]["spec"]["containers"]
    return only


def test_the_pods_arguments_are_those_of_the_command() -> None:
    arguments = container()["args"]
    words = arguments[arguments.index(SCRIPT) + 1 :]
    commands: Any = typer.main.get_command(app)
    command = commands.commands[words[0]]
    given = command.make_context(words[0], words[1:]).params
    assert given["metrics_port"] == container()["ports"][0]["containerPort"]
    assert given["writer_id"] == "millrace-ingest"


def test_the_pods_variables_are_those_of_the_connections_file() -> None:
    connections = (PROJECT / "profiles" / "ingest.yml").read_text()
    for variable in container()["env"]:
        name = variable["name"]
        assert name == "DBT_VIEWS_AS" or f"${{{name}" in connections


def test_the_image_starts_the_script_that_the_archive_has() -> None:
    image = (FOLDER / "Dockerfile").read_text()
    assert f'CMD ["{SCRIPT}"' in image
    spark = re.search(r"pyspark==(\S+)", image)
    assert spark is not None
    assert f"pyspark=={spark[1]}" in (PROJECT / "requirements.lock").read_text()
