"""Text of C: indentation, identifiers, types and expressions."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from math import prod

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.buffer.operands import by_operand
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.core.types import bf16, bit_width, f16, f32, f64, i1, is_unsigned
from lowerdeck.dialects.dims import Atom, Expr, constants
from lowerdeck.lowering.emit_c.identifiers import identifier

_FLOAT_TYPES: dict[Attribute, str] = {
    f64: "double",
    f32: "float",
    f16: "lowerdeck_f16",
    bf16: "lowerdeck_bf16",
}


def storage_type(element: Attribute) -> str:
    """The C type of an element in memory; i1 is one byte, 0 or 1."""
    if element in _FLOAT_TYPES:
        return _FLOAT_TYPES[element]
    if element == i1:
        return "uint8_t"
    return f"{'u' if is_unsigned(element) else ''}int{bit_width(element)}_t"


def value_c_type(type_: Attribute) -> str:
    """The C type of a scalar value."""
    if isinstance(type_, IndexType):
        return "int64_t"
    if type_ == i1:
        return "bool"
    return storage_type(type_)


def integer_literal(value: int, width: int = 64) -> str:
    """A literal that has the type int64_t (or int for narrow widths) and no overflow."""
    if value == -(1 << 63):
        return "INT64_MIN"
    if value == -(1 << 31):
        return "INT32_MIN"
    return f"INT64_C({value})" if width == 64 and abs(value) >= 1 << 31 else str(value)


def float_literal(value: float, type_: Attribute) -> str:
    """A literal that reads back as exactly this value."""
    suffix = "" if type_ == f64 else "f"
    # The macros are floats.
    wide = "(double)" if type_ == f64 else ""
    if math.isnan(value):
        return f"{wide}NAN"
    if math.isinf(value):
        return f"{wide}INFINITY" if value > 0 else f"-{wide}INFINITY"
    number = np.float64(value) if type_ == f64 else np.float32(value)
    text = np.format_float_scientific(number, trim="0", exp_digits=1)
    mantissa, exponent = text.split("e")
    return f"{mantissa}{suffix}" if exponent == "+0" else f"{mantissa}e{exponent}{suffix}"


def comment(text: str) -> str:
    """A C comment on one line; names from a model cannot end it or hide what follows."""
    printable = "".join(c if c.isprintable() and c not in "\\?" else "_" for c in text)
    return f"/* {printable.replace('*/', '* /').replace('/*', '/ *')} */"


def string_literal(text: str) -> str:
    """A C string literal of UTF-8; nothing in it ends it, continues a line or is a trigraph."""
    plain = {ord(c) for c in " !#$&'()*+,-./:;<=>@[]^_`{|}~"}
    parts: list[str] = []
    for byte in text.encode("utf-8", "replace"):
        is_plain = byte in plain or (byte < 128 and chr(byte).isalnum())
        parts.append(chr(byte) if is_plain else f"\\{byte:03o}")
    return f'"{"".join(parts)}"'


_LONG = 200
"""Characters of an expression whose parts have no identifiers."""


class Symbols(dict[str, str]):
    """The identifiers of dimension symbols; those that are looked up go into a set."""

    def __init__(self, used: set[str]) -> None:
        super().__init__()
        self._used = used

    def __getitem__(self, symbol: str) -> str:
        name = super().__getitem__(symbol)
        self._used.add(name)
        return name


class CWriter:
    """Lines of one C function, with the names of its values."""

    def __init__(self, taken: Iterable[str], index_bits: int = 64) -> None:
        self.index_type = f"int{index_bits}_t"
        """That of loop variables and indices."""
        self._suffix = "" if index_bits == 64 else f"_{index_bits}"
        self.lines: list[str] = []
        self._depth = 1
        self._names: dict[SSAValue, str] = {}
        self.reserved = frozenset(taken)
        """Identifiers that mean something outside of the function."""
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}
        self.used: set[str] = set()
        """The identifiers that what is written refers to."""
        self.symbols = Symbols(self.used)
        self.sizes: set[str] = set()
        """The symbols that are dimensions of inputs, and those that count parts."""
        self._strides: dict[Expr, str] = {}
        self._parts: dict[tuple[Atom, bool], str] = {}
        """The identifiers of parts of long expressions, which may be `_c_checked`."""

    def short(self, expr: Expr) -> str:
        """
        The C form of an expression over the symbols; quotients, minima and maxima in a long one get
        identifiers, of which equal ones share one.
        """
        text = c_expr(expr, self.symbols)
        return text if len(text) <= _LONG else self._in_parts(expr, False)

    def short_size(self, expr: Expr) -> str:
        """The same of what `size` writes."""
        text = self.size(expr)
        return text if len(text) <= _LONG else self._in_parts(expr, _may_overflow(expr, self.sizes))

    def _in_parts(self, expr: Expr, is_checked: bool) -> str:
        """The C form of an expression whose parts are named in the lines before."""
        names = ChainMap(dict[str, str](), self.symbols)
        terms: list[tuple[tuple[Atom, ...], int]] = []
        for monomial, coefficient in expr.terms:
            factors: list[Atom] = []
            for atom in monomial:
                if atom.kind == "symbol":
                    factors.append(atom)
                    continue
                part = self._part(atom, is_checked)
                names[f"({part})"] = part  # as no symbol is called
                factors.append(Atom("symbol", f"({part})"))
            terms.append((tuple(factors), coefficient))
        write = _c_checked if is_checked else c_expr
        return write(Expr(tuple(terms)), names)

    def _part(self, atom: Atom, is_checked: bool) -> str:
        if (atom, is_checked) not in self._parts:
            texts = [self._in_parts(argument, is_checked) for argument in atom.args]
            texts = [self._named(text) if len(text) > _LONG else text for text in texts]
            text = (_checked_call if is_checked else _call)(atom.kind, texts)
            self._parts[atom, is_checked] = self._named(text)
        return self.use(self._parts[atom, is_checked])

    def _named(self, text: str) -> str:
        name = self.fresh("part")
        self.line(f"const int64_t {name} = {text};")
        return self.use(name)

    def size(self, value: Expr) -> str:
        """An expression over the symbols as `c_size` writes it."""
        return c_size(value, self.symbols, self.sizes)

    def line(self, text: str) -> None:
        """Append one line at the current depth."""
        self.lines.append("  " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """`head {`, what is written inside, `}`."""
        self.line(f"{head} {{".lstrip())
        with self._inside():
            yield
        self.line("}")

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """Turn the `}` just written into `} else {`."""
        self.lines[-1] += " else {"
        with self._inside():
            yield
        self.line("}")

    @contextmanager
    def _inside(self) -> Generator[None]:
        """What is named here is not known outside."""
        parts = self._parts.copy()
        self._depth += 1
        yield
        self._depth -= 1
        self._parts = parts

    def fresh(self, stem: str) -> str:
        """A new identifier."""
        return identifier(stem, self._taken, self._numbers)

    def declare(self, value: SSAValue, stem: str | None = None) -> str:
        """A new identifier for a value."""
        self._names[value] = self.fresh(stem or value.name_hint or "v")
        return self._names[value]

    def alias(self, value: SSAValue, name: str) -> None:
        """Let a value have a name that exists."""
        self._names[value] = name

    def name(self, value: SSAValue) -> str:
        """The identifier of a value, for what does not refer to it."""
        return self._names[value]

    def use(self, name: str) -> str:
        """The same identifier, which is used from now on."""
        self.used.add(name)
        return name

    def value(self, value: SSAValue) -> str:
        """The identifier of a value, to be written."""
        return self.use(self._names[value])

    def bind_symbol(self, symbol: str) -> str:
        """A new identifier for a dimension symbol."""
        name = self.symbols[symbol] = self.fresh(symbol)
        return name

    def declare_stride(self, stride: Expr) -> str:
        """The identifier of a stride; one for equal ones."""
        if stride not in self._strides:
            self._strides[stride] = self.fresh("step")
        return self._strides[stride]

    def stride(self, stride: Expr) -> str:
        """The identifier of a stride that has one, to be written."""
        return self.use(self._strides[stride])

    def index(self, expr: Expr, operands: Sequence[SSAValue]) -> str:
        """The C form of an expression over d0, d1, ... and the function's symbols."""
        values = by_operand(operands)
        names = {
            name: self.value(values[name]) if name in values else self.symbols[name]
            for name in expr.symbols
        }
        return c_expr(expr, names, self._suffix)


def c_expr(expr: Expr, names: Mapping[str, str], suffix: str = "") -> str:
    """
    The C form of an integer expression; int64_t throughout, or of the type that functions of this
    suffix are for.
    """
    parts: list[str] = []
    for monomial, coefficient in expr.terms:
        factors = [_c_atom(atom, names, suffix) for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.append(integer_literal(abs(coefficient)))
        text = " * ".join(factors)
        if not parts:
            parts.append(f"-{text}" if coefficient < 0 else text)
        else:
            parts.append(f" {'-' if coefficient < 0 else '+'} {text}")
    return "".join(parts) or "0"


def needs_runtime(expr: Expr) -> bool:
    """True if the C form of an expression calls functions of lowerdeck_runtime.h."""
    return any(atom.kind != "symbol" for monomial, _ in expr.terms for atom in monomial)


def _c_atom(atom: Atom, names: Mapping[str, str], suffix: str = "") -> str:
    if atom.kind == "symbol":
        return names[atom.name]
    texts = [c_expr(argument, names, suffix) for argument in atom.args]
    return _call(f"{atom.kind}{suffix}", texts)


def _call(kind: str, arguments: Sequence[str]) -> str:
    return reduce(lambda b, a: f"lowerdeck_{kind}({a}, {b})", reversed(arguments))


def c_size(expr: Expr, names: Mapping[str, str], safe: Collection[str]) -> str:
    """
    The C form of an expression over numbers that anybody may have chosen: what is beyond int64_t
    is LOWERDECK_BEYOND, so that no check takes it for a small number.

    Symbols that are `safe` are sizes of tensors that are there: sums of a few of them are plain.
    """
    return _c_checked(expr, names) if _may_overflow(expr, safe) else c_expr(expr, names)


_FEW = 64
"""How many times a dimension may be counted: that of a tensor is far below the largest number."""


def _may_overflow(expr: Expr, safe: Collection[str]) -> bool:
    if expr.value is not None or str(expr) in expr.symbols:
        return False
    return any(
        len(monomial) > 1
        or (bool(monomial) and abs(coefficient) > _FEW)
        or any(atom.kind == "symbol" and atom.name not in safe for atom in monomial)
        or any(_may_overflow(arg, safe) for atom in monomial for arg in atom.args)
        for monomial, coefficient in expr.terms
    )


def _c_checked(expr: Expr, names: Mapping[str, str]) -> str:
    terms: list[str] = []
    for monomial, coefficient in expr.terms:
        factors = [_c_checked_atom(atom, names) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.append(integer_literal(coefficient))
        terms.append(reduce(lambda a, b: f"lowerdeck_mul({a}, {b})", factors))
    return reduce(lambda a, b: f"lowerdeck_add({a}, {b})", terms) if terms else "0"


def _c_checked_atom(atom: Atom, names: Mapping[str, str]) -> str:
    if atom.kind == "symbol":
        return names[atom.name]
    return _checked_call(atom.kind, [_c_checked(argument, names) for argument in atom.args])


def _checked_call(kind: str, arguments: Sequence[str]) -> str:
    return _call(f"size_{kind}", arguments)


def c_bytes(dims: Sequence[Expr], item_size: int, size: Callable[[Expr], str]) -> str:
    """
    The C form of the bytes of an array (elements, for an item size of one).

    Dimensions that are expressions, in the form that `size` gives them, are multiplied at run time:
    multiplied out, their product can have thousands of terms.
    """
    if (numbers := constants(dims)) is not None:
        return integer_literal(prod(numbers) * item_size)
    array = ", ".join(map(size, dims))
    return f"lowerdeck_bytes((const int64_t[]){{{array}}}, {len(dims)}, {item_size})"


def dims_text(type_: RefType) -> str:
    """The dimensions of a buffer for people: `[n, 3, 224, 224]`."""
    return f"[{', '.join(map(str, type_.dims.data))}]"


def bare_symbols(types: Sequence[RefType]) -> dict[str, tuple[int, int]]:
    """Where each symbol that is a whole dimension first stands: (argument, axis)."""
    found: dict[str, tuple[int, int]] = {}
    for number, type_ in enumerate(types):
        for axis, dim in enumerate(type_.dims.data):
            if len(dim.symbols) == 1 and str(dim) in dim.symbols:
                found.setdefault(str(dim), (number, axis))
    return found
