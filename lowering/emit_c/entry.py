"""The entry function as C: buffers become pointers, kernels are called in order."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, singledispatch

from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import OpenOutputOp
from lowerdeck.dialects.buffer.enums import Requirement
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.control_flow import names_in
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.lowering.emit_c.interface import Port, c_condition, write_output_dims
from lowerdeck.lowering.emit_c.writer import CWriter, c_bytes, c_expr, comment, storage_type
from lowerdeck.lowering.entry.conditions import Condition
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.passes.machinery.provenance import source_names


@record
class Threads:
    """The C names of the team and of the thread's number, from 0."""

    team: str
    thread: str
    may_lag: bool = False
    """Threads read no memory that changes but in parts that they take: see `may_lag`."""


@dataclass
class EntryWriter:
    """The writer of the entry function, and what its calls need to know."""

    c: CWriter
    name: str
    """The model's."""
    functions: Mapping[str, str]
    """The C name of every kernel."""
    with_status: frozenset[str]
    """The kernels that take a status."""
    threads: Threads | None = None
    """How threads are told apart; None if there is only one."""
    clock: str | None = None
    """The variable that holds the time of the last mark; None if there are no marks."""
    sections: Mapping[Operation, str] = field(default_factory=dict[Operation, str])
    """The C name of every section."""
    definitions: list[str] = field(default_factory=list[str])
    """The functions that sections are, each before those that call it."""
    in_section: bool = False
    """True if the function is one of them: it gets the status and the clock as pointers."""
    may_end: bool = False
    """True if something written so far may end the run."""
    constant: set[SSAValue] = field(default_factory=set[SSAValue])
    """Buffers that must not be written."""
    checked: Collection[Operation] = ()
    """Requirements that hold before the run begins."""
    ports: Mapping[SSAValue, Port] = field(default_factory=dict[SSAValue, Port])
    """The model's inputs and outputs, by their buffers."""
    places: ChainMap[str, str] = field(default_factory=ChainMap[str, str])
    """The pointers into the workspace of this block and those around it, by what they are."""

    @property
    def status(self) -> str:
        """The status that kernels set."""
        return f"{'*' if self.in_section else ''}{self.c.use('status')}"

    @property
    def team(self) -> str:
        """The team of threads, if there are several."""
        assert self.threads is not None
        return self.c.use(self.threads.team)

    @property
    def thread(self) -> str:
        """The thread's number, if there are several."""
        assert self.threads is not None
        return self.c.use(self.threads.thread)

    @property
    def first_only(self) -> str:
        """What stands before a statement that the first thread alone runs."""
        return "" if self.threads is None else f"if ({self.thread} == 0) "

    def address(self, variable: str) -> str:
        """Of the status or the clock."""
        return f"{'' if self.in_section else '&'}{self.c.use(variable)}"

    def end_run(self, condition: str, status: str) -> None:
        """End the run with a status if a condition holds."""
        self.may_end = True
        self.c.line(f"if ({condition}) return {status};")

    def expr(self, value: Expr) -> str:
        """The C form of an expression over the model's symbols."""
        return c_expr(value, self.c.symbols)

    def size(self, value: Expr) -> str:
        """The same where numbers come from data: no sum of them wraps."""
        if value.symbols <= self.c.sizes:
            return self.expr(value)
        return self.c.size(value)

    def bytes(self, type_: RefType) -> str:
        """The C form of the bytes that a buffer takes."""
        return c_bytes(type_.dims.data, type_.item_size, self.size)

    def pointer_type(self, value: SSAValue) -> str:
        """The C type of the pointer to a buffer."""
        const = "const " if value in self.constant else ""
        return f"{const}{storage_type(ref_type(value).element)} *"

    def pointer(self, value: SSAValue, address: str, stem: str) -> None:
        """Declare the pointer to a buffer."""
        type_ = self.pointer_type(value)
        self.c.line(f"{type_}const {self.c.declare(value, stem)} = {address};")

    def port(self, value: SSAValue) -> None:
        """Declare the pointer to the buffer of an input or output."""
        port = self.ports[value]
        data = port.data
        if port.default is not None:
            default = f"{self.c.use('weights')} + {port.default_offset}"
            data = f"{data} != NULL ? {data} : ({self.pointer_type(value)})({default})"
        self.pointer(value, data, port.field)

    def symbol(self, name: str, text: str) -> None:
        """Declare a dimension symbol; it may turn out to be in types only."""
        identifier = self.c.bind_symbol(name)
        self.c.line(f"const int64_t {identifier} = {text};")
        self.c.line(f"(void){identifier};")

    def place(self, value: SSAValue, address: str) -> None:
        """Declare the pointer to a buffer in the workspace; one for all that lie there by turns."""
        if (known := self.places.get(address)) is None:
            self.pointer(value, address, "b")
            self.places[address] = self.c.name(value)
        else:
            self.c.alias(value, known)

    def block(self, block: Block) -> None:
        """Every op of a block."""
        self.places = self.places.new_child()
        for op in block.ops:
            emit(op, self)
        self.places = self.places.parents


@singledispatch
def emit(op: Operation, w: EntryWriter) -> None:
    """Append the C form of `op`."""
    raise LoweringError(op, "has no C form; lower it before emit-c")


@emit.register(kernel.YieldOp)
@emit.register(kernel.ReturnOp)
def _(op: Operation, w: EntryWriter) -> None:
    """Written by the op that the block belongs to."""


def _offset(op: entry_ops.WeightOp | entry_ops.AllocOp, w: EntryWriter) -> str:
    if op.offset is None:
        raise LoweringError(op, "has no offset; run plan-memory before emit-c")
    return w.c.short(op.offset.data[0])


@emit.register
def _(op: entry_ops.WeightOp, w: EntryWriter) -> None:
    """A pointer into the weights; it stands in the call that alone reads it."""
    w.constant.add(op.result)
    start = f"{w.c.use('weights')} + {_offset(op, w)}"
    address = f"({w.pointer_type(op.result)})({start})"
    use = op.result.first_use if op.result.has_one_use() else None
    if use is not None and isinstance(use.operation, entry_ops.CallOp):
        w.c.alias(op.result, address)
    else:
        w.pointer(op.result, address, "w")


@emit.register
def _(op: entry_ops.AllocOp, w: EntryWriter) -> None:
    """A pointer into the workspace, or memory from the allocator."""
    type_ = w.pointer_type(op.result)
    if ref_type(op.result).bytes == 0 and not op.dynamic.value.data:
        # There may be no workspace at all.
        w.pointer(op.result, "NULL", "b")
        return
    if not op.dynamic.value.data:
        w.place(op.result, f"({type_})({w.c.use('workspace')} + {_offset(op, w)})")
        return
    size = w.c.fresh("size")
    w.c.line(f"const int64_t {size} = {w.bytes(ref_type(op.result))};")
    w.end_run(f"{size} < 0", "LOWERDECK_ERROR_SHAPE_MISMATCH")
    memory = f"lowerdeck_allocate({w.c.use('memory')}, {size})"
    if w.threads is not None:
        first = f"{w.thread} == 0 ? {memory} : NULL"
        memory = f"lowerdeck_team_share({w.team}, {w.thread}, {first})"
    w.pointer(op.result, f"({type_}){memory}", "b")
    w.end_run(f"{w.c.value(op.result)} == NULL", "LOWERDECK_ERROR_OUT_OF_MEMORY")


@emit.register
def _(op: OpenOutputOp, w: EntryWriter) -> None:
    """The dimensions for the caller, a look at the room, and the pointer."""
    write_output_dims(w.ports[op.output], w.c, w.first_only)
    w.port(op.output)


@emit.register
def _(op: entry_ops.ViewOp, w: EntryWriter) -> None:
    """The same pointer, moved; the same name, if it is neither moved nor a variable."""
    if op.source in w.constant:
        w.constant.add(op.result)
    offset, source = op.offset.data[0], w.c.value(op.source)
    if offset == 0 and isinstance(op.source.owner, entry_ops.AllocOp | entry_ops.ViewOp):
        w.c.alias(op.result, source)
        return
    moved = "" if offset == 0 else f" + ({w.size(offset)})"
    w.pointer(op.result, f"{source}{moved}", "b")


@emit.register
def _(op: entry_ops.CopyOp, w: EntryWriter) -> None:
    """A copy of all bytes."""
    size = w.bytes(ref_type(op.source))
    w.c.line(f"lowerdeck_copy({w.c.value(op.target)}, {w.c.value(op.source)}, {size});")


@emit.register
def _(op: entry_ops.CallOp, w: EntryWriter) -> None:
    """A call."""
    callee = op.callee.root_reference.data
    arguments = [w.c.value(argument) for argument in op.arguments]
    arguments += [w.size(symbol) for symbol in op.symbols.data]
    if callee in w.with_status:
        arguments.append(w.address("status"))
    w.c.line(f"{w.functions[callee]}({', '.join(arguments)});{_source_comment(op)}")


def _source_comment(op: Operation) -> str:
    names = source_names(op, 1)
    return f" {comment(names[0])}" if names else ""


@emit.register
def _(op: entry_ops.CheckStatusOp, w: EntryWriter) -> None:
    """A look at the status."""
    if w.threads is not None:
        w.c.line(f"{w.status} = lowerdeck_team_agree({w.team}, {w.status});")
    w.end_run(f"{w.status} != LOWERDECK_OK", w.status)


@emit.register
def _(op: entry_ops.BarrierOp, w: EntryWriter) -> None:
    """A barrier; there is none to print for one thread."""
    if w.threads is None:
        return
    if w.threads.may_lag:
        w.c.line(f"lowerdeck_team_meet({w.team}, {w.thread});")
    else:
        w.c.line(f"lowerdeck_team_barrier({w.team});")


@emit.register
def _(op: entry_ops.MarkOp, w: EntryWriter) -> None:
    """The first thread's clock."""
    slot = -1 if op.slot is None else op.slot.data
    assert w.clock is not None
    profile, clock = f"{w.c.use('args')}->profile", w.address(w.clock)
    w.c.line(f"{w.first_only}lowerdeck_mark({profile}, {clock}, {slot});")


@emit.register
def _(op: entry_ops.OnceOp, w: EntryWriter) -> None:
    """What the first thread does."""
    if w.threads is None:
        w.block(op.body.block)
        return
    with w.c.block(f"if ({w.thread} == 0)"):
        w.block(op.body.block)


@emit.register
def _(op: entry_ops.ShareOp, w: EntryWriter) -> None:
    """A loop over the parts that the thread takes; one thread takes the whole."""
    w.c.sizes |= {kernel.PART, kernel.PARTS}
    if w.threads is None:
        w.c.symbols.update({kernel.PART: "0", kernel.PARTS: "1"})
        w.block(op.body.block)
        return
    parts = w.c.fresh("parts")
    w.c.symbols.update({kernel.PART: f"{parts}.number", kernel.PARTS: f"{parts}.count"})
    w.c.line(f"lowerdeck_parts {parts} = lowerdeck_team_loop({w.team}, {w.thread});")
    with w.c.block(f"while (lowerdeck_team_take(&{parts}))"):
        w.block(op.body.block)


@emit.register
def _(op: entry_ops.BindOp, w: EntryWriter) -> None:
    """Symbols from the elements of a buffer."""
    for number, name in enumerate(op.made_symbols):
        # The least number is none that is known.
        w.symbol(name, f"lowerdeck_max((int64_t){w.c.value(op.source)}[{number}], -INT64_MAX)")


@emit.register
def _(op: entry_ops.RequireOp, w: EntryWriter) -> None:
    """A test of dimensions."""
    if op in w.checked:
        return
    predicate = op.predicate.data
    condition = c_condition(Condition(op.left.data[0], predicate, op.right.data[0]), w.c)
    error = "INDEX_OUT_OF_RANGE" if predicate == Requirement.INDEX else "SHAPE_MISMATCH"
    w.end_run(f"!({condition})", f"LOWERDECK_ERROR_{error}")


@record
class _Parameter:
    """One of a section's function, and what its caller passes."""

    type: str
    name: str
    argument: Callable[[], str]


@emit.register
def _(op: entry_ops.SectionOp, w: EntryWriter) -> None:
    """The call of a function; what it makes for others goes through pointers."""
    inner = replace(
        w,
        c=CWriter(w.c.reserved),
        in_section=True,
        may_end=False,
        constant=set[SSAValue](),
        places=ChainMap[str, str](),
    )
    inner.c.sizes = w.c.sizes
    parameters = [*_context_of(w), *_handed_in(op, w, inner)]
    inner.block(op.body.block)
    parameters += _handed_out(op, w, inner)
    used = [each for each in parameters if each.name in inner.c.used]
    _define(op, used, inner)
    call = f"{w.sections[op]}({', '.join(each.argument() for each in used)})"
    if not inner.may_end:
        w.c.line(f"{call};")
        return
    end = w.c.fresh("end")
    w.c.line(f"const int {end} = {call};")
    w.end_run(f"{end} != LOWERDECK_OK", end)


def _context_of(w: EntryWriter) -> list[_Parameter]:
    """What any op may refer to."""
    found = [
        _Parameter(f"{w.name}_args *", "args", partial(w.c.use, "args")),
        _Parameter("lowerdeck_memory *", "memory", partial(w.c.use, "memory")),
        _Parameter("unsigned char *", "workspace", partial(w.c.use, "workspace")),
        _Parameter("const unsigned char *", "weights", partial(w.c.use, "weights")),
        _Parameter("int *", "status", partial(w.address, "status")),
    ]
    if w.clock is not None:
        found.append(_Parameter("int64_t *", w.clock, partial(w.address, w.clock)))
    if w.threads is not None:
        team, thread = w.threads.team, w.threads.thread
        found.append(_Parameter("lowerdeck_team *", team, partial(w.c.use, team)))
        found.append(_Parameter("int64_t ", thread, partial(w.c.use, thread)))
    return found


def _handed_in(op: entry_ops.SectionOp, w: EntryWriter, inner: EntryWriter) -> list[_Parameter]:
    """Buffers and symbols from outside."""
    found: list[_Parameter] = []
    for value, argument in zip(op.arguments, op.body.block.args, strict=True):
        if value in w.constant:
            inner.constant.add(argument)
        name = inner.c.declare(argument, w.c.name(value))
        found.append(_Parameter(inner.pointer_type(argument), name, partial(w.c.value, value)))
    for symbol in names_in(op.symbols):
        name = inner.c.bind_symbol(symbol)
        found.append(_Parameter("int64_t ", name, partial(w.c.symbols.__getitem__, symbol)))
    return found


def _handed_out(op: entry_ops.SectionOp, w: EntryWriter, inner: EntryWriter) -> list[_Parameter]:
    """Buffers and symbols that the section makes for others: variables of its caller."""
    found: list[_Parameter] = []

    def hand_out(type_: str, name: str, value: str) -> None:
        pointer = inner.c.use(inner.c.fresh(f"{name}_out"))
        found.append(_Parameter(f"{type_}*", pointer, lambda: f"&{name}"))
        inner.c.line(f"*{pointer} = {value};")

    for value, result in zip(_yielded(op.body.block), op.results, strict=True):
        if value in inner.constant:
            w.constant.add(result)
        type_, name = w.pointer_type(result), w.c.declare(result, inner.c.name(value))
        w.c.line(f"{type_}{name} = NULL;")
        hand_out(type_, name, inner.c.value(value))
    for symbol in op.made_symbols:
        name = w.c.bind_symbol(symbol)
        w.c.line(f"int64_t {name} = 0;")
        hand_out("int64_t ", name, inner.c.symbols[symbol])
    return found


def _define(op: entry_ops.SectionOp, parameters: Sequence[_Parameter], w: EntryWriter) -> None:
    """Add the function to the definitions."""
    list_ = ", ".join(f"{each.type}{each.name}" for each in parameters) or "void"
    type_, last = ("int", ["  return LOWERDECK_OK;"]) if w.may_end else ("void", [])
    lines = [f"static {type_} {w.sections[op]}({list_}) {{", *w.c.lines, *last, "}", ""]
    w.definitions.append("\n".join(lines))


@emit.register
def _(op: entry_ops.IfOp, w: EntryWriter) -> None:
    """A C `if`."""
    c, names = w.c, op.made_symbols
    for result in op.results:
        c.line(f"{w.pointer_type(result)}{c.declare(result, 'b')} = NULL;")
    sizes = [
        _Size(n, axis, name, c.fresh(name))
        for n, axis, name in entry_ops.made_dims(op.results, names)
    ]
    for size in sizes:
        c.line(f"int64_t {size.variable} = 0;")
    with c.block(f"if ({c.value(op.condition)}[0] != 0)"):
        _scope(op.then_region.block, w)
        _hand_on(op.then_region.block, op.results, sizes, w)
    with c.otherwise():
        _scope(op.else_region.block, w)
        _hand_on(op.else_region.block, op.results, sizes, w)
    for result in op.results:
        c.line(f"(void){c.value(result)};")
    for size in sizes:
        w.symbol(size.symbol, size.variable)


@record
class _Size:
    """A dimension that control flow makes a symbol for, and the variable that holds it."""

    number: int
    axis: int
    symbol: str
    variable: str


def _hand_on(
    block: Block, targets: Sequence[SSAValue], sizes: Sequence[_Size], w: EntryWriter
) -> None:
    """At the end of a block: variables get the buffers that it yields, and their sizes."""
    values = _yielded(block)
    for size in sizes:
        dim = ref_type(values[size.number]).dims.data[size.axis]
        w.c.line(f"{size.variable} = {w.size(dim)};")
    for target, value in zip(targets, values, strict=True):
        w.c.line(f"{w.c.value(target)} = {w.c.value(value)};")


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return tuple(last.values) if isinstance(last, kernel.YieldOp) else ()


def _allocates(op: Operation) -> bool:
    """True if the op leaves dynamic buffers to its block."""
    if isinstance(op, entry_ops.AllocOp):
        return bool(op.dynamic.value.data)
    if isinstance(op, entry_ops.SectionOp):
        return any(map(_allocates, op.body.block.ops))
    return isinstance(op, entry_ops.IfOp) and bool(op.results)


def _scope(block: Block, w: EntryWriter) -> None:
    """A block whose allocations are released at its end, but for those that it yields."""
    mark = w.c.fresh("mark") if any(map(_allocates, block.ops)) else None
    if mark is None:
        w.block(block)
        return
    is_first = "" if w.threads is None else f"{w.thread} == 0"
    memory = w.c.use("memory")
    last = f"{is_first} ? {memory}->last : NULL" if is_first else f"{memory}->last"
    w.c.line(f"lowerdeck_block *const {mark} = {last};")
    w.block(block)
    only = f"if ({is_first}) " if is_first else ""
    if not (kept := _yielded(block)):
        w.c.line(f"{only}lowerdeck_release({memory}, {mark});")
        return
    list_ = f"(void *const[]){{{', '.join(map(w.c.value, kept))}}}"
    w.c.line(f"{only}lowerdeck_keep({memory}, {mark}, {list_}, {len(kept)});")


@emit.register
def _(op: entry_ops.LoopOp, w: EntryWriter) -> None:
    """
    A C `for`; pairs of slots are pairs of pointers that swap at the end of the body, where owned
    buffers give way to the next ones.
    """
    c = w.c
    arguments = op.body.block.args[: len(op.slots)]
    for argument, slot in zip(arguments, op.slots, strict=True):
        c.line(f"{w.pointer_type(argument)}{c.declare(argument, 'slot')} = {c.value(slot)};")
    for number, result in enumerate(op.results[: len(op.slots) // 2]):
        c.alias(result, c.value(arguments[2 * number]))
    sizes = _declare_owned(op, w)
    count = c.bind_symbol(op.count.data) if op.count else c.fresh("count")
    c.line(f"int64_t {count} = 0;")
    tests: list[str] = []
    if op.trip_count is not None:
        trips = c.fresh("trips")
        c.line(f"const int64_t {trips} = {c.value(op.trip_count)}[0];")
        tests.append(f"{count} < {trips}")
    if op.condition is not None:
        tests.append(f"{c.value(op.condition)}[0] != 0")
    with c.block(f"for (; {' && '.join(tests)}; {count}++)"):
        if op.iteration is not None:
            w.symbol(op.iteration.data, count)
        for size in sizes:
            w.symbol(size.symbol, size.variable)
        _scope(op.body.block, w)
        for argument in op.owned_args:
            memory = c.use("memory")
            c.line(f"{w.first_only}lowerdeck_free({memory}, {c.value(argument)});")
        _hand_on(op.body.block, op.owned_args, sizes, w)
        for current, following in zip(arguments[::2], arguments[1::2], strict=True):
            temporary = c.fresh("swap")
            c.line(f"{w.pointer_type(current)}const {temporary} = {c.value(current)};")
            c.line(f"{c.value(current)} = {c.value(following)};")
            c.line(f"{c.value(following)} = {temporary};")
    for size, name in zip(sizes, names_in(op.result_symbols), strict=True):
        w.symbol(name, size.variable)


def _declare_owned(op: entry_ops.LoopOp, w: EntryWriter) -> list[_Size]:
    """The variables for owned buffers and for their sizes that change, in the order of symbols."""
    for argument, result, value in zip(op.owned_args, op.owned_results, op.owned, strict=True):
        name = w.c.declare(argument, "owned")
        w.c.line(f"{w.pointer_type(argument)}{name} = {w.c.value(value)};")
        w.c.alias(result, name)
    names = names_in(op.carried_symbols)
    made = sorted(
        entry_ops.made_dims(op.owned_args, names), key=lambda place: names.index(place[2])
    )
    sizes = [_Size(number, axis, name, w.c.fresh(name)) for number, axis, name in made]
    for size in sizes:
        dim = ref_type(op.owned[size.number]).dims.data[size.axis]
        w.c.line(f"int64_t {size.variable} = {w.size(dim)};")
    return sizes
