"""The lake's settings, rendered with absolute paths."""

from __future__ import annotations

from pathlib import Path

from sandbox import spark_conf
from sandbox.parts import component_folder
from sandbox.settings import Home


def settings_of(file: Path) -> dict[str, str]:
    lines = [
        line
        for line in file.read_text().splitlines()
        if line and not line.startswith("#")
    ]
    return {
        key: value.strip() for key, _, value in (line.partition(" ") for line in lines)
    }


def test_every_mark_is_filled_and_paths_keep_their_blanks(tmp_path: Path) -> None:
    home = Home(tmp_path / "a home")

    file = spark_conf.render(home, home.spark_conf)

    settings = settings_of(file)
    assert not [value for value in settings.values() if "${" in value]
    assert settings["spark.sql.catalog.lake.warehouse"] == f"{home.path}/lake/warehouse"
    assert settings["spark.driver.extraClassPath"] == f"{component_folder('spark')}/*"
    assert home.lake.is_dir()
    assert (home.spark_conf / "log4j2.properties").is_file()


def test_the_rendered_home_is_read_back(tmp_path: Path) -> None:
    home = Home(tmp_path / "a home")
    spark_conf.render(home, home.spark_conf)

    assert spark_conf.rendered_home(home.spark_conf) == home.path
    assert spark_conf.rendered_home(tmp_path / "nowhere") is None
    (tmp_path / "spark-defaults.conf").write_text("spark.master local[2]\n")
    assert spark_conf.rendered_home(tmp_path) is None
