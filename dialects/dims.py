"""
Canonical integer expressions: the identity of dimensions, slice bounds, trip counts and offsets.

An `Expr` is a polynomial with integer coefficients over *atoms*: symbols, and floordiv, mod, min
and max of expressions. Every operation returns the canonical form, so two expressions that are
equal as canonical forms compare equal, hash equal and print alike. Division rounds toward minus
infinity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from operator import mul
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from xdsl.parser import AttrParser


class Atom:
    """
    A factor that is not a number: `symbol` with its name, or an operator with its arguments. It
    never changes, so its hash and text are computed once.
    """

    __slots__ = ("_hash", "_text", "args", "kind", "name")

    kind: str
    """One of symbol, floordiv, mod, min, max."""
    name: str
    args: tuple[Expr, ...]

    def __init__(self, kind: str, name: str = "", args: tuple[Expr, ...] = ()) -> None:
        self.kind = kind
        self.name = name
        self.args = args
        self._hash = hash((kind, name, args))
        self._text = name if kind == "symbol" else ""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Atom)
            and self._hash == other._hash
            and self.kind == other.kind
            and self.name == other.name
            and self.args == other.args
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if not self._text:
            self._text = self._written()
        return self._text

    def __repr__(self) -> str:
        return f"Atom({self})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of texts are other ones in another process.
        return Atom, (self.kind, self.name, self.args)

    def _written(self) -> str:
        if self.kind in ("min", "max"):
            return f"{self.kind}({', '.join(map(str, self.args))})"
        left, right = (f"({arg})" if arg.is_compound else str(arg) for arg in self.args)
        return f"{left} {self.kind} {right}"


Monomial: TypeAlias = tuple[Atom, ...]
ExprLike: TypeAlias = "Expr | int"


class Expr:
    """
    A canonical integer expression. Build with `const`, `symbol` and Python's operators. It never
    changes, so what is asked again and again is computed once.
    """

    __slots__ = ("_hash", "_order", "_plain", "_symbols", "_text", "terms", "value")

    terms: tuple[tuple[Monomial, int], ...]
    """Monomials (sorted atoms, repeated for powers) with their non-zero coefficients."""
    value: int | None
    """The number that this expression is, or None if it depends on a symbol."""

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        if not terms:
            self.value = 0
        else:  # a number without an atom is the last term
            self.value = None if terms[0][0] else terms[0][1]
        self._plain: bool | None = None
        self._order: list[str] | None = None
        self._hash: int | None = None
        self._symbols: frozenset[str] | None = None
        self._text: str | None = None

    # Construction

    @staticmethod
    def const(value: int) -> Expr:
        return _const(int(value))

    @staticmethod
    def symbol(name: str) -> Expr:
        return _symbol(name)

    @staticmethod
    def of(value: ExprLike) -> Expr:
        return value if isinstance(value, Expr) else _const(int(value))

    # Inspection

    @property
    def is_plain(self) -> bool:
        """True if symbols are its only atoms."""
        if self._plain is None:
            self._plain = _is_plain(self.terms)
        return self._plain

    @property
    def is_compound(self) -> bool:
        """True if this needs parentheses as an argument of an infix operator."""
        if len(self.terms) != 1:
            return len(self.terms) > 1
        monomial, coefficient = self.terms[0]
        if len(monomial) == 1 and coefficient == 1:
            return monomial[0].kind in ("floordiv", "mod")
        return bool(monomial) or coefficient < 0

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols that occur in this expression."""
        if self._symbols is None:
            self._symbols = self._found_symbols()
        return self._symbols

    @property
    def names(self) -> Sequence[str]:
        """The symbols in order."""
        if self._order is None:
            self._order = sorted(self.symbols)
        return self._order

    def _found_symbols(self) -> frozenset[str]:
        names: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if atom.kind == "symbol":
                    names.add(atom.name)
                for arg in atom.args:
                    names |= arg.symbols
        return frozenset(names)

    def _written(self) -> str:
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            factors = [str(a) if a.kind not in ("floordiv", "mod") else f"({a})" for a in monomial]
            if not factors:
                text = str(abs(coefficient))
            elif abs(coefficient) == 1:
                # A lone quotient needs no parentheses: `w floordiv 2 + 1` reads as written.
                text = str(monomial[0]) if len(monomial) == 1 else " * ".join(factors)
            else:
                text = " * ".join([*factors, str(abs(coefficient))])
            sign = "-" if coefficient < 0 else "+"
            if not parts:
                parts.append(text if sign == "+" else f"-{text}")
            else:
                parts.append(f" {sign} {text}")
        return "".join(parts) or "0"

    def __str__(self) -> str:
        if self._text is None:
            self._text = self._written()
        return self._text

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Expr, (self.terms,)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Expr):
            return self.terms == other.terms
        return isinstance(other, int) and self.value == other

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.terms if self.value is None else self.value)
        return self._hash

    # Arithmetic

    def __add__(self, other: ExprLike) -> Expr:
        if not isinstance(other, Expr):
            other = _const(int(other))
        if not self.terms or not other.terms:
            return self if self.terms else other
        if not other.terms[0][0]:
            return _with_constant(self, other.terms[0][1])
        if not self.terms[0][0]:
            return _with_constant(other, self.terms[0][1])
        sums = dict(self.terms)
        for monomial, coefficient in other.terms:
            sums[monomial] = sums.get(monomial, 0) + coefficient
        return _polynomial(sums)

    __radd__ = __add__

    def __neg__(self) -> Expr:
        return _scaled(self, -1)

    def __sub__(self, other: ExprLike) -> Expr:
        if (number := other.value if isinstance(other, Expr) else int(other)) is not None:
            return self + _const(-number)
        return self + -cast(Expr, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return Expr.of(other) - self

    def __mul__(self, other: ExprLike) -> Expr:
        if isinstance(other, int):
            return _scaled(self, other)
        if (number := other.value) is not None:
            return _scaled(self, number)
        if (number := self.value) is not None:
            return _scaled(other, number)
        products: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted((*left, *right), key=str))
                products[monomial] = products.get(monomial, 0) + a * b
        return _polynomial(products)

    __rmul__ = __mul__

    def __floordiv__(self, other: ExprLike) -> Expr:
        """Quotient rounded toward minus infinity; the divisor is taken to be non-zero."""
        return _quotient(self, Expr.of(other))

    def _divided(self, divisor: Expr) -> Expr:
        if divisor.value == 1:
            return self
        if divisor.value == 0:
            raise ZeroDivisionError(f"({self}) floordiv 0")
        if (quotient := _exact_quotient(self, divisor)) is not None:
            return quotient
        number = divisor.value
        if number is None:
            return _atom(Atom("floordiv", args=(self, divisor)))
        if number < 0:
            return -self // -number
        if self.value is not None:
            return Expr.const(self.value // number)
        whole, rest = _split(self, number)
        if rest.value is not None:
            return whole + rest.value // number
        common = math.gcd(number, *(coefficient for _, coefficient in rest.terms))
        rest, number = _split(rest, common)[0], number // common
        if (inner := _quotient_and_number(rest)) is not None:
            (dividend, first), offset = inner
            return whole + (dividend + first * offset) // (first * number)
        return whole + _atom(Atom("floordiv", args=(rest, Expr.const(number))))

    def __mod__(self, other: ExprLike) -> Expr:
        """self - divisor * (self floordiv divisor)."""
        divisor = Expr.of(other)
        if divisor.value == 0:
            raise ZeroDivisionError(f"({self}) mod 0")
        if _exact_quotient(self, divisor) is not None:
            return Expr.const(0)
        number = divisor.value
        if number is None:
            return _atom(Atom("mod", args=(self, divisor)))
        if number < 0:
            return -(-self % -number)
        if self.value is not None:
            return Expr.const(self.value % number)
        _, rest = _split(self, number)
        if rest.value is not None:
            return Expr.const(rest.value % number)
        return _atom(Atom("mod", args=(rest, divisor)))

    def ceildiv(self, other: ExprLike) -> Expr:
        """Quotient rounded toward plus infinity."""
        return -((-self) // other)

    # Evaluation

    def substitute(self, values: Mapping[str, ExprLike]) -> Expr:
        """This expression with symbols replaced; names not in `values` stay."""
        symbols = self._symbols
        if (self.symbols if symbols is None else symbols).isdisjoint(values):
            return self
        key = (self, *map(values.get, self.names))
        if (known := _substituted.get(key)) is None:
            if len(_substituted) > _MOST_KNOWN:
                _substituted.clear()
            known = _substituted[key] = self._substitute(values)
        return known

    def _substitute(self, values: Mapping[str, ExprLike]) -> Expr:
        if len(self.terms) == 1:
            return _substitute_term(*self.terms[0], values)
        if self.is_plain and all(len(monomial) < 2 for monomial, _ in self.terms):
            return _substitute_linear(self, values)
        total = _const(0)
        for monomial, coefficient in self.terms:
            factors = [_substitute_atom(atom, values) for atom in monomial]
            total += _scaled(reduce(mul, factors), coefficient) if factors else coefficient
        return total

    def evaluate(self, values: Mapping[str, int]) -> int:
        """
        The number for given symbol values; KeyError names a missing symbol.

        As in C, the quotient by zero, which only an empty dimension gives, is zero.
        """
        total = 0
        for monomial, coefficient in self.terms:
            for atom in monomial:
                coefficient *= _evaluate_atom(atom, values)
            total += coefficient
        return total


def minimum(*values: ExprLike) -> Expr:
    """The smallest of the given expressions."""
    return _extremum("min", min, values)


def maximum(*values: ExprLike) -> Expr:
    """The largest of the given expressions."""
    return _extremum("max", max, values)


def product(values: Iterable[ExprLike]) -> Expr:
    """The product of the given expressions; 1 for none."""
    return reduce(lambda a, b: a * b, values, Expr.const(1))


def exprs(values: Iterable[ExprLike]) -> tuple[Expr, ...]:
    """Every value as an expression."""
    return tuple([v if isinstance(v, Expr) else _const(int(v)) for v in values])


def constants(values: Iterable[ExprLike]) -> tuple[int, ...] | None:
    """The values as numbers, or None if one of them depends on a symbol."""
    numbers: list[int] = []
    for value in values:
        number = value.value if isinstance(value, Expr) else int(value)
        if number is None:
            return None
        numbers.append(number)
    return tuple(numbers)


class Tokens(Protocol):
    """What expressions are parsed from: a part of `AttrParser`."""

    def parse_optional_punctuation(self, punctuation: Any, /) -> Any: ...

    def parse_optional_keyword(self, keyword: str, /) -> str | None: ...

    def parse_optional_integer(
        self, *, allow_boolean: bool, allow_negative: bool
    ) -> int | None: ...

    def parse_identifier(self, context_msg: str, /) -> str: ...

    def raise_error(self, msg: str, /) -> NoReturn: ...


def parse_text(text: str) -> Expr:
    """The expression that `str` gives this text for; ValueError if it is none."""
    tokens = _Text(text)
    try:
        value = parse_expr(tokens)
    except RecursionError:
        tokens.raise_error("it is nested too deeply")
    if not tokens.is_at_end:
        tokens.raise_error("expected the end")
    return value


class _Text:
    """The tokens of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        return not self._text[self._position :].strip()

    def _take(self, pattern: str) -> str | None:
        match = re.compile(rf"\s*({pattern})").match(self._text, self._position)
        if match is None:
            return None
        self._position = match.end()
        return match[1]

    def parse_optional_punctuation(self, punctuation: str, /) -> str | None:
        return self._take(re.escape(punctuation))

    def parse_optional_keyword(self, keyword: str, /) -> str | None:
        return self._take(rf"{keyword}(?![\w$.])")

    def parse_optional_integer(self, *, allow_boolean: bool, allow_negative: bool) -> int | None:
        found = self._take(r"-?\d+")
        return None if found is None else int(found)

    def parse_identifier(self, context_msg: str, /) -> str:
        if (found := self._take(r"[A-Za-z_][\w$.]*")) is None:
            self.raise_error(f"expected a number, or a name{context_msg}")
        return found

    def raise_error(self, msg: str, /) -> NoReturn:
        raise ValueError(f"'{self._text[:80]}' is no dimension expression: {msg}")


def parse_expr(parser: Tokens) -> Expr:
    """
    Parse what `str` prints: sums of products; floordiv and mod bind like `*`, from the left;
    `min(...)` and `max(...)` are functions.
    """
    negative = parser.parse_optional_punctuation("-") is not None
    total = _parse_product(parser)
    total = -total if negative else total
    while True:
        if parser.parse_optional_punctuation("+") is not None:
            total = total + _parse_product(parser)
        elif parser.parse_optional_punctuation("-") is not None:
            total = total - _parse_product(parser)
        else:
            return total


def parse_exprs(parser: AttrParser) -> tuple[Expr, ...]:
    """Parse `[e, e, ...]`."""
    return tuple(
        parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parse_expr(parser), " in dimension list"
        )
    )


def _parse_product(parser: Tokens) -> Expr:
    value = _parse_factor(parser)
    while True:
        if parser.parse_optional_punctuation("*") is not None:
            value = value * _parse_factor(parser)
        elif parser.parse_optional_keyword("floordiv") is not None:
            value = value // _nonzero(parser, _parse_factor(parser))
        elif parser.parse_optional_keyword("mod") is not None:
            value = value % _nonzero(parser, _parse_factor(parser))
        else:
            return value


def _parse_factor(parser: Tokens) -> Expr:
    if parser.parse_optional_punctuation("(") is not None:
        return _parse_arguments(parser)[0]
    if (
        number := parser.parse_optional_integer(allow_boolean=False, allow_negative=True)
    ) is not None:
        return Expr.const(number)
    name = parser.parse_identifier(" as dimension symbol")
    if name not in ("min", "max"):
        return Expr.symbol(name)
    if parser.parse_optional_punctuation("(") is None:
        parser.raise_error(f"expected '(' behind {name}")
    args = _parse_arguments(parser, several=True)
    return minimum(*args) if name == "min" else maximum(*args)


def _parse_arguments(parser: Tokens, *, several: bool = False) -> list[Expr]:
    """What follows behind an opening parenthesis."""
    args = [parse_expr(parser)]
    while several and parser.parse_optional_punctuation(",") is not None:
        args.append(parse_expr(parser))
    if parser.parse_optional_punctuation(")") is None:
        parser.raise_error("expected ')'")
    return args


def _nonzero(parser: Tokens, divisor: Expr) -> Expr:
    if divisor == 0:
        parser.raise_error("division by zero")
    return divisor


def _atom(atom: Atom) -> Expr:
    return Expr((((atom,), 1),))


def _is_plain(terms: tuple[tuple[Monomial, int], ...]) -> bool:
    for monomial, _ in terms:
        for atom in monomial:
            if atom.kind != "symbol":
                return False
    return True


@lru_cache(maxsize=1 << 10)
def _const(value: int) -> Expr:
    return Expr((((), value),) if value else ())


@lru_cache(maxsize=1 << 10)
def _symbol(name: str) -> Expr:
    return _atom(Atom("symbol", name))


_substituted: dict[tuple[Expr | ExprLike | None, ...], Expr] = {}
"""What became of expressions and values of their symbols, sorted: kernels are alike."""

_MOST_KNOWN = 1 << 12


@lru_cache(maxsize=1 << 10)
def _quotient(value: Expr, divisor: Expr) -> Expr:
    return value._divided(divisor)  # pyright: ignore[reportPrivateUsage]


def _scaled(value: Expr, number: int) -> Expr:
    """The same monomials in the same order."""
    if number == 1:
        return value
    if number == 0:
        return _const(0)
    return Expr(tuple([(monomial, coefficient * number) for monomial, coefficient in value.terms]))


def _with_constant(value: Expr, number: int) -> Expr:
    """`value + number` for values that are not zero: a constant term is the last one."""
    *others, (monomial, constant) = value.terms
    if monomial:
        return Expr((*value.terms, ((), number)))
    if constant + number:
        return Expr((*others, ((), constant + number)))
    return Expr(tuple(others))


def _polynomial(coefficients: Mapping[Monomial, int]) -> Expr:
    """Sorted by degree (highest first), then text; zero terms dropped."""
    terms = [(monomial, c) for monomial, c in coefficients.items() if c]
    if len(terms) > 1:
        terms.sort(key=_order)
    return Expr(tuple(terms))


def _order(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    return -len(term[0]), [atom._text or str(atom) for atom in term[0]]  # pyright: ignore[reportPrivateUsage]


def _split(value: Expr, number: int) -> tuple[Expr, Expr]:
    """`value == number * whole + rest`, where `rest` has coefficients in 0 .. number - 1."""
    whole = Expr(tuple((m, c // number) for m, c in value.terms if c // number))
    rest = Expr(tuple((m, c % number) for m, c in value.terms if c % number))
    return whole, rest


def _quotient_and_number(value: Expr) -> tuple[tuple[Expr, int], int] | None:
    """a, m and c, if `value == a floordiv m + c` with numbers m > 0 and c."""
    terms = dict(value.terms)
    offset = terms.pop((), 0)
    if len(terms) != 1:
        return None
    ((monomial, coefficient),) = terms.items()
    if coefficient != 1 or len(monomial) != 1 or monomial[0].kind != "floordiv":
        return None
    dividend, divisor = monomial[0].args
    number = divisor.value
    return ((dividend, number), offset) if number is not None and number > 0 else None


def _exact_quotient(value: Expr, divisor: Expr) -> Expr | None:
    """value / divisor if the division is exact for every value of the symbols."""
    if value == divisor:
        return Expr.const(1)
    if not value.terms:
        return Expr.const(0)
    if len(divisor.terms) != 1:
        return None
    monomial, number = divisor.terms[0]
    quotient: dict[Monomial, int] = {}
    for atoms, coefficient in value.terms:
        rest = list(atoms)
        for atom in monomial:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % number:
            return None
        quotient[tuple(rest)] = coefficient // number
    return _polynomial(quotient)


def _extremum(kind: str, choose: Callable[[int, int], int], values: Sequence[ExprLike]) -> Expr:
    """Flatten, keep one of any two whose difference is a number, order by text."""
    flat: list[Expr] = []
    for value in map(Expr.of, values):
        if len(value.terms) == 1 and value.terms[0][1] == 1 and len(value.terms[0][0]) == 1:
            atom = value.terms[0][0][0]
            flat.extend(atom.args if atom.kind == kind else (value,))
        else:
            flat.append(value)
    kept: dict[tuple[tuple[Monomial, int], ...], int] = {}
    for value in flat:
        shape = tuple((m, c) for m, c in value.terms if m)
        offset = sum(c for m, c in value.terms if not m)
        kept[shape] = choose(kept[shape], offset) if shape in kept else offset
    results = [Expr(shape) + offset for shape, offset in kept.items()]
    if len(results) == 1:
        return results[0]
    return _atom(Atom(kind, args=tuple(sorted(results, key=str))))


def _substitute_term(monomial: Monomial, number: int, values: Mapping[str, ExprLike]) -> Expr:
    """One term that has a symbol to be replaced."""
    factors = [_substitute_atom(atom, values) for atom in monomial]
    return _scaled(reduce(mul, factors), number)


def _substitute_linear(expr: Expr, values: Mapping[str, ExprLike]) -> Expr:
    """A sum of symbols times numbers, and of a number: all new terms are added at once."""
    sums: dict[Monomial, int] = {}
    for monomial, coefficient in expr.terms:
        name = monomial[0].name if monomial else None
        if name is None or name not in values:
            sums[monomial] = sums.get(monomial, 0) + coefficient
            continue
        for atoms, number in Expr.of(values[name]).terms:
            sums[atoms] = sums.get(atoms, 0) + coefficient * number
    return _polynomial(sums)


def _substitute_atom(atom: Atom, values: Mapping[str, ExprLike]) -> Expr:
    if atom.kind == "symbol":
        return Expr.of(values[atom.name]) if atom.name in values else _symbol(atom.name)
    args = [arg.substitute(values) for arg in atom.args]
    match atom.kind:
        case "floordiv":
            return args[0] // args[1]
        case "mod":
            return args[0] % args[1]
        case "min":
            return minimum(*args)
        case _:
            return maximum(*args)


def _evaluate_atom(atom: Atom, values: Mapping[str, int]) -> int:
    if atom.kind == "symbol":
        return values[atom.name]
    args = [arg.evaluate(values) for arg in atom.args]
    match atom.kind:
        case "floordiv":
            return args[0] // args[1] if args[1] else 0
        case "mod":
            return args[0] % args[1] if args[1] else args[0]
        case "min":
            return min(args)
        case _:
            return max(args)
