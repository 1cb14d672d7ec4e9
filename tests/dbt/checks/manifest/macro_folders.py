"""Calls between the folders of macros run one way."""

from typing import Any

from dbt_bouncer.check_framework.decorator import check, fail


def _folder(macro: Any) -> str:
    path = str(macro.original_file_path).replace("\\", "/")
    return path.split("/")[1] if path.startswith("macros/") else ""


@check
def check_macro_calls_lower_folders(macro: Any, ctx: Any, *, folders: list[str]) -> None:
    """A macro may call those of its own folder and of folders that are listed behind it.

    Args:
        macro: The macro that calls.
        ctx: What dbt-bouncer has read.
        folders: Folders below `macros/`, from the one that may call all others to the one that
            calls none. A folder that is not listed may call all, and its macros have names of
            dbt's, so that a call of one is a call of dbt.
    """
    manifest = ctx.manifest_obj.manifest
    folder = _folder(macro)
    if folder not in folders:
        return
    for called_id in macro.depends_on.macros:
        called = manifest.macros.get(called_id)
        above = folders[: folders.index(folder)]
        if called is not None and _folder(called) in above:
            fail(
                f"`{macro.name}` in macros/{folder} calls `{called.name}` in"
                f" macros/{_folder(called)}, which is above it: {' > '.join(folders)}"
            )
