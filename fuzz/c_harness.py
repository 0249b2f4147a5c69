"""
One harness for compiled models under sanitizers: a C program around the model, its builds and its
runs. `hostile.c` draws the calls and judges what comes back; here is what it knows of one model.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

from xdsl.context import Context
from xdsl.parser import Parser

from lowerdeck.build import user_flags
from lowerdeck.dialects.dims import Expr, parse_expr
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.emit_c.writer import c_expr

HARNESS = Path(__file__).with_name("hostile.c")

FLAGS = ("-O1", "-g1", "-std=c99", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra")
"""Of all builds, before those of `CFLAGS`; a warning is a finding, too."""

SANITIZERS: Mapping[str, tuple[str, ...]] = {
    "asan": ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
    "tsan": ("-fsanitize=thread",),
}

_SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}

_SECONDS = 600
"""After which a program is no longer waited for, whatever it does."""

_KINDS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "SIGNED"),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), "UNSIGNED"),
    **{"bool": "BOOL", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64"},
}
_ITEMS = {"bool": 1, "bfloat16": 2}


@dataclass(frozen=True)
class Limits:
    """What keeps a model's runs short and mostly sensible."""

    values: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Inputs whose numbers stay between these: a loop runs as many steps as it is told."""
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    """Sizes for an open dimension with which the model makes sense."""


@dataclass(frozen=True)
class Finding:
    """Something that went wrong in a run, or before one."""

    kind: str
    """asan, ubsan, tsan, hang, crash, status, compiler."""
    what: str
    place: str
    """A function of the C, without what is different from model to model; empty if unknown."""
    run: int
    text: str

    @property
    def key(self) -> str:
        """What is the same for findings of one cause, as far as can be told."""
        return " ".join(filter(None, (self.kind, self.what, self.place)))


# The C


def model_header(artifact: CArtifact, limits: Limits, callers: int) -> str:
    """hostile_model.h: the tables of a model's inputs, outputs and sizes."""
    data = cast("dict[str, Any]", artifact.metadata)
    name, inputs, outputs = artifact.name, data["inputs"], data["outputs"]
    shapes = [[_parsed(dim) for dim in port["dims"]] for port in inputs]
    symbols: dict[str, tuple[int, int]] = {}
    for number, dims in enumerate(shapes):
        for axis, dim in enumerate(dims):
            if str(dim) in dim.symbols:
                symbols.setdefault(str(dim), (number, axis))
    lines = [
        f'#include "{name}.h"',
        f"#define ARGS {name}_args",
        f"#define MODEL_RUN {name}_run",
        f"#define MODEL_WORKSPACE_SIZE {name}_workspace_size",
        f"#define WEIGHTS_SIZE {artifact.weights_size}",
        f"#define NEEDS_ALLOCATOR {int(data['needs_allocator'])}",
        f"#define IS_PARALLEL {int(data['is_parallel'])}",
        f"#define CALLERS {callers}",
        f"enum {{ INPUT_COUNT = {len(inputs)}, OUTPUT_COUNT = {len(outputs)}, "
        f"SYMBOL_COUNT = {len(symbols)} }};",
        "static const port inputs[] = {",
        *(_port(name, port, limits.values) for port in inputs),
        "  {0}};",
        "static const port outputs[] = {",
        *(_port(name, port, {}) for port in outputs),
        "  {0}};",
        "static const symbol symbols[] = {",
    ]
    for symbol, (number, axis) in symbols.items():
        usual = list(limits.sizes.get(symbol, ()))[:8]
        numbers = ", ".join(map(str, usual or [0]))
        lines.append(f"  {{{number}, {axis}, {len(usual)}, {{{numbers}}}}}, /* {symbol} */")
    return "\n".join([*lines, "  {0}};", ""])


def sizes_header(artifact: CArtifact) -> str:
    """hostile_sizes.h: the functions that compute sizes from the values of symbols."""
    data = cast("dict[str, Any]", artifact.metadata)
    shapes = [[_parsed(dim) for dim in port["dims"]] for port in data["inputs"]]
    bare = dict.fromkeys(str(dim) for dims in shapes for dim in dims if str(dim) in dim.symbols)
    names = {symbol: f"s[{number}]" for number, symbol in enumerate(bare)}
    lines = ["static void input_dims(const int64_t *s, int64_t (*dims)[AXES]) {", "  (void)s;"]
    lines.append("  (void)dims;")
    for number, dims in enumerate(shapes):
        for axis, dim in enumerate(dims):
            # A dimension that no input has as it is can only be guessed.
            text = c_expr(dim, names) if dim.symbols <= names.keys() else "1"
            lines.append(f"  dims[{number}][{axis}] = {text};")
    lines += ["}", "", "static void output_sizes(const int64_t *s, int64_t *sizes) {", "  (void)s;"]
    lines.append("  (void)sizes;")
    for number, port in enumerate(data["outputs"]):
        dims = [_parsed(dim) for dim in port["dims"]]
        if not all(dim.symbols <= names.keys() for dim in dims):
            lines.append(f"  sizes[{number}] = -1;")
            continue
        texts = ", ".join(c_expr(dim, names) for dim in dims) or "1"
        size = f"real_bytes((const int64_t[]){{{texts}}}, {len(dims)}, outputs[{number}].item)"
        lines.append(f"  sizes[{number}] = lowerdeck_max({size}, 0);")
    return "\n".join([*lines, "}", ""])


def _port(name: str, port: Mapping[str, Any], values: Mapping[str, tuple[int, int]]) -> str:
    dtype = port["dtype"]
    item = _ITEMS.get(dtype) or int(re.sub(r"\D", "", dtype)) // 8
    low, high = values.get(port["name"], (1, 0))
    offset = f"offsetof({name}_args, {port['field']})"
    parts = [f'"{port["field"]}"', offset, str(len(port["dims"])), str(item), _KINDS[dtype]]
    return f"  {{{', '.join([*parts, str(low), str(high)])}}},"


def _parsed(dim: int | str) -> Expr:
    return Expr.const(dim) if isinstance(dim, int) else parse_expr(Parser(Context(), dim))


def write_harness(
    artifact: CArtifact, folder: Path, limits: Limits | None = None, callers: int = 1
) -> None:
    """The model, its weights and the harness around it, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in artifact.files.items():
        (folder / name).write_text(text)
    with (folder / f"{artifact.name}.weights").open("wb") as file:
        file.writelines(artifact.weight_chunks())
    limits = limits or Limits()
    (folder / "hostile_model.h").write_text(model_header(artifact, limits, callers))
    (folder / "hostile_sizes.h").write_text(sizes_header(artifact))
    shutil.copy(HARNESS, folder)


# Builds


@cache
def missing(compiler: str, sanitizer: str) -> str | None:
    """Why there can be no such build here; None if there can."""
    if shutil.which(compiler) is None:
        return f"{compiler} is not installed"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "main"
        program.with_suffix(".c").write_text("int main(void) { return 0; }\n")
        flags = SANITIZERS[sanitizer]
        command = [compiler, *flags, str(program.with_suffix(".c")), "-o", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{compiler} has no runtime for {flags[0]}: {done.stderr.strip()[:200]}"
        ran = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    return f"{flags[0]} of {compiler} does not run: {ran.stderr[:200]}" if ran.returncode else None


def build_command(artifact: CArtifact, compiler: str, flags: Sequence[str]) -> list[str]:
    """What compiles the harness with the model, in their folder."""
    data = cast("dict[str, Any]", artifact.metadata)
    machine = [flag for flag in data["cflags"] if flag.startswith("-m")]
    sources = ["hostile.c", *data["sources"]]
    flags = [*machine, *user_flags(), *flags]
    return [compiler, *FLAGS, *flags, *sources, "-o", "hostile", "-lm", "-lpthread"]


def build(artifact: CArtifact, folder: Path, compiler: str, flags: Sequence[str]) -> Finding | None:
    """Compile the harness; a finding if that fails or warns."""
    command = build_command(artifact, compiler, flags)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if re.search(r"(error|warning):", line)]
    if not done.returncode and not lines:
        return None
    what = re.sub(r"'[^']*'|‘[^’]*’|\d+", "_", lines[0].partition(": ")[2] if lines else "failed")
    return Finding("compiler", what, "", -1, f"{' '.join(command)}\n{done.stderr}")


# Runs


@dataclass
class Runs:
    """What became of all runs of one program."""

    findings: list[Finding] = field(default_factory=list[Finding])
    statuses: list[int] = field(default_factory=list[int])
    """How many runs ended with each status; those of a process that died do not count."""


def run(artifact: CArtifact, folder: Path, seed: int, runs: int) -> Runs:
    """All runs; after one that dies, the next process goes on behind it."""
    result = Runs([], [0] * 15)
    start = 0
    while start < runs:
        command = ["./hostile", str(seed), str(start), str(runs), f"{artifact.name}.weights"]
        code, out, err = _run(command, folder)
        found = [line for line in out.splitlines() if line.startswith("finding: ")]
        result.findings += [_judgment(line) for line in found]
        numbers = re.findall(r"^run (\d+)$", out, re.MULTILINE)
        counts = re.search(r"^statuses: (.*)$", out, re.MULTILINE)
        if counts is not None:
            new = map(int, counts[1].split())
            result.statuses = [a + b for a, b in zip(result.statuses, new, strict=True)]
            if not err.strip():
                break
        last = int(numbers[-1]) if numbers else start
        result.findings.append(_death(artifact.name, last, code, out[-300:] + err))
        start = last + 1
    return result


def _run(command: Sequence[str], folder: Path) -> tuple[int, str, str]:
    environment = {**os.environ, **_SETTINGS}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, env=environment)
        try:
            code = process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = -signal.SIGXCPU
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def _judgment(line: str) -> Finding:
    number, _, what = line.removeprefix("finding: run ").partition(": ")
    return Finding("status", re.sub(r"\(-?\d+\)$", "", what).strip(), "", int(number), line)


def _death(name: str, number: int, code: int, text: str) -> Finding:
    """A finding from what a process has said before its end."""
    if code == -signal.SIGXCPU:
        return Finding("hang", "over the limit of time", "", number, text)
    place = _place(name, text)
    if match := re.search(r"runtime error: (.*)", text):
        what = re.sub(r"-?\b(0x)?[0-9a-f]*\d[0-9a-f.+]*\b", "N", match[1])
        return Finding("ubsan", what, place, number, text)
    if match := re.search(r"ERROR: AddressSanitizer: ([\w-]+)", text):
        access = re.search(r"^(READ|WRITE) of size", text, re.MULTILINE)
        what = f"{match[1]} {access[1].lower()}" if access else match[1]
        return Finding("asan", what, place, number, text)
    if match := re.search(r"WARNING: ThreadSanitizer: ([\w -]+)", text):
        return Finding("tsan", match[1].strip(), place, number, text)
    return Finding("crash", f"exit status {code}", place, number, text)


def _place(name: str, text: str) -> str:
    """The innermost function of ours, and of the model's C who called it."""
    names = [frame for frame in _frames(text) if frame.startswith((name, "lowerdeck_"))]
    inner = names[0] if names else ""
    outer = next((frame for frame in names if frame.startswith(name)), "")
    words = dict.fromkeys(re.sub(rf"^{name}_|_?\d+", "", word) for word in (inner, outer))
    return " in ".join(filter(None, words))


def _frames(text: str) -> Iterator[str]:
    for match in re.finditer(r"^\s+#\d+ (?:0x[0-9a-f]+ in )?(\w+)", text, re.MULTILINE):
        yield match[1]
