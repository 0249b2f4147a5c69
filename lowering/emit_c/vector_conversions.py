"""Vectors of one type from those of another, where C alone does not give the instruction."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from lowerdeck.dialects.core.types import bf16, f16, f32, f64
from lowerdeck.dialects.records import record
from lowerdeck.lowering.emit_c.vector_types import (
    STEMS,
    VectorFunction,
    guarded,
    type_name,
    unsigned_type,
)
from lowerdeck.lowering.targets.isa import Isa


@record
class Conversion:
    """Lanes of another type, as a function where compilers do not find the instruction."""

    source: Attribute
    target: Attribute
    lanes: int
    unsigned: bool = False

    @property
    def name(self) -> str:
        """What the function is called: by the type that is unsigned, if one is."""
        source, target = (
            f"{'u' if self.unsigned and isinstance(type_, IntegerType) else stem[0]}{stem[1:]}"
            for type_ in (self.source, self.target)
            for stem in (STEMS[type_][0],)
        )
        return f"lowerdeck_{source}x{self.lanes}_to_{target}"

    @property
    def is_function(self) -> bool:
        """False if an expression is enough."""
        return (
            bool({self.source, self.target} & {f16, bf16})
            or self._is_resizing
            or self._is_taken_apart
        )

    @property
    def _is_taken_apart(self) -> bool:
        """True for what gcc converts lane by lane unless it is told the instruction."""
        before, after = self._sizes
        width = after * self.lanes
        if before == 4 and after == 8:
            return width in (32, 64)
        is_long = isinstance(self.target, IntegerType) and after == 8
        return is_long and self.source == f64 and width == 32

    @property
    def _sizes(self) -> tuple[int, int]:
        return STEMS[self.source][2], STEMS[self.target][2]

    @property
    def _is_resizing(self) -> bool:
        before, after = self._sizes
        return not {self.source, self.target} & {f16, bf16, f32, f64} and before != after

    def function(self, isa: Isa) -> VectorFunction:
        """The definition."""
        source, target = type_name(self.source, self.lanes), type_name(self.target, self.lanes)
        types = (STEMS[self.source][0], STEMS[self.target][0])
        builtin = isa.conversions.get((*types, self.unsigned, self.lanes))
        own = [] if builtin is None else [f"  {target} r;", f"  {builtin.call};", "  return r;"]
        plain = self._plain(target)
        if self.source in (f32, f64) and self.target == IntegerType(64):
            shorter = isa.long_integers.get(self.lanes, "").format(target=target)
            plain = [*shorter.splitlines(), *plain]
        return VectorFunction(target, ((source, "x"),), guarded(builtin, own, plain))

    def _plain(self, target: str) -> list[str]:
        before, after = self._sizes
        if self._is_resizing and before * self.lanes == 32 and after * self.lanes in (8, 16):
            return self._by_halves(target)
        if not self._is_resizing or max(before, after) * self.lanes != 16:
            return self._by_steps(target)
        # Bytes that are moved: into the upper part of their new lanes, which is shifted down.
        small = min(before, after) * self.lanes
        word = f"uint{8 * small}_t" if small > 1 else "uint8_t"
        words, count = "__attribute__((vector_size(16)))", 16 // small
        octets = f"typedef int8_t octets {words}; typedef {word} words {words};"
        if before < after:
            places = [16] * 16
            for lane in range(self.lanes):
                first = lane * after if self.unsigned else (lane + 1) * after - before
                places[first : first + before] = range(lane * before, (lane + 1) * before)
            shift = "" if self.unsigned else f" >> {8 * (after - before)}"
            return [
                f"  {octets}",
                f"  {word} bits;",
                "  memcpy(&bits, &x, sizeof bits);",
                f"  const octets all = (octets)(words){{bits{', 0' * (count - 1)}}};",
                "  const octets spread = __builtin_shufflevector(",
                f"      all, (octets){{0}}, {', '.join(map(str, places))});",
                f"  return ({target})spread{shift};",
            ]
        places = [lane * before + byte for lane in range(self.lanes) for byte in range(after)]
        places += [16] * (16 - len(places))
        return [
            f"  {octets}",
            "  const octets packed = __builtin_shufflevector(",
            f"      (octets)x, (octets){{0}}, {', '.join(map(str, places))});",
            f"  const {word} bits = ((words)packed)[0];",
            f"  {target} r;",
            "  memcpy(&r, &bits, sizeof r);",
            "  return r;",
        ]

    def _by_halves(self, target: str) -> list[str]:
        """The bytes that stay, at the beginning of each half of a register, and these together."""
        before, after = self._sizes
        part = after * self.lanes // 2
        places = [
            half * 16 + lane * before + byte
            for half in range(2)
            for _ in range(16 // part)
            for lane in range(self.lanes // 2)
            for byte in range(after)
        ]
        words, count = "__attribute__((vector_size(32)))", 32 // part
        parts = [number % 2 * (count // 2) for number in range(count)]
        return [
            f"  typedef int8_t octets {words}; typedef int{8 * part}_t words {words};",
            "  const octets kept = __builtin_shufflevector(",
            f"      (octets)x, (octets)x, {', '.join(map(str, places))});",
            "  const words packed = __builtin_shufflevector(",
            f"      (words)kept, (words)kept, {', '.join(map(str, parts))});",
            f"  {target} r;",
            "  memcpy(&r, &packed, sizeof r);",
            "  return r;",
        ]

    def _by_steps(self, target: str) -> list[str]:
        """Twice or half as wide each: more at once has no form but one lane after another."""
        before, after = self._sizes
        if not self._is_resizing:
            letter = "u" if self.unsigned else ""
            value = "x"
            if letter and isinstance(self.source, IntegerType):
                value = f"({unsigned_type(8 * before, self.lanes)})x"
            if letter and isinstance(self.target, IntegerType):
                unsigned = unsigned_type(8 * after, self.lanes)
                return [f"  return ({target})__builtin_convertvector({value}, {unsigned});"]
            return [f"  return __builtin_convertvector({value}, {target});"]
        stem = "uint" if self.unsigned else "int"
        lines, size = [f"  typedef {stem}{8 * before}_t s{before} {self._vector(before)};"], before
        value = f"(s{before})x"
        while size != after:
            size = size * 2 if size < after else size // 2
            lines.append(f"  typedef {stem}{8 * size}_t s{size} {self._vector(size)};")
            value = f"__builtin_convertvector({value}, s{size})"
        return [*lines, f"  return ({target}){value};"]

    def _vector(self, size: int) -> str:
        return f"__attribute__((vector_size({size * self.lanes})))"


def half_conversions(half: Attribute, lanes: int, isa: Isa) -> dict[str, VectorFunction]:
    """From vectors of f32 and to them, as the functions of the runtime convert one value."""
    stem = STEMS[half][0]
    narrow, wide = f"lowerdeck_{stem}x{lanes}", f"lowerdeck_f32x{lanes}"
    pairs = f"lowerdeck_i16x{lanes}"
    found: dict[str, VectorFunction] = {}
    for old, new, suffix in ((narrow, wide, "f32"), (wide, narrow, stem)):
        form = _CONVERSIONS[stem, suffix]
        body = form.format(narrow=narrow, wide=wide, u32=f"lowerdeck_u32x{lanes}").splitlines()
        builtin = (isa.widening_of_f16 if new == wide else isa.narrowing_to_f16).get(lanes)
        if stem == "f16" and builtin is not None:
            call = builtin.call.format(f"({pairs})x" if new == wide else "x", wide, pairs)
            own = [f"  return ({new}){call};"]
            body = guarded(builtin, own, body)
        found[f"{old}_to_{suffix}"] = VectorFunction(new, ((old, "x"),), body)
    return found


_CONVERSIONS = {
    ("bf16", "f32"): "  return ({wide})(__builtin_convertvector(x, {u32}) << 16);\n",
    # To nearest, halves to even. What is no number stays none.
    ("bf16", "bf16"): """  const {u32} bits = ({u32})x, nan = ({u32})(x != x);
  const {u32} nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const {u32} half = (nan & (bits >> 16 | 0x40u)) | (~nan & nearest);
  return __builtin_convertvector(half, {narrow});
""",
    # The exponent is moved by the difference of biases. Subnormal ones are what is left of a float
    # between 1/2 and 1 that ends with their bits.
    (
        "f16",
        "f32",
    ): """  const {u32} bits = __builtin_convertvector(x, {u32}) << 16;
  const {u32} twice = bits + bits;
  const {wide} normal = ({wide})((twice >> 4) + 0x70000000u) * 0x1p-112f;
  const {wide} small = ({wide})((twice >> 17) | 0x3f000000u) - 0.5f;
  const {u32} is_small = ({u32})(twice < 0x08000000u);
  const {u32} size = (is_small & ({u32})small) | (~is_small & ({u32})normal);
  return ({wide})((bits & 0x80000000u) | size);
""",
    # Adding a power of two rounds to as many bits as are left; what is too large becomes infinite
    # before that.
    ("f16", "f16"): """  const {u32} bits = ({u32})x, twice = bits + bits;
  const {wide} size = ({wide})(twice >> 1) * 0x1p+112f * 0x1p-110f;
  const {u32} own = twice & 0xff000000u, is_small = ({u32})(own < 0x71000000u);
  const {u32} exponent = (is_small & 0x71000000u) | (~is_small & own);
  const {u32} rounded = ({u32})(({wide})((exponent >> 1) + 0x07800000u) + size);
  const {u32} number = ((rounded >> 13) & 0x7c00u) + (rounded & 0xfffu);
  const {u32} nan = ({u32})(twice > 0xff000000u);
  const {u32} half = (bits >> 16 & 0x8000u) | (nan & 0x7e00u) | (~nan & number);
  return __builtin_convertvector(half, {narrow});
""",
}
"""By half precision and what is made."""
