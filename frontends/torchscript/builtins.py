"""
What a program calls that is no operator on tensors: arithmetic of numbers, lists, texts and
questions about tensors.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from lowerdeck.dialects.pt2.schema import functional, overloads
from lowerdeck.frontends.torchscript.functions import (
    ALSO_OPERATORS,
    FUNCTIONS,
    KNOWS_ROWS,
    LONGEST,
    Caller,
    counts_in_a_run,
    joined_rows,
)
from lowerdeck.frontends.torchscript.nested import NESTED
from lowerdeck.frontends.torchscript.operators import describe
from lowerdeck.frontends.torchscript.quantized import called
from lowerdeck.frontends.torchscript.values import (
    Number,
    ScriptError,
    Tensor,
    is_unknown,
    kind_of,
    leaves,
)

Call: TypeAlias = "Callable[..., Any]"


def _divided(a: float, b: float) -> float:
    if b == 0:
        raise ScriptError("a division by zero")
    return a / b


def _floor_divided(a: float, b: float) -> float:
    if b == 0:
        raise ScriptError("a division by zero")
    return a // b


def _remainder(a: float, b: float) -> float:
    if b == 0:
        raise ScriptError("a division by zero")
    return a % b


def _power(a: float, b: float) -> float:
    if abs(b) > 1024 or (isinstance(a, int) and abs(a) > 1 << 63):
        raise ScriptError("a power that is too large")
    try:
        found = float(a) ** b  # of integers, too
    except (ZeroDivisionError, OverflowError) as error:
        raise ScriptError(f"a power: {error}") from None
    if isinstance(found, complex):
        raise ScriptError("a power that is no real number")
    return found


def _shifted(a: int, b: int) -> int:
    return a << min(b, 64)


def _shifted_back(a: int, b: int) -> int:
    return a >> b


def _truncated(a: int, b: int) -> int:
    return int(_divided(a, b))


def _rounded(a: float) -> float:
    return float(round(a))


def _and(a: int, b: int) -> int:
    return a & b


def _or(a: int, b: int) -> int:
    return a | b


def _xor(a: int, b: int) -> int:
    return a ^ b


def _of_numbers(function: Call) -> Call:
    """A function whose type is not of interest."""
    return function


_BINARY: Mapping[str, tuple[Call, str]] = {
    "add": (_of_numbers(operator.add), "add"),
    "sub": (_of_numbers(operator.sub), "sub"),
    "mul": (_of_numbers(operator.mul), "mul"),
    "div": (_divided, "truediv"),
    "floordiv": (_floor_divided, "floordiv"),
    "remainder": (_remainder, "mod"),
    "fmod": (math.fmod, ""),
    "pow": (_power, "pow"),
    "eq": (operator.eq, "eq"),
    "ne": (operator.ne, "ne"),
    "lt": (operator.lt, "lt"),
    "le": (operator.le, "le"),
    "gt": (operator.gt, "gt"),
    "ge": (operator.ge, "ge"),
    "__and__": (_and, "and_"),
    "__or__": (_or, "or_"),
    "__xor__": (_xor, "ne"),
    "__lshift__": (_shifted, ""),
    "__rshift__": (_shifted_back, ""),
    "bitwise_and": (_and, ""),
    "bitwise_or": (_or, ""),
    "max": (max, "sym_max"),
    "min": (min, "sym_min"),
    "atan2": (math.atan2, ""),
    "copysign": (math.copysign, ""),
    "gcd": (math.gcd, ""),
    "__round_to_zero_floordiv": (_truncated, ""),
}
_UNARY: Mapping[str, tuple[Call, str]] = {
    "neg": (operator.neg, "neg"),
    "__not__": (operator.not_, "sym_not"),
    "abs": (abs, ""),
    "ceil": (math.ceil, ""),
    "floor": (math.floor, ""),
    "round": (_rounded, ""),
    "trunc": (math.trunc, ""),
    **{
        name: (getattr(math, name), "")
        for name in (
            "sqrt exp log log2 log10 log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh "
            "acosh atanh erf erfc gamma lgamma degrees radians isnan isinf isfinite"
        ).split()
    },
}


FUNCTIONS.update(NESTED)


class Builtins(Caller):
    """What is computed while a program is followed."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = ""
        """The operator that was refused last."""

    def is_known(self, name: str) -> bool:
        """True for a function that can be called by name."""
        short = _short(name)
        is_plain = short in FUNCTIONS or short in _BINARY or short in _UNARY
        return is_plain or overload_of(name) is not None

    def builtin(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """What a function that is no one of the program gives."""
        for value in (*args, *keywords.values()):
            self.require_known(value)
            if is_unknown(value):
                raise ScriptError(describe(value[0]))
        space, _, short = name.partition(".")
        short = short or space
        if space == "ops":
            space, _, short = short.partition(".")
        if space == "quantized":
            space = short = f"quantized.{short}"
        if any(map(counts_in_a_run, (*args, *keywords.values()))):
            if short not in KNOWS_ROWS:
                raise ScriptError("a list whose length depends on data")
            if short in ("stack", "cat", "concat"):
                self.located(short)
                return joined_rows(self, short, *args, *keywords.values())
        if space in ("torch", "aten", "prim", short):
            if short in FUNCTIONS and _is_plain(short, args):
                try:
                    return FUNCTIONS[short](self, *args, **keywords)
                except (TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
                    raise ScriptError(f"a call that fails: {str(error)[:200]}") from None
            if (found := self._arithmetic(short, args)) is not None:
                return found[0]
        self.located(short)
        return called(self, target_of(name), short, args, keywords)

    # Arithmetic

    def _arithmetic(self, name: str, args: Sequence[Any]) -> tuple[Any] | None:
        """What a function of numbers gives; None if it is no one."""
        if any(isinstance(value, Tensor) for value in args):
            return None
        function, op = {1: _UNARY, 2: _BINARY}.get(len(args), {}).get(name, (None, ""))
        if function is None:
            if name in ("max", "min") and len(args) == 1:
                return (self._extremum(name, args[0]),)
            return None
        if any(isinstance(value, Number) for value in args):
            return (self._symbolic(name, op, args),)
        if any(isinstance(part, Number) for value in args for part in leaves(value)):
            return (self._compared(name, args),)
        try:
            found: Any = self._repeated(*args) if name == "mul" else function(*args)
        except (TypeError, ValueError, OverflowError) as error:
            raise ScriptError(f"arithmetic that fails: {error}") from None
        if isinstance(found, list | str) and len(cast("Any", found)) > LONGEST:
            raise ScriptError("a list that is too long")
        if isinstance(found, int) and not -(1 << 63) <= found < 1 << 63:
            found = (found + (1 << 63)) % (1 << 64) - (1 << 63)
        return (cast("Any", found),)

    def _repeated(self, a: Any, b: Any) -> Any:
        """The product of two numbers, or a list several times."""
        if isinstance(a, list) and isinstance(b, int) and len(cast("Any", a)) * b > LONGEST:
            raise ScriptError("a list that is too long")
        return cast("Any", a) * b

    def _extremum(self, name: str, items: Any) -> Any:
        function = max if name == "max" else min
        if any(isinstance(item, Number) for item in items):
            found = items[0]
            for item in items[1:]:
                found = self.builtin(f"ops.prim.{name}", [found, item], {})
            return found
        return function(items)

    def _symbolic(self, name: str, op: str, args: Sequence[Any]) -> Any:
        """Arithmetic of numbers that only a run knows."""
        if any(value is None for value in args) and name in ("eq", "ne"):
            return name == "ne"
        if not op or not all(isinstance(value, Number | int | float) for value in args):
            return self._through_tensors(name, args)
        if name == "pow":  # a float, of integers, too
            args = [self.builtin("float", [args[0]], {}), args[1]]
        kinds = [kind_of(value) for value in args]
        self.located(name)
        if name in ("floordiv", "remainder", "pow") and float in kinds:
            return self._through_tensors(name, args)
        if name == "__xor__" and kinds != [bool, bool]:
            return self._through_tensors("bitwise_xor", args)
        if op.startswith("sym_"):
            return self.call(f"torch.{op}", args, {})
        return self.call(f"_operator.{op}", args, {})

    def _through_tensors(self, name: str, args: Sequence[Any]) -> Any:
        """Arithmetic by the operator on tensors without dimensions."""
        aten = {"floordiv": "floor_divide"}.get(name, name)
        if not all(isinstance(value, Number | int | float) for value in args):
            raise ScriptError(f"{name} of " + " and ".join(map(describe, args)))
        tensors = [self.tensor(self.value_of(value)) for value in args]
        self.located(name)
        found = self.item(self.call(f"aten.{aten}", tensors, {}))
        if name in ("ceil", "floor", "round", "trunc"):
            return self.builtin("int", [found], {})
        return found

    def _compared(self, name: str, args: Sequence[Any]) -> Any:
        """Whether lists with numbers that only a run knows are equal."""
        one, other = args
        if name == "add" and isinstance(one, list) and isinstance(other, list):
            return [*cast("list[Any]", one), *cast("list[Any]", other)]
        if name not in ("eq", "ne") or not isinstance(one, list | tuple):
            raise ScriptError(f"{name} of lists that depend on data")
        same: Any = len(cast("Any", one)) == len(other)
        for a, b in zip(cast("Any", one), other, strict=False):
            if same is False:
                break
            equal = self.builtin("torch.eq", [a, b], {})
            same = equal if same is True else self.builtin("torch.__and__", [same, equal], {})
        return self.builtin("torch.__not__", [same], {}) if name == "ne" else same


def _is_plain(name: str, args: Sequence[Any]) -> bool:
    """True if a function is not meant to be the operator on tensors of the same name."""
    return name not in ALSO_OPERATORS or not (args and isinstance(args[0], Tensor))


def _short(name: str) -> str:
    """A function without its namespace."""
    space, _, short = name.partition(".")
    return short if space == "torch" else short.removeprefix("prim.").removeprefix("aten.")


def overload_of(name: str) -> str | None:
    """An overload of an operator that the table has."""
    target = target_of(name)
    known = overloads(functional(f"{target}.").removesuffix(".")) or overloads(target)
    return known[0] if known else None


def target_of(name: str) -> str:
    """The operator with its namespace."""
    space, _, rest = name.partition(".")
    if space == "torch":
        return f"aten.{rest}" if not rest.startswith("sym_") else name
    return rest if space == "ops" else name
