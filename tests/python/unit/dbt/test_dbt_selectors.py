"""What `selectors.yml` leaves out of an everyday build is all that reads all of bronze."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from docs.generate.domain_pages import Manifest, Node
from sandbox.settings import PROJECT

# The singular tests of the ledger read a mart, and say what is true of bronze.
LEDGER = ["millrace", "ops"]


def data_tests(manifest: Manifest) -> dict[str, Node]:
    """The data tests by their unique id."""
    return {
        name: node
        for name, node in manifest["nodes"].items()
        if node["resource_type"] == "test"
    }


def reads_bronze(test: Node, manifest: Manifest) -> bool:
    """Whether a test reads a source, or a view, which reads all of one."""
    return any(
        parent in manifest["sources"]
        or manifest["nodes"][parent]["fqn"][1] in ("staging", "intermediate")
        for parent in test["depends_on"]["nodes"]
    )


def test_what_reads_all_of_bronze_is_a_proof_and_nothing_else(
    manifest: Manifest,
) -> None:
    wanted = {
        name
        for name, test in data_tests(manifest).items()
        if reads_bronze(test, manifest) or test["fqn"][:2] == LEDGER
    }
    tagged = {
        name for name, test in data_tests(manifest).items() if "proof" in test["tags"]
    }
    assert wanted
    assert tagged == wanted


def test_everyday_is_everything_but_the_proof(
    manifest: Manifest, parsed: Path, tmp_path: Path
) -> None:
    # Not parsed again.
    shutil.copyfile(
        parsed / "partial_parse.msgpack", tmp_path / "partial_parse.msgpack"
    )

    listed = subprocess.run(
        [
            *(str(Path(sys.executable).parent / "dbt"), "--quiet", "ls"),
            *("--target", "lint", "--selector", "everyday", "--output", "json"),
            *("--output-keys", "unique_id"),
            *("--target-path", str(tmp_path), "--log-path", str(tmp_path)),
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    built = {
        name
        for name, node in (manifest["nodes"] | manifest["unit_tests"]).items()
        if node["resource_type"] in ("model", "seed", "test", "unit_test")
    }
    proof = {
        name for name, node in data_tests(manifest).items() if "proof" in node["tags"]
    }
    chosen = {json.loads(line)["unique_id"] for line in listed.splitlines()}
    assert built & chosen == built - proof


def test_a_build_without_a_selector_leaves_nothing_out(manifest: Manifest) -> None:
    assert {"everyday", "proof"} <= manifest["selectors"].keys()
    assert not any(
        selector.get("default") for selector in manifest["selectors"].values()
    )
