"""Conditions on episodes, such as `success and jerk < 40 and operator != ""`.

The condition is a Python expression of names, numbers, texts, comparisons, `and`, `or`, `not`, `in` and
arithmetic. It is walked, not evaluated by Python, so it can do nothing else.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from bunraku.episode.reader import EpisodeFile
from bunraku.errors import BunrakuError, UnknownNameError

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}


def facts(file: EpisodeFile) -> dict[str, dict[str, Any]]:
    """Return what a condition can ask, by episode: columns of the index, `seed`, and measures of quality."""
    found: dict[str, dict[str, Any]] = {}
    for row in file.index:
        name = f"demo_{int(row['demo'])}"
        meta = file.meta(name)
        quality = meta.get("quality") or {}
        found[name] = {
            **quality,
            "number": int(row["demo"]),
            "steps": int(row["num_samples"]),
            "seconds": float(row["sim_seconds"]),
            "label": row["label"].decode(),
            "success": row["label"] == b"success",
            "device": str(meta.get("device") or ""),
            "operator": str(meta.get("operator") or ""),
            "seed": meta.get("seed"),
        }
    return found


class Condition:
    """A condition on an episode's facts."""

    def __init__(self, text: str) -> None:
        """Parse it.

        Raises:
            BunrakuError: It is not such an expression.
        """
        self.text = text
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise BunrakuError(
                f"--where {text!r} cannot be read ({error.args[0]}); write it like 'success and jerk < 40'"
            ) from error

    def __call__(self, episode: Mapping[str, Any]) -> bool:
        """Say whether the condition holds for an episode's facts.

        Raises:
            BunrakuError: It asks what is not known of the episode, or compares what cannot be compared.
        """
        try:
            return bool(self._value(self._tree, episode))
        except (TypeError, ZeroDivisionError, RecursionError) as error:
            raise BunrakuError(f"--where {self.text!r} cannot be answered: {error}") from error

    def _value(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None):
                return node.value
            case ast.Name(id=name):
                if name not in names:
                    raise UnknownNameError("word in --where", name, names)
                return names[name]
            case ast.BoolOp(op=ast.And()):
                return all(self._value(part, names) for part in node.values)
            case ast.BoolOp():
                return any(self._value(part, names) for part in node.values)
            case ast.UnaryOp(op=ast.Not()):
                return not self._value(node.operand, names)
            case ast.UnaryOp(op=ast.USub()):
                return -self._value(node.operand, names)
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                left, right = self._value(node.left, names), self._value(node.right, names)
                if not all(isinstance(side, int | float) for side in (left, right)):
                    raise TypeError("only numbers can be added, multiplied and so on")
                return _ARITHMETIC[type(node.op)](left, right)
            case ast.Compare():
                return self._compare(node, names)
            case ast.Tuple() | ast.List():
                return [self._value(part, names) for part in node.elts]
            case _:
                raise BunrakuError(
                    f"--where {self.text!r} has a part that is not allowed: {ast.unparse(node)!r}; names, "
                    "numbers, texts, comparisons, and, or, not, in and arithmetic are"
                )

    def _compare(self, node: ast.Compare, names: Mapping[str, Any]) -> bool:
        left = self._value(node.left, names)
        for op, part in zip(node.ops, node.comparators, strict=True):
            if type(op) not in _COMPARE:
                raise BunrakuError(f"--where {self.text!r}: write == or != instead of is")
            right = self._value(part, names)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True
