"""x86-64, by the microarchitecture levels of its ABI."""

from __future__ import annotations

from dataclasses import replace

from lowerdeck.lowering.targets.base import Costs, Limits, Target, lanes_for
from lowerdeck.lowering.targets.isa_x86 import X86, X86_AMX, X86_AVX2, X86_VNNI, X86_ZEN4
from lowerdeck.lowering.targets.machine import machine_named

_MACHINES = ("x86_64", "AMD64")
_AVX2 = frozenset("avx avx2 bmi1 bmi2 f16c fma abm movbe".split())
_AVX512 = frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split())

X86_64_V4 = Target(
    "x86-64-v4",
    machine_named("x86-64-v4"),
    lanes_by_element=lanes_for(64),
    flags=("-march=x86-64-v4", "-mprefer-vector-width=512"),
    architectures=_MACHINES,
    isa=X86_AVX2,
    features=_AVX2 | _AVX512,
)
"""AVX-512."""

X86_64_VNNI = replace(
    X86_64_V4,
    name="x86-64-vnni",
    flags=(*X86_64_V4.flags, "-mavx512vnni"),
    isa=X86_VNNI,
    features=_AVX2 | _AVX512 | {"avx512_vnni"},
)
"""The same with sums of products of bytes."""

X86_64_AMX = replace(
    X86_64_VNNI,
    name="x86-64-amx",
    machine=machine_named("x86-64-amx"),
    flags=(
        *X86_64_VNNI.flags,
        "-mavx512bf16",
        "-mavx512vbmi",
        "-mamx-tile",
        "-mamx-int8",
        "-mamx-bf16",
    ),
    features=X86_64_VNNI.features
    | {"avx512_bf16", "avx512vbmi", "amx_tile", "amx_int8", "amx_bf16"},
    isa=X86_AMX,
)
"""The same with products of tiles of bytes."""

X86_64_ZEN4 = replace(
    X86_64_VNNI,
    name="x86-64-zen4",
    processors=frozenset({("AuthenticAMD", 25)}),
    flags=(*X86_64_VNNI.flags, "-mavx512bf16", "-mavx512vbmi"),
    features=X86_64_VNNI.features | {"avx512_bf16", "avx512vbmi"},
    isa=X86_ZEN4,
    machine=machine_named("x86-64-zen4"),
    costs=Costs(efficiency=0.97, page_cycles=1.0),
)
"""The same where vectors pass through units of half their width: AMD's Zen 4."""

X86_64_V3 = Target(
    "x86-64-v3",
    machine_named("x86-64-v3"),
    lanes_by_element=lanes_for(32),
    flags=("-march=x86-64-v3",),
    architectures=_MACHINES,
    isa=X86_AVX2,
    features=_AVX2,
    limits=Limits(position_bytes=32 << 10),
    costs=Costs(
        transform_cycles=3.0,
        page_cycles=2.0,
        apart_line_cycles=1.6,
        kept_line_cycles=1.3,
        more_kept_line_cycles=2.2,
        hidden_share=0.1,
        window_share=0.9,
    ),
)
"""AVX2 and FMA."""

X86_64 = Target(
    "x86-64",
    machine_named("x86-64"),
    lanes_by_element=lanes_for(16),
    flags=("-march=x86-64",),
    architectures=_MACHINES,
    isa=X86,
)
"""SSE2, which is always present."""
