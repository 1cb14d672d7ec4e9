"""Parse YAML with positions, to insert lines without other changes."""

from __future__ import annotations

from typing import Any

import yaml

# libyaml, if available: ten times as fast.
_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


def parse(text: str) -> Any:
    """Parse a YAML text.

    Raises:
        yaml.YAMLError: It is invalid.
    """
    return _LOADER(text).get_single_data()


class _Placed(yaml.SafeLoader):
    """Gives an alias its own position instead of that of its anchor."""

    def compose_node(self, parent: Any, index: int) -> Any:
        is_alias = self.check_event(yaml.AliasEvent)
        event: Any = self.current_event
        node: Any = super().compose_node(parent, index)
        if not is_alias:
            return node
        more = {} if isinstance(node, yaml.ScalarNode) else {"flow_style": True}
        place = event.start_mark, event.end_mark
        return type(node)(node.tag, node.value, *place, **more)


def compose(text: str) -> Any:
    """The root node of a YAML text, with the positions of all nodes; None if it is empty.

    Raises:
        yaml.YAMLError: It is invalid.
    """
    return yaml.compose(text, Loader=_Placed)


def value(mapping: Any, key: str) -> Any:
    """The node of a key; None if it is missing."""
    if not isinstance(mapping, yaml.MappingNode):
        return None
    return next((node for name, node in mapping.value if name.value == key), None)


def scalar(mapping: Any, key: str) -> Any:
    """The scalar value of a key; None if it is missing."""
    return getattr(value(mapping, key), "value", None)


def last_line(node: Any) -> int:
    """The last line of a node, from 0."""
    if isinstance(node, yaml.ScalarNode):
        mark = node.end_mark
        if mark.column == 0 and mark.line > node.start_mark.line:
            # The end mark of a block scalar is the start of the next token.
            body = node.value.rstrip("\n").splitlines() or [""]
            return int(min(mark.line - 1, node.start_mark.line + max(len(body), 1)))
        return int(mark.line)
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    else:
        inner = node.value
    if node.flow_style or not inner:
        return int(node.end_mark.line)
    return max(last_line(part) for part in inner)


def with_lines(text: str, at: int, added: str) -> str:
    """Insert lines before a line, counted from 0."""
    lines = text.splitlines(keepends=True)
    if at > 0 and not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    return "".join([*lines[:at], added, *lines[at:]])
