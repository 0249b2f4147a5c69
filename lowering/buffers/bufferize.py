"""`bufferize`: values become buffers, and `main` the entry function, which calls kernels."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp
from lowerdeck.dialects.buffer.enums import Requirement
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp, constant_array
from lowerdeck.dialects.core.control_flow import IfOp, KernelOp, LoopOp, YieldOp, names_in, yielded
from lowerdeck.dialects.core.defaults import defaults_of
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.names import CLASSES, STATES, unused_inputs, value_names
from lowerdeck.dialects.core.states import states_in
from lowerdeck.dialects.core.tensor import ReshapeOp, SliceOp
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, i1
from lowerdeck.dialects.dims import Expr, maximum, product
from lowerdeck.dialects.intervals import Interval, interval
from lowerdeck.dialects.records import record
from lowerdeck.dialects.sizes import at_most, is_never_negative, largest
from lowerdeck.lowering.buffers.named_sizes import name_sizes
from lowerdeck.lowering.buffers.updates import Update, find_updates
from lowerdeck.lowering.buffers.work import bytes_of_update, multiply_adds_of_kernel
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.form.view_parts import Place, Places, find_places, offset_of_slice
from lowerdeck.lowering.nests.lower import remove_unused
from lowerdeck.passes.machinery.assumptions import Assumption, assumptions, divisors_of, multiples
from lowerdeck.passes.machinery.structure import nameless_key
from lowerdeck.passes.machinery.symbols import symbols_of, symbols_used_by

MAX_TRIPS = 1 << 31
"""Exporters write a larger constant trip count to mean that there is none."""


@record
class Called:
    """A kernel that is called."""

    op: KernelOp
    name: str
    symbols: Sequence[str]
    """The dimension symbols that its types and ops name."""

    @staticmethod
    def of(op: KernelOp) -> Called:
        block = op.body.block
        names = {name for type_ in block.arg_types for name in symbols_of(type_)}
        names.update(name for inner in block.ops for name in symbols_used_by(inner))
        return Called(op, op.sym_name.data, sorted(names))

    def over_buffers(self) -> kernel.BufferKernelOp:
        """The kernel as an op of its own; its ops move out of the original function."""
        op = self.op
        new = kernel.BufferKernelOp(
            self.name,
            op.detach_region(op.body),
            layouts=op.layouts,
            schedule=op.schedule,
            symbols=self.symbols,
            constants=[number for number in range(len(op.inputs)) if op.is_constant(number)],
            in_place=op.in_place,
        )
        new.location = op.location
        return new


@dataclass
class Scope:
    """A block of the entry function under construction."""

    block: Block
    checked: set[tuple[Expr, str, Expr]] = field(default_factory=set[tuple[Expr, str, Expr]])
    """The assumptions that hold from here on."""
    owned: set[SSAValue] = field(default_factory=set[SSAValue])
    """The dynamic buffers that are released at the end of the block."""
    yields: list[SSAValue] = field(default_factory=list[SSAValue])
    """The dynamic buffers whose ownership the block passes on instead."""


_LAST_ITERATION = (1 << 63) - 2
"""The greatest possible iteration number: trip counts are i64."""


class Bufferizer:
    """Turns one `func.func` into the entry function; assigns a buffer to every value."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        source = function.body.block
        last = source.last_op
        assert isinstance(last, func.ReturnOp)
        self.returned: tuple[SSAValue, ...] = tuple(last.arguments)
        self.static_symbols = {
            name for argument in source.args for dim in dims_of(argument) for name in dim.symbols
        }
        types = [_ref(value) for value in (*source.args, *self.returned)]
        block = Block(arg_types=types)
        count = len(source.args)
        self.refs: dict[SSAValue, SSAValue] = dict(
            zip(source.args, block.args[:count], strict=True)
        )
        self.outputs = block.args[count:]
        self._kernels: dict[Hashable, Called] = {}
        """The called kernels by what they compute: identical ones are merged."""
        self._number_symbol: str | None = None
        """The name of the iteration number in the kernel that writes it to a tensor."""
        self._scopes = [Scope(block)]
        self._ranges: dict[str, Interval] = {}
        """What iteration numbers may be."""
        self._limits: dict[str, Expr] = {}
        """What symbols that iterations decide never exceed, in terms of input dimensions."""
        self._destinations: dict[SSAValue, SSAValue] = {}
        self._current: Operation | None = None
        """The op that is lowered: what a buffer is for."""
        self._packed: dict[tuple[SSAValue, LayoutAttr], SSAValue] = {}
        self._places = Places()
        self._divisors = divisors_of(function)
        self._fresh = 0

    def run(self) -> tuple[list[kernel.BufferKernelOp], EntryOp]:
        """The kernels in the order of their first call, and the entry function."""
        # First, for buffers lie where they do because sizes are multiples.
        for assumption, op in multiples(self.function).items():
            self._require(op, assumption)
        self._keep_states()
        for value, output in zip(self.returned, self.outputs, strict=True):
            # Even an empty output has dimensions to be written once they are known.
            known = all(dim.symbols <= self.static_symbols for dim in ref_type(output).dims.data)
            if known and value not in self._destinations:
                self._aim(value, output, self.function.body.block)
        self._lower_block(self.function.body.block)
        for value, output in zip(self.returned, self.outputs, strict=True):
            if self.refs[value] is not output:
                self._add(entry_ops.CopyOp(self.refs[value], output))
        self._add(kernel.ReturnOp())
        block = self._scopes[0].block
        remove_unused(block)
        function = self.function
        inputs = value_names(function.arg_attrs, len(function.function_type.inputs))
        outputs = value_names(function.res_attrs, len(self.outputs))
        entry = EntryOp(
            inputs,
            outputs,
            Region(block),
            unused=unused_inputs(function),
            states=function.attributes.get(STATES),
            classes=function.attributes.get(CLASSES),
            defaults=defaults_of(function),
        )
        entry.location = function.location
        return [called.over_buffers() for called in self._kernels.values()], entry

    # Helpers

    def _add(self, op: Operation, like: Operation | None = None) -> None:
        if like is not None:
            op.location = like.location
        self._scopes[-1].block.add_op(op)

    @contextmanager
    def _scope(self, types: Sequence[Attribute] = ()) -> Generator[Scope]:
        scope = Scope(Block(arg_types=types))
        self._scopes.append(scope)
        yield scope
        self._add(kernel.YieldOp(scope.yields))
        self._scopes.pop()

    def _alloc(
        self, type_: RefType, *, dynamic: bool = False, unpadded: Expr | None = None
    ) -> SSAValue:
        if not dynamic and not self._is_planned(type_):
            if (room := self._room_for(type_)) is not None:
                return self._part_of_room(room, type_)
            dynamic = True
        op = entry_ops.AllocOp(type_, dynamic=dynamic, unpadded=unpadded)
        self._add(op, self._current)
        if op.dynamic.value.data:
            self._scopes[-1].owned.add(op.result)
        return op.result

    def _room_for(self, type_: RefType) -> RefType | None:
        """The largest size that a buffer can have, if that follows from the input dimensions."""
        dims = [at_most(dim, self._limits, self.static_symbols) for dim in type_.dims.data]
        known = [dim for dim in dims if dim is not None]
        return RefType.of(type_.element, known) if len(known) == len(dims) else None

    def _part_of_room(self, room: RefType, type_: RefType) -> SSAValue:
        view = entry_ops.ViewOp(self._alloc(room), type_)
        self._add(view)
        return view.result

    def _take(self, value: SSAValue, *, copies: bool = False) -> SSAValue:
        """A dynamic buffer of this block that holds a value, and that another owner releases."""
        owned, ref = self._scopes[-1].owned, self.refs[value]
        if copies or ref not in owned:
            ref = self._alloc(_ref(value), dynamic=True)
            self._add(entry_ops.CopyOp(self.refs[value], ref))
        owned.remove(ref)
        return ref

    def _place_owned(self, value: SSAValue, ref: SSAValue) -> None:
        """Control flow has passed on ownership of a value's dynamic buffer."""
        self._scopes[-1].owned.add(ref)
        self._place(value, ref)

    def _is_planned(self, type_: RefType) -> bool:
        """True if the size is known as soon as the input dimensions are."""
        return type_.elements.symbols <= self.static_symbols

    def _buffer_for(self, value: SSAValue, layout: LayoutAttr | None = None) -> SSAValue:
        """The buffer to compute a value in: its destination if it has one, else a new buffer."""
        ref = self._destinations.pop(value, None)
        if ref is None and (place := self._places.parts.get(value)) is not None:
            ref = self._view_of(value, place, layout)
        if ref is None:
            ref = self._alloc(_ref(value, layout), unpadded=product(dims_of(value)))
        self.refs[value] = ref
        return ref

    def _view_of(self, value: SSAValue, place: Place, layout: LayoutAttr | None) -> SSAValue:
        """The part of another value's memory that holds a value."""
        if place.whole not in self.refs:
            owner = place.whole.owner
            assert isinstance(owner, KernelOp)
            self._buffer_for(place.whole, owner.layout_at(len(owner.inputs)))
        view = entry_ops.ViewOp(self.refs[place.whole], _ref(value, layout), place.offset)
        self._add(view)
        return view.result

    def _input(self, op: KernelOp, position: int) -> SSAValue:
        """The buffer of a kernel's input; a constant has the layout that the kernel reads."""
        value, layout = op.inputs[position], op.layout_at(position)
        if not isinstance(value.owner, ConstantOp) or layout.is_row_major:
            return self.refs[value]
        key = (value, layout)
        if key not in self._packed:
            weight = entry_ops.WeightOp(
                value.owner.value, _ref(value, layout), (layout, dims_of(value))
            )
            weight.location = value.owner.location
            # At the start, where every block sees it.
            entry = self._scopes[0].block
            if entry.first_op is None:
                entry.add_op(weight)
            else:
                entry.insert_op_before(weight, entry.first_op)
            self._packed[key] = weight.result
        return self._packed[key]

    def _place(self, value: SSAValue, ref: SSAValue) -> None:
        """`ref` holds a value: it becomes its buffer, or is copied to the value's destination."""
        target = self._destinations.pop(value, None)
        if target is not None:
            self._add(entry_ops.CopyOp(ref, target))
        self.refs[value] = ref if target is None else target

    def _aim(self, value: SSAValue, target: SSAValue, block: Block) -> None:
        """Let the kernel of a block that makes a value write it to `target`, in any shape."""
        self._destinations[value] = target
        reshape = value.owner
        if not isinstance(reshape, ReshapeOp):
            return
        source = reshape.input
        inside = isinstance(source.owner, KernelOp | ReshapeOp) and source.owner.parent is block
        if inside and source not in self._destinations:
            view = entry_ops.ViewOp(target, _ref(source))
            self._add(view)
            self._aim(source, view.result, block)

    def _reshape(self, op: ReshapeOp) -> None:
        """A view, unless what is viewed has been computed in a view of where the result belongs."""
        source, target = self.refs[op.input], self._destinations.get(op.result)
        if target is not None and _views(source, target):
            self.refs[op.result] = self._destinations.pop(op.result)
            return
        view = entry_ops.ViewOp(source, _ref(op.result))
        self._add(view, op)
        self._place(op.result, view.result)

    # Ops

    def _lower_block(self, block: Block) -> None:
        self._places.update(find_places(block, self._divisors))
        for op in block.ops:
            self._current = op
            for assumption in assumptions(op):
                self._check(op, assumption)
            match op:
                case ConstantOp():
                    weight = entry_ops.WeightOp(op.value, _ref(op.result))
                    self._add(weight, op)
                    self._place(op.result, weight.result)
                case ReshapeOp():
                    self._reshape(op)
                case KernelOp() if op.view is not None:
                    self._lower_view(op)
                case KernelOp():
                    self._lower_kernel(op)
                case BindSymbolsOp():
                    self._add(entry_ops.BindOp(self.refs[op.input], op.made_symbols), op)
                case IfOp():
                    self._lower_if(op)
                case LoopOp():
                    self._lower_loop(op)
                case YieldOp() | func.ReturnOp():
                    pass
                case _:
                    raise LoweringError(op, "is not in a kernel; run form-kernels before bufferize")

    def _check(self, op: Operation, assumption: Assumption) -> None:
        if any(assumption in scope.checked for scope in self._scopes):
            return
        if not self._is_certain(*assumption):
            self._require(op, assumption)

    def _require(self, op: Operation, assumption: Assumption) -> None:
        self._scopes[-1].checked.add(assumption)
        self._add(entry_ops.RequireOp(*assumption), op)

    def _is_certain(self, left: Expr, predicate: Requirement, right: Expr) -> bool:
        """True if the relation holds for all possible iteration numbers and sizes of inputs."""
        if predicate not in (Requirement.LE, Requirement.INDEX):
            return self._divisors.settle(left) == self._divisors.settle(right)
        difference = interval(right - left, self._ranges)
        if difference is not None and difference[0] >= 0:
            return True
        if not (left - right).symbols & self._limits.keys():
            return False
        excess = at_most(left - right, self._limits, self.static_symbols)
        return excess is not None and is_never_negative(-excess)

    def _lower_kernel(self, op: KernelOp) -> None:
        for member in op.body.block.ops:
            for assumption in assumptions(member):
                self._check(op, assumption)
        work, named = multiply_adds_of_kernel(op), name_sizes(op)
        called = self._called(op)
        symbols = [named.get(name, Expr.symbol(name)) for name in called.symbols]
        self._call(op, called.name, symbols, work)

    def _called(self, op: KernelOp) -> Called:
        """The first kernel that computes the same."""
        # Accesses beyond the end of an input depend on whether it is a constant.
        key = (nameless_key(op), *map(op.is_constant, range(len(op.inputs))))
        if key not in self._kernels:
            self._kernels[key] = Called.of(op)
        return self._kernels[key]

    def _call(
        self, op: KernelOp, name: str, symbols: Sequence[Expr], work: DimsAttr | None = None
    ) -> None:
        """Call a kernel that computes what `op` does, on the buffers of `op`."""
        changed = None if op.in_place is None else op.in_place.data
        inputs = [self._input(op, k) for k in range(len(op.inputs)) if k != changed]
        outputs = [
            self._buffer_for(result, op.layout_at(len(op.inputs) + number))
            for number, result in enumerate(op.results)
        ]
        moved = bytes_of_update(op)
        self._add(entry_ops.CallOp(name, [*inputs, *outputs], symbols, work, moved), op)

    def _lower_view(self, op: KernelOp) -> None:
        """A slice, or a concatenation whose parts have been computed in place."""
        moved, result = op.moved, op.results[0]
        for assumption in () if moved is None else assumptions(moved):
            self._check(op, assumption)
        layout = op.layout_at(len(op.inputs))
        if (place := self._places.prefixes.get(result)) is not None:
            self._place(result, self._view_of(result, place, layout))
        elif isinstance(moved, SliceOp):
            if (offset := offset_of_slice(op, moved, self._divisors)) is None:
                raise LoweringError(op, "is marked as a view, but its slice has gaps")
            view = entry_ops.ViewOp(self.refs[op.inputs[0]], _ref(result, layout), offset)
            self._add(view, op)
            self._place(result, view.result)

    def _lower_if(self, op: IfOp) -> None:
        fixed, moved = _split(op.made_dims)
        buffers = [self._buffer_for(op.results[k]) for k in fixed]
        regions: list[Region] = []
        for region in op.regions:
            with self._scope() as scope:
                self._lower_block(region.block)
                values = yielded(region)
                for k, buffer in zip(fixed, buffers, strict=True):
                    self._add(entry_ops.CopyOp(self.refs[values[k]], buffer))
                scope.yields = [self._take(values[k]) for k in moved]
            regions.append(Region(scope.block))
        new = entry_ops.IfOp(
            self.refs[op.condition],
            regions[0],
            regions[1],
            result_types=[_ref(op.results[k]) for k in moved],
            result_symbols=op.made_symbols,
        )
        self._add(new, op)
        for k, ref in zip(moved, new.results, strict=True):
            self._place_owned(op.results[k], ref)

    def _lower_loop(self, op: LoopOp) -> None:
        fixed, moved = _split(op.made_dims)
        homes = self._homes(op, fixed)
        fixed = [k for k in fixed if k not in homes]
        slots: list[SSAValue] = []
        for value in (op.inits[k] for k in fixed):
            pair = [self._alloc(_ref(value)), self._alloc(_ref(value))]
            self._add(entry_ops.CopyOp(self.refs[value], pair[0]))
            slots.extend(pair)
        condition = None
        if op.condition is not None:
            condition = self._alloc(RefType.of(i1, []))
            self._add(entry_ops.CopyOp(self._scalar(op.condition), condition))
        scans = self._scan_buffers(op)
        iteration = op.iteration.data if op.iteration else self._symbol("iteration")
        self._ranges[iteration] = (0, _last_iteration(op))
        if (limit := self._limit(op)) is not None:
            self._limits[iteration] = limit - 1
        # Buffers that the loop takes ownership of must not be used after it.
        inits = [op.inits[k] for k in moved]
        owned = [self._take(value, copies=not value.has_one_use()) for value in inits]
        arguments = [op.carried_args[k] for k in (*fixed, *moved)]
        types = [slot.type for slot in slots] + [_ref(value) for value in arguments[len(fixed) :]]
        with self._scope(types) as scope:
            self._number_iteration(op, iteration)
            pairs, own = scope.block.args[: len(slots)], scope.block.args[len(slots) :]
            current, following = pairs[::2], pairs[1::2]
            self.refs.update(zip(arguments, (*current, *own), strict=True))
            nexts = [op.yielded_carried[k] for k in fixed]
            self._yield_to(op, nexts, following)
            self._lower_block(op.body.block)
            for value, target in zip(nexts, following, strict=True):
                if self.refs[value] is not target:
                    self._add(entry_ops.CopyOp(self.refs[value], target))
            self._store_scans(op, scans, Expr.symbol(iteration))
            if condition is not None and op.yielded_condition is not None:
                self._add(entry_ops.CopyOp(self._scalar(op.yielded_condition), condition))
            scope.yields = [self._take(op.yielded_carried[k]) for k in moved]
        loop = entry_ops.LoopOp(
            None if op.trip_count is None else self._scalar(op.trip_count),
            condition,
            slots,
            Region(scope.block),
            iteration=iteration,
            count=op.count.data if op.count else None,
            owned=owned,
            carried_symbols=names_in(op.carried_symbols),
            result_symbols=names_in(op.result_symbols),
        )
        self._add(loop, op)
        for k, ref in (*homes.items(), *zip(fixed, loop.results, strict=False)):
            self._place(op.results[k], ref)
        for k, ref in zip(moved, loop.owned_results, strict=True):
            self._place_owned(op.results[k], ref)
        for result, scan in zip(op.results[len(op.inits) :], scans, strict=True):
            view = entry_ops.ViewOp(scan, _ref(result))
            self._add(view, op)
            self._place(result, view.result)

    def _homes(self, op: LoopOp, fixed: Sequence[int]) -> dict[int, SSAValue]:
        """The memory of carried values that iterations update in place, by their position."""
        homes: dict[int, SSAValue] = {}
        for k in fixed:
            updates = find_updates(op.body.block, op.carried_args[k], op.yielded_carried[k])
            if not updates:
                continue
            homes[k] = self._alloc(_ref(op.inits[k]))
            self._add(entry_ops.CopyOp(self.refs[op.inits[k]], homes[k]))
            self.refs[op.carried_args[k]] = homes[k]
            self._update(updates, homes[k])
        return homes

    def _update(self, updates: Iterable[Update], home: SSAValue) -> None:
        """Let kernels change a buffer in place."""
        for kernel_op, position in updates:
            kernel_op.in_place = IntAttr(position)
            (result,) = kernel_op.results
            target = home
            if (type_ := _ref(result)) != home.type:
                view = entry_ops.ViewOp(home, type_)
                self._add(view)
                target = view.result
            self._destinations[result] = target

    def _keep_states(self) -> None:
        """
        Let kernels that update what the model remembers do so in place: the buffer of the output
        holds at the start what that of the input does.
        """
        block, names = self.function.body.block, self.function.res_attrs
        befores = value_names(self.function.arg_attrs, len(block.args))
        afters = value_names(names, len(self.outputs))
        for before, after, _ in states_in(self.function.attributes.get(STATES)):
            if before not in befores:
                continue
            number = afters.index(after)
            argument, output = block.args[befores.index(before)], self.outputs[number]
            updates = find_updates(block, argument, self.returned[number])
            if updates or self.returned[number] is argument:
                self.refs[argument] = output
                self._update(updates, output)

    def _number_iteration(self, op: LoopOp, iteration: str) -> None:
        """Pass the iteration number to the body as a tensor, if it is used."""
        argument = op.body.block.args[0]
        if not argument.uses:
            return
        # All loops call one kernel, which uses the first loop's name for the iteration number.
        self._number_symbol = self._number_symbol or iteration
        number = FromDimsOp([Expr.symbol(self._number_symbol)], [])
        kernel_op = KernelOp("iteration", [], Region(Block([number, YieldOp([number.result])])))
        kernel_op.location = op.location
        self._call(kernel_op, self._called(kernel_op).name, [Expr.symbol(iteration)])
        self.refs[argument] = self.refs.pop(kernel_op.results[0])

    def _yield_to(
        self, op: LoopOp, values: Sequence[SSAValue], following: Sequence[SSAValue]
    ) -> None:
        """Let the kernel that computes a carried value write it directly to the next slot."""
        for value, target in zip(values, following, strict=True):
            owner = value.owner
            inside = isinstance(owner, KernelOp | ReshapeOp) and owner.parent is op.body.block
            if inside and value not in self._destinations:
                self._aim(value, target, op.body.block)

    def _scalar(self, value: SSAValue) -> SSAValue:
        """The buffer of a tensor of one element, as a scalar."""
        ref = self.refs[value]
        if not ref_type(ref).dims.data:
            return ref
        view = entry_ops.ViewOp(ref, RefType.of(ref_type(ref).element, []))
        self._add(view)
        return view.result

    def _symbol(self, stem: str) -> str:
        self._fresh += 1
        return f"{stem}_{self._fresh}"

    def _scan_buffers(self, op: LoopOp) -> list[SSAValue]:
        """Buffers for the largest possible number of iterations of the loop."""
        if not op.yielded_scans:
            return []
        if (limit := self._limit(op)) is not None and op.count is not None:
            self._limits[op.count.data] = limit
        results = op.results[len(op.inits) :]
        lengths = [self._length(op, dims_of(result)[0], limit) for result in results]
        return [
            self._alloc(RefType.of(element_type(value), [length, *dims_of(value)]))
            for value, length in zip(op.yielded_scans, lengths, strict=True)
        ]

    def _limit(self, op: LoopOp) -> Expr | None:
        """What the number of iterations never exceeds, if that follows from the dimensions."""
        if op.trip_count is None or (trips := _known_scalar(op.trip_count)) is None:
            return None
        if (trips.value or 0) > MAX_TRIPS:
            return None
        return at_most(largest(trips, Expr.const(0)), self._limits, self.static_symbols)

    def _length(self, op: LoopOp, length: Expr, limit: Expr | None) -> Expr:
        """The iterations that a scan output has room for."""
        if length.symbols <= self.static_symbols:
            return length
        if limit is not None:
            return limit
        if op.trip_count is None or constant_array(op.trip_count) is not None:
            raise LoweringError(
                op, "collects scan outputs without a trip count; give the loop a maximum trip count"
            )
        return self._trips(op.trip_count)

    def _trips(self, trip_count: SSAValue) -> Expr:
        name = self._symbol("trips")
        self._add(entry_ops.BindOp(self._scalar(trip_count), [name]))
        return maximum(Expr.symbol(name), 0)

    def _store_scans(self, op: LoopOp, scans: Iterable[SSAValue], iteration: Expr) -> None:
        for value, scan in zip(op.yielded_scans, scans, strict=True):
            dims = dims_of(value)
            part = entry_ops.ViewOp(
                scan, RefType.of(element_type(value), dims), iteration * product(dims)
            )
            self._add(part)
            self._add(entry_ops.CopyOp(self.refs[value], part.result))


def _views(ref: SSAValue, whole: SSAValue) -> bool:
    """True for a buffer that is another one in other dimensions."""
    while isinstance(ref.owner, entry_ops.ViewOp) and ref.owner.offset.data[0] == 0:
        ref = ref.owner.source
        if ref is whole:
            return True
    return False


def _split(made: Sequence[Mapping[int, str]]) -> tuple[list[int], list[int]]:
    """The positions of values that keep their size, and of those that change it."""
    fixed = [k for k, axes in enumerate(made) if not axes]
    return fixed, [k for k, axes in enumerate(made) if axes]


def _ref(value: SSAValue, layout: LayoutAttr | None = None) -> RefType:
    dims = dims_of(value)
    return RefType.of(element_type(value), dims if layout is None else layout.dims(dims))


def _known_scalar(value: SSAValue) -> Expr | None:
    """The only element of an integer tensor, if it is a number or made of dimensions."""
    match value.owner:
        case ConstantOp() as op:
            return Expr.const(int(op.array.reshape(())))
        case KernelOp() as op:
            return _known_scalar(
                yielded(op.body)[next(k for k, each in enumerate(op.results) if each is value)]
            )
        case FromDimsOp() as op:
            return op.values.data[0]
        case ReshapeOp() as op:
            return _known_scalar(op.input)
        case _:
            return None


def _last_iteration(op: LoopOp) -> int:
    """The greatest possible iteration number of a loop."""
    trips = None if op.trip_count is None else constant_array(op.trip_count)
    return _LAST_ITERATION if trips is None else max(int(trips.reshape(())) - 1, 0)


class BufferizePass(ModulePass):
    """
    Assign a buffer to every value.

    Each `core.kernel` becomes calls of a `buffer.kernel`, which says what it computes and which
    layouts its buffers have; identical kernels are merged. `func.func @main` becomes the entry
    function, whose arguments are the inputs and the outputs. Reshapes become views, and so do
    slices and the parts of concatenations that `view-parts` has marked. A carried value has two
    slots that are swapped after each iteration; one that iterations only scatter into, after its
    last read, is updated in place; one that changes its size gets a new buffer from the allocator
    in each iteration, as do results of branches that differ in size. Assumptions of ops about
    dimensions that cannot be proved become `buffer.require` ops.
    """

    name = "bufferize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.body.block.ops):
            if not isinstance(function, func.FuncOp):
                continue
            kernels, entry = Bufferizer(function).run()
            parent = function.parent
            assert parent is not None
            for new in (*kernels, entry):
                parent.insert_op_before(new, function)
            function.detach()
            function.erase()
