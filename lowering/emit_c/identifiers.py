"""Identifiers of C for any names of a model."""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import product
from pathlib import Path

from lowerdeck.lowering.abi import AFTER_TENSORS, STATE

KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for
    friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
    or_eq private protected public register reinterpret_cast requires restrict return short signed
    sizeof static static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename typeof union unsigned using virtual void volatile while xor xor_eq
    args status memory base spans head version
    """.split()
) | {*AFTER_TENSORS, STATE}
"""Words that no identifier made from a model's name may be: C, C++, and our own."""

_RESERVED = frozenset(
    """
    L_tmpnam assert offsetof NULL NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL EOF BUFSIZ I complex
    imaginary errno stdin stdout stderr linux unix i386 near far small signgam main isunordered
    """.split()
)
"""Macros of the C library, those that compilers define or windows.h does, and functions."""

_LIMITS = frozenset(
    map("_".join, product(("SIZE", "PTRDIFF", "WCHAR", "WINT", "SIG_ATOMIC"), ("MIN", "WIDTH")))
)

_CIRCULAR = tuple(map("".join, product(("", "a"), ("sin", "cos", "tan"), ("", "h"))))
_ROUNDED = ("exp", "log", "sqrt", "fabs", "floor", "ceil", "rint", "erf", "pow", "fmod", "copysign")
_CALLED = frozenset(map("".join, product((*_CIRCULAR, *_ROUNDED, "ldexp"), ("", "f", "l"))))
"""Functions of the C library that generated code calls."""


def _is_reserved(name: str) -> bool:
    """True for names of the language's environment, which may be macros or be hidden by ours."""
    return (
        name in _RESERVED
        or name in _LIMITS
        or name in _macros()
        or name in _CALLED
        or name.startswith(("SEEK_", "EXIT_", "M_", "FP_", "MATH_", "FLT_", "DBL_", "LDBL_"))
        # Types, and the greatest of their numbers.
        or name.endswith(("_t", "_MAX"))
        or (name.startswith(("INT", "UINT")) and name.endswith(("_MIN", "_WIDTH", "_C")))
        or (name.startswith(("mem", "str")) and name[3:].isalpha() and name.islower())
    )


@cache
def _macros() -> frozenset[str]:
    """Those of no other rule, such as `s_addr`, or `GetObject` for `GetObjectA`."""
    text = (Path(__file__).parent / "macros.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.split("\n") if not line.startswith("#"))


def _may_be_macro(name: str) -> bool:
    """
    True for names all in capitals, which by convention are macros: of any header that a program
    includes beside ours. A single letter, with or without a number, is none.
    """
    return name == name.upper() and sum(c.isalpha() for c in name) > 1


def names_of_model(name: str) -> set[str]:
    """What the C of a model declares and defines itself outside of functions, kernels apart."""
    stems = ("args", "run", "workspace_size", "output_dims", "weights", "weights_header", "fault")
    stems += ("driver", "check", "job", "work", "state", "reset", "arena")
    macros = ("H", "WORKSPACE_SIZE", "WEIGHTS_SIZE", "STACK_SIZE")
    return {
        name,
        *(f"{name}_{stem}" for stem in stems),
        *(f"{name.upper()}_{macro}" for macro in macros),
    }


_LONGEST = 100
"""Characters of a name that identifiers keep; compilers have limits."""


def identifier(name: str, taken: set[str], numbers: dict[str, int] | None = None) -> str:
    """
    A C identifier for any name, different from all in `taken`; it is added there. One that is all
    in capitals becomes lower case.

    `numbers` remembers the last number behind a name, so that the next one is not looked for from
    the first on.
    """
    stem = _stem(name)
    number = 1 if numbers is None else numbers.get(stem, 1)
    result = stem if number == 1 else f"{stem}_{number}"
    while result in taken or result in KEYWORDS or _is_reserved(result):
        number += 1
        # A number alone may not help: all that begins with `M_` is a macro of math.h.
        result = f"x{stem}_{number}" if _is_reserved(f"{stem}_{number}") else f"{stem}_{number}"
    if numbers is not None:
        numbers[stem] = number
    taken.add(result)
    return result


@lru_cache(maxsize=1 << 12)
def _stem(name: str) -> str:
    """What the identifier for a name begins with: few names are those of most values."""
    stem = _plain(name).strip("_") or "x"
    stem = stem.lower() if _may_be_macro(stem) else stem
    is_ours = stem.lower().startswith("lowerdeck")
    stem = f"x{stem}" if stem[0].isdigit() or is_ours else stem
    return stem[:_LONGEST]


def _plain(name: str) -> str:
    """The name with one underscore in place of all characters in a row that C does not have."""
    if name.isascii() and name.isidentifier():
        return name
    is_good = (c == "_" or (c.isascii() and c.isalnum()) for c in name)
    return "_".join("".join(c if good else " " for c, good in zip(name, is_good)).split())
