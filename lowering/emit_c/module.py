"""`emit-c`: the scheduled module as C. All decisions are in the IR; this only prints."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.blob import Blob
from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp, OpenOutputOp, find_entry
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.control_flow import names_in
from lowerdeck.dialects.core.defaults import DefaultAttr
from lowerdeck.dialects.core.states import states_in
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.abi import ABI
from lowerdeck.lowering.emit_c import custom, interface
from lowerdeck.lowering.emit_c.entry import EntryWriter, Threads
from lowerdeck.lowering.emit_c.faults import fault_function
from lowerdeck.lowering.emit_c.identifiers import identifier, names_of_model
from lowerdeck.lowering.emit_c.interface import Interface, Port, make_ports, make_states
from lowerdeck.lowering.emit_c.kernels import emit_kernel, needs_status
from lowerdeck.lowering.emit_c.vectors import prelude
from lowerdeck.lowering.emit_c.writer import CWriter
from lowerdeck.lowering.entry.conditions import (
    Condition,
    conditions_of,
    distinct,
    places_of,
)
from lowerdeck.lowering.entry.parallelize import may_lag
from lowerdeck.lowering.entry.plan_memory import WEIGHTS_HEADER
from lowerdeck.lowering.entry.stack import stack_bytes
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.provenance import source_names

_NUMBERS_A_LINE = 4
_BYTES_A_LINE = 8 * _NUMBERS_A_LINE

MAGIC = b"LOWERDCK"

BYTE_ORDERS = {"little": "<", "big": ">"}
"""The orders of bytes that weights may have, as `struct` and numpy call them."""

SHIPPED = ("lowerdeck.h", "lowerdeck_runtime.h")
SHIPPED_WITH_THREADS = ("lowerdeck_pool.h", "lowerdeck_pool.c")
SHIPPED_WITH_PROFILE = ("lowerdeck_profile.h",)


@dataclass(frozen=True)
class CArtifact:
    """A model as C, in memory; the weights are streamed when it is written."""

    name: str
    files: dict[str, str]
    """File name to text: NAME.h, NAME.c, the runtime's headers, CMakeLists.txt, example.c."""
    metadata: dict[str, object]
    """The interface for bindings; see `interface.metadata`."""
    weights: list[Weight]
    weights_header: WeightsHeader
    weights_size: int
    embeds_weights: bool
    byte_order: str = "little"
    """That of the weights file; embedded weights have that of the machine."""

    def weights_text(self) -> Iterator[str]:
        """
        The C file that holds the weights, in pieces: numbers of eight bytes, little-endian, in
        which macros change the places of elements where the machine has the other order.
        """
        yield f'#include "{self.name}.h"\n#include "lowerdeck_runtime.h"\n\n'
        yield f"const uint64_t {self.name}_weights[{self.weights_size // 8}] = {{\n"
        yield "#if LOWERDECK_BIG_ENDIAN\n"
        yield from _lines(self.weights_header.packed("big"), ">u8")
        yield "#else\n"
        yield from _lines(self.weights_header.packed("little"), "<u8")
        yield "#endif\n"
        ends = [*(weight.offset for weight in self.weights[1:]), self.weights_size]
        for weight, end in zip(self.weights, ends, strict=True):
            # Constants begin where lines of the cache do, so that all lines here are whole.
            whole = weight.blob.size // _BYTES_A_LINE * _BYTES_A_LINE
            data = weight.blob.data
            yield from _lines(data[:whole], "<u8", weight.item_size)
            rest = bytes(data[whole:]).ljust(end - weight.offset - whole, b"\0")
            yield from _lines(rest, "<u8", weight.item_size)
        yield "};\n"

    def weight_chunks(self) -> Iterator[bytes | memoryview]:
        """The weights file from front to back, a constant at a time."""
        if not self.weights_size:
            return
        yield self.weights_header.packed(self.byte_order)
        position = WEIGHTS_HEADER
        for weight in self.weights:
            yield bytes(weight.offset - position)
            yield weight.bytes(self.byte_order)
            position = weight.offset + weight.blob.size
        yield bytes(self.weights_size - position)


@dataclass(frozen=True)
class Weight:
    """A constant: where it lies, its bytes, little-endian, and how many of them an element has."""

    offset: int
    blob: Blob
    item_size: int

    def bytes(self, byte_order: str) -> memoryview:
        """The elements in an order of bytes."""
        data = memoryview(self.blob.data)
        if byte_order == "little" or self.item_size == 1:
            return data
        return np.frombuffer(data, f"<u{self.item_size}").byteswap().data.cast("B")


@dataclass(frozen=True)
class WeightsHeader:
    """What weights begin with: magic, ABI version, target, hash of the constants, size."""

    target: str
    digest: bytes
    size: int

    def packed(self, byte_order: str) -> bytes:
        """64 bytes. The version tells a machine of the other order that they are not for it."""
        fields = struct.pack(
            f"{BYTE_ORDERS[byte_order]}8sI12s32sQ",
            MAGIC,
            ABI,
            self.target.encode(),
            self.digest,
            self.size,
        )
        return fields.ljust(WEIGHTS_HEADER, b"\0")


def _lines(data: bytes | memoryview, words: str, item_size: int = 8) -> Iterator[str]:
    """Lines of numbers of eight bytes, of elements that may have fewer."""
    head, tail = ("", "") if item_size == 8 else (f"LOWERDECK_WORDS_{item_size}(", ")")
    numbers = np.frombuffer(data, words)
    for start in range(0, len(numbers), _NUMBERS_A_LINE):
        line = numbers[start : start + _NUMBERS_A_LINE].tolist()
        yield f"  {head}{', '.join(f'0x{number:x}' for number in line)}{tail},\n"


def emit_c(
    module: ModuleOp,
    name: str,
    target: str,
    *,
    embed_weights: bool = False,
    byte_order: str = "little",
) -> CArtifact:
    """
    The C of a module whose memory is planned, with identifiers that begin with `name`.

    With `embed_weights` the constants become a C file of their own; `byte_order` is that of the
    file that they are otherwise.

    LoweringError names the first op that has no C form.
    """
    if (entry := find_entry(module)) is None:
        raise CompileError("the module has no entry function; run bufferize before emit-c")
    kernels = list(kernel.functions_of(module).values())
    weights, size = _weights(entry)
    header = WeightsHeader(target, _digest(weights), size)
    size = size if weights else 0
    i = _interface(entry, name, target, size, header, embed_weights and size > 0)
    i = replace(i, stack=stack_bytes(entry, kernel.functions_of(module), target_named(target)))
    source = _source(i, kernels, entry)
    files = {
        f"{name}.h": interface.header(i, fault_function(i)),
        f"{name}.c": source,
        "CMakeLists.txt": interface.cmake(i),
        "example.c": interface.example(i),
    }
    shipped = SHIPPED + (SHIPPED_WITH_THREADS if i.is_parallel else ())
    shipped += () if i.slots is None else SHIPPED_WITH_PROFILE
    files.update({file: (interface.RUNTIME / file).read_text() for file in shipped})
    data = interface.metadata(i)
    data["texts"] = {file: digest_of(text) for file, text in files.items()}
    return CArtifact(name, files, data, weights, header, size, i.embeds_weights, byte_order)


def digest_of(text: str) -> str:
    """By which a file is known that nobody has changed."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _weights(entry: EntryOp) -> tuple[list[Weight], int]:
    """The constants in the order in which `plan-memory` has laid them out, and the total size."""
    size = _number(entry.weights)
    found: dict[int, Weight] = {}

    def add(start: int, blob: Blob, item_size: int) -> None:
        # One without elements takes no room, and may lie where another one does.
        if start not in found or not found[start].blob.size:
            found[start] = Weight(start, blob, item_size)

    for op in all_ops(entry):
        if isinstance(op, entry_ops.WeightOp):
            start = None if op.offset is None else op.offset.data[0].value
            if start is None or size is None:
                raise CompileError("constants have no place; run plan-memory before emit-c")
            add(start, op.value.data, ref_type(op.result).item_size)
    offsets = () if entry.default_offsets is None else entry.default_offsets.data
    for offset, default, argument in zip(offsets, entry.input_defaults, entry.input_args):
        if default is not None and offset.value is not None:
            add(offset.value, default.value.data, ref_type(argument).item_size)
    return [found[start] for start in sorted(found)], size or 0


def _digest(weights: list[Weight]) -> bytes:
    """The hash of the constants."""
    digest = hashlib.sha256()
    for weight in weights:
        digest.update(struct.pack("<q", weight.offset))
        digest.update(weight.blob.data)
    return digest.digest()


def _interface(
    entry: EntryOp,
    name: str,
    target: str,
    weights_size: int,
    header: WeightsHeader,
    embeds_weights: bool,
) -> Interface:
    if entry.workspace is None:
        raise CompileError("memory is not planned; run plan-memory before emit-c")
    taken = names_of_model(name)
    states = states_in(entry.states)
    types = [ref_type(after) for _, after in entry.states_args]
    inputs, outputs = _ports(entry)
    allocated = [
        op for op in all_ops(entry) if isinstance(op, entry_ops.AllocOp) and op.dynamic.value.data
    ]
    return Interface(
        name=name,
        inputs=tuple(_with_defaults(entry, inputs, taken)),
        outputs=make_ports(list(outputs), list(map(ref_type, outputs.values())), taken),
        unused_inputs=[n for n in names_in(entry.unused) if n not in {each[0] for each in states}],
        states=make_states(states, types, name),
        conditions=_conditions(entry),
        workspace=entry.workspace.data[0],
        weights_size=weights_size,
        weights_header=header.packed("little"),
        allocated=tuple(dict.fromkeys(name for op in allocated for name in source_names(op, 1))),
        needs_allocator=bool(allocated),
        is_parallel=entry.takes_pool is not None,
        shares_work=entry.parallel is not None,
        embeds_weights=embeds_weights,
        target=target,
        slots=None if entry.profile is None else tuple(map(_slot, entry.marks)),
        live=_number(entry.live),
        row_major=_number(entry.row_major),
    )


def _ports(entry: EntryOp) -> tuple[dict[str, SSAValue], dict[str, SSAValue]]:
    """The buffers of inputs and outputs by name; states are neither."""
    states = {value for pair in entry.states_args for value in pair}
    names = (names_in(entry.inputs), entry.input_args), (names_in(entry.outputs), entry.output_args)
    found: list[dict[str, SSAValue]] = [
        {name: value for name, value in zip(*each, strict=True) if value not in states}
        for each in names
    ]
    return found[0], found[1]


def _with_defaults(
    entry: EntryOp, inputs: Mapping[str, SSAValue], taken: set[str]
) -> Iterator[Port]:
    """The ports of inputs, with what they are if they are left out."""
    offsets = entry.default_offsets.data if entry.default_offsets is not None else ()
    parts = zip_longest(entry.input_defaults, offsets)
    known: dict[SSAValue, tuple[DefaultAttr | None, Expr | None]] = dict(
        zip(entry.input_args, parts, strict=True)
    )
    ports = make_ports(list(inputs), list(map(ref_type, inputs.values())), taken)
    for port, value in zip(ports, inputs.values(), strict=True):
        default, offset = known[value]
        place = None if offset is None else offset.value
        if default is not None and place is None:
            raise CompileError("defaults have no place; run plan-memory before emit-c")
        shape = None if default is None else default.shape
        yield replace(port, default=shape, default_offset=place or 0)


def _conditions(entry: EntryOp) -> tuple[tuple[Condition, str], ...]:
    places = {symbol: f"{name}: dims[{axis}]" for symbol, (name, axis) in places_of(entry).items()}
    return tuple((each, each.text(places)) for each in distinct(conditions_of(entry).values()))


def _number(attribute: IntAttr | None) -> int | None:
    return None if attribute is None else attribute.data


def _slot(mark: entry_ops.MarkOp) -> dict[str, object]:
    """What a mark says of its slot, for JSON."""
    entries: dict[str, object] = {}
    for name, exprs in (("bytes", mark.bytes), ("multiply_adds", mark.multiply_adds)):
        if exprs is not None:
            entries[name] = interface.number(exprs.data[0])
    if mark.lanes is not None:
        entries["lanes"] = mark.lanes.data
    texts = (("schedule", mark.schedule), ("shapes", mark.shapes), ("kernel", mark.kernel))
    entries.update((name, text.data) for name, text in texts if text is not None)
    return {**entries, "nodes": names_in(mark.nodes)}


def _source(i: Interface, kernels: list[kernel.FuncOp], entry: EntryOp) -> str:
    """NAME.c."""
    sources = custom.functions(kernels)
    taken = {*names_of_model(i.name), *sources}
    names = {function.sym_name.data: "" for function in kernels}
    for name in names:
        names[name] = identifier(f"{i.name}_{name}", taken)
    parts = [
        f"/* {i.name}: generated by lowerdeck for target {i.target}. */",
        f'#include "{i.name}.h"\n',
        '#include "lowerdeck_runtime.h"\n',
    ]
    if i.shares_work:
        parts.append('#include "lowerdeck_pool.h"\n')
    if i.weights_size:
        parts.append(
            "/* What the weights begin with: magic; and, behind the version, target and hash. */\n"
            f"static const unsigned char {i.name}_weights_header[] = {{"
            f"{', '.join(map(str, interface.known_of_weights(i)))}}};\n"
        )
    reserved = taken - set(names.values())
    bits = target_named(i.target).index_bits
    definitions = [emit_kernel(f, names[f.sym_name.data], reserved, bits) for f in kernels]
    if vectors := prelude(kernels, target_named(i.target)):
        parts.append(vectors)
    parts += filter(None, sources.values())
    parts += definitions
    parts.append(_entry_function(i, kernels, names, entry))
    parts.append(interface.workspace_function(i))
    if interface.has_output_dims(i):
        parts.append(interface.output_dims_function(i))
    if i.states:
        parts.append(interface.reset_function(i))
    parts.append(interface.check_function(i))
    parts.append(_parallel_entry(i) if i.shares_work else _entry(i))
    return "\n".join(parts)


def _entry_function(
    i: Interface, kernels: list[kernel.FuncOp], names: dict[str, str], entry: EntryOp
) -> str:
    reserved = {*names_of_model(i.name), *names.values()}
    sections: dict[Operation, str] = {
        op: identifier(f"{i.name}_section", reserved)
        for op in all_ops(entry)
        if isinstance(op, entry_ops.SectionOp)
    }
    with_status = frozenset(f.sym_name.data for f in kernels if needs_status(f))
    clock = None if i.slots is None else identifier("last_mark", reserved)
    threads = None
    if i.shares_work:
        team, thread = (identifier(name, reserved) for name in ("team", "thread"))
        threads = Threads(team, thread, may_lag(entry))
    c = CWriter(reserved)
    inputs, outputs = _ports(entry)
    remembered = [after for _, after in entry.states_args]
    buffers = (*inputs.values(), *outputs.values(), *remembered)
    ports: dict[SSAValue, interface.Port] = dict(
        zip(buffers, (*i.inputs, *i.outputs, *i.states), strict=True)
    )
    w = EntryWriter(c, i.name, names, with_status, threads, clock, sections, ports=ports)
    w.checked = conditions_of(entry)
    interface.read_dimensions(i, c)
    if i.workspace != 0:
        aligned = "((uintptr_t)args->workspace + 63) & ~(uintptr_t)63"
        c.line(f"unsigned char *const workspace = (unsigned char *)({aligned});")
    if i.weights_size:
        c.line("const unsigned char *const weights = (const unsigned char *)args->weights;")
    # A kernel that checks indices may have lost its loops: those of a tensor without elements.
    if with_status or any(isinstance(op, entry_ops.CheckStatusOp) for op in all_ops(entry)):
        c.line("int status = LOWERDECK_OK;")
    if clock is not None:
        c.line(f"int64_t {clock} = 0;")
        c.line(f"(void){clock};")
    w.constant |= set(entry.input_args)
    opened = {op.output for op in entry.body.block.ops if isinstance(op, OpenOutputOp)}
    if not opened.issuperset(entry.late_outputs):
        raise CompileError("sizes of outputs depend on data; run open-outputs before emit-c")
    if any(before is not None and before.uses for before, _ in entry.states_args):
        raise CompileError("a state is not updated in its place; run update-states before emit-c")
    for argument in w.ports:
        if argument.uses and argument not in opened:
            w.port(argument)
    w.block(entry.body.block)
    for port in i.outputs:
        if not port.type.elements.symbols <= c.symbols.keys():
            raise CompileError(f"output '{port.name}' has dimensions that nothing defines")
    if not i.needs_allocator:
        c.line("(void)memory;")
    c.line("return LOWERDECK_OK;")
    parameters = [f"{i.name}_args *args", "lowerdeck_memory *memory"]
    if threads is not None:
        parameters += [f"lowerdeck_team *{threads.team}", f"int64_t {threads.thread}"]
        c.lines = [f"  (void){threads.thread};", *c.lines]
    head = f"static int {i.name}_driver({', '.join(parameters)}) {{"
    return "\n".join([*w.definitions, head, *c.lines, "}", ""])


def _entry(i: Interface) -> str:
    """NAME_run: the checks, the entry function, and release of what it allocated."""
    return f"""int {i.name}_run({i.name}_args *args) {{
  if (args == NULL) return LOWERDECK_ERROR_NULL;
{_use_embedded_weights(i)}  int status = {i.name}_check(args);
  if (status != LOWERDECK_OK) return status;
  lowerdeck_memory memory = {{args->allocator, NULL}};
  status = {i.name}_driver(args, &memory);
  lowerdeck_release(&memory, NULL);
  return status;
}}
"""


def _use_embedded_weights(i: Interface) -> str:
    if not i.embeds_weights:
        return ""
    return f"""  if (args->weights == NULL) {{
    args->weights = {i.name}_weights;
    args->weights_size = sizeof {i.name}_weights;
  }}
"""


def _parallel_entry(i: Interface) -> str:
    """NAME_run of an entry function that every thread of the pool runs."""
    return f"""typedef struct {i.name}_job {{
  {i.name}_args *args;
  lowerdeck_memory memory;
  int status;
}} {i.name}_job;

static void {i.name}_work(void *context, lowerdeck_team *team, int64_t thread) {{
  {i.name}_job *const job = ({i.name}_job *)context;
  const int status = {i.name}_driver(job->args, &job->memory, team, thread);
  if (thread == 0) job->status = status;
}}

int {i.name}_run({i.name}_args *args) {{
  if (args == NULL) return LOWERDECK_ERROR_NULL;
{_use_embedded_weights(i)}  const int status = {i.name}_check(args);
  if (status != LOWERDECK_OK) return status;
  {i.name}_job job = {{args, {{args->allocator, NULL}}, LOWERDECK_OK}};
  lowerdeck_pool_run(args->pool, {i.name}_work, &job);
  lowerdeck_release(&job.memory, NULL);
  return job.status;
}}
"""
