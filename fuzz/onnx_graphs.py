"""
Random ONNX graphs, each with inputs for which it is known to be computable.

A graph is built node by node, and each node is computed by a witness as soon as it is made: types
and shapes of all values are those of real arrays, and what a node needs of its inputs (indices in
range, divisors that are not zero) can be looked up. `onnx_nodes` has the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
)

from fuzz.onnx_differences import NOBODY, UNPROMISED, doubt, is_array
from fuzz.onnx_witnesses import Unsupported, evaluate, finfo, names_read, run_node

Array = NDArray[Any]

FIRST_OPSET, LAST_OPSET = 7, 25
_MAX_ELEMENTS = 5000
"""Of a value; a node that gives more is not kept."""

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES: Mapping[str, np.dtype[Any]] = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": BF16,
    **{f"{u}int{bits}": np.dtype(f"{u}int{bits}") for u in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": np.dtype(np.bool_),
}
_WEIGHTS = {"float": 30, "double": 4, "float16": 4, "bfloat16": 2, "int64": 6, "int32": 5}

F32, F64, F16 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)
I64, I32, BOOL = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_)


def is_float(dtype: np.dtype[Any]) -> bool:
    """True for floating-point types, bfloat16 among them."""
    return dtype.kind == "f" or dtype == BF16


@dataclass(frozen=True)
class Program:
    """A model with the inputs that it is to be run on."""

    model: ModelProto
    feed: Mapping[str, Array]
    other: Mapping[str, Array] | None = None
    """Inputs of other sizes, where sizes are symbols."""

    @property
    def opset(self) -> int:
        """The version of the default domain."""
        return self.model.opset_import[0].version


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a graph, and what it holds in the one run."""

    name: str
    array: Any
    """A list where the value is a sequence."""
    is_constant: bool = False
    is_known: bool = True
    """False if nobody says what it is: nothing else is made of it."""


class Skip(Exception):
    """A node cannot be made here: the operator or the type is not in this opset."""


Test = Callable[[Array], bool]
Recipe = Callable[["Builder", str], None]
RECIPES: dict[str, tuple[Recipe, int]] = {}
"""By operator, what makes a node, and how often that is done."""


def recipe(*ops: str, weight: int = 4) -> Callable[[Recipe], Recipe]:
    """Register what makes nodes of some operators."""

    def register(function: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(ops, (function, weight)))
        return function

    return register


def random_program(seed: int, nodes: int = 0) -> Program:
    """The graph of a seed."""
    import_module("fuzz.onnx_nodes")  # registers the recipes
    random = Random(seed)
    opset = random.randint(FIRST_OPSET, LAST_OPSET)
    builder = Builder(random, opset)
    builder.grow(nodes or random.choice((1, 1, 1, 2, 2, 3, 4, 5, 7, 10)))
    return builder.program()


@dataclass(frozen=True)
class Style:
    """What the numbers of a graph are like."""

    specials: float
    """The share of elements that are extreme or not a number."""
    equal: float
    """The share of arrays of which all elements are equal."""
    empty: float
    """The share of dimensions that are 0."""
    large: float
    """The share of dimensions that are longer than a vector."""
    computed: float
    """The share of parameters, such as axes and shapes, that are inputs of the graph."""
    open: float
    """The share of dimensions of inputs that are symbols."""
    declared: float
    """The share of initializers that are inputs, too."""


class Builder:
    """A graph, while it is built, or the body of a node."""

    def __init__(self, random: Random, opset: int, outer: Builder | None = None) -> None:
        self.random = random
        self.opset = opset
        self.outer = outer
        self.root: Builder = self if outer is None else outer.root
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.nodes: list[NodeProto] = []
        self.values: list[Value] = []
        self.inputs: dict[str, Array] = {}
        self.initializers: dict[str, Array] = {}
        self.names = 0
        self.closed: set[str] = set()
        """Inputs of which all dimensions are numbers."""
        if outer is not None:
            self.style = outer.style
        else:
            self.style = Style(
                random.choice((0, 0, 0, 0.05, 0.2)),
                random.choice((0, 0.1, 0.4)),
                random.choice((0, 0, 0, 0, 0.08)),
                random.choice((0, 0, 0.2, 0.4)),
                random.choice((0, 0, 0, 0.15)),
                random.choice((0, 0, 0.5)),
                random.choice((0, 0, 0, 0, 0.5)),
            )

    # The whole

    def grow(self, count: int) -> None:
        """Add about so many nodes."""
        ops = list(RECIPES)
        weights = [weight for _, weight in RECIPES.values()]
        goal = len(self.nodes) + count
        for _ in range(count * 8):
            if len(self.nodes) >= goal:
                return
            (op,) = self.random.choices(ops, weights)
            self.attempt(op)

    def attempt(self, op: str) -> bool:
        """Add a node of an operator, and what it needs; all or nothing."""
        marks = len(self.nodes), len(self.values), dict(self.inputs), dict(self.initializers)
        try:
            RECIPES[op][0](self, op)
        except (Skip, Unsupported):
            del self.nodes[marks[0] :]
            del self.values[marks[1] :]
            self.inputs, self.initializers = marks[2], marks[3]
            return False
        return True

    def program(self) -> Program:
        """The model, with outputs that need most of its nodes."""
        outputs = self.results()
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(
            self.graph("g", outputs, self._open_dims()),
            opset_imports=opsets,
            # Before that, what is an initializer had to be an input, too.
            ir_version=max(4, helper.find_min_ir_version_for(opsets)),
        )
        return Program(model, dict(self.inputs), self._other_sizes(model))

    def _other_sizes(self, model: ModelProto) -> dict[str, Array] | None:
        """Inputs that have other sizes for all symbols; None if nobody computes any such ones."""
        symbols = {name: dims_of(value) for name, value in input_types(model).items()}
        names = [d for dims in symbols.values() for d in dims if isinstance(d, str)]
        for _ in range(3 if names else 0):
            sizes = {name: self.random.choice((2, 3, 4, 5, 7, 9, 17)) for name in names}
            found: dict[str, Array] = {}
            for name, array in self.inputs.items():
                for axis, dim in enumerate(symbols[name]):
                    if isinstance(dim, str):
                        at = np.arange(sizes[dim]) % array.shape[axis]
                        array = np.take(array, at, axis)
                found[name] = array
            with suppress(Unsupported):
                values = evaluate(model, found).values()
                if all(not is_array(v) or v.size <= 4 * _MAX_ELEMENTS for v in values):
                    return found
        return None

    def results(self) -> list[Value]:
        """What nobody uses, and some that are used as well."""
        used = {name for node in self.nodes for name in names_read(node)}
        made = {name for node in self.nodes for name in node.output}
        able = [v for v in self.values if v.name in made and not isinstance(v.array, list)]
        found = [v for v in able if v.name not in used]
        found += [v for v in able if v.name in used and self.random.random() < 0.15]
        return found or able[-1:] or self.values[-1:]

    def graph(
        self, name: str, outputs: Sequence[Value], dims: Mapping[str, Sequence[Any]] | None = None
    ) -> GraphProto:
        """The nodes as a graph."""
        inputs: list[Any] = []
        for key, array in self.inputs.items():
            shape = list(array.shape) if dims is None or key not in dims else list(dims[key])
            inputs.append(helper.make_tensor_value_info(key, type_of(array.dtype), shape))
        results: list[Any] = []
        for value in outputs:
            type_ = type_of(value.array.dtype)
            shape = None if self.outer else output_dims(value.name, value.array.ndim)
            results.append(helper.make_tensor_value_info(value.name, type_, shape))
        initializers = [tensor(key, array) for key, array in self.initializers.items()]
        for value in initializers:
            if dims is not None and self.style.declared and self.chance(self.style.declared):
                # An input that may be left out.
                shape = list(value.dims)
                inputs.append(helper.make_tensor_value_info(value.name, value.data_type, shape))
        return helper.make_graph(self.nodes, name, inputs, results, initializers)

    def _open_dims(self) -> dict[str, list[Any]]:
        """The shapes of inputs, with names for some dimensions; equal names are equal sizes."""
        found: dict[str, list[Any]] = {}
        for name, array in self.inputs.items():
            shape: list[Any] = list(array.shape)
            for axis, size in enumerate(array.shape):
                if axis == 1 and array.ndim > 2 and self.random.random() < 0.8:
                    continue  # mostly channels, of which each has its parameters
                # What is 1 may be broadcast, which a symbol never is.
                if size > 1 and name not in self.closed and self.random.random() < self.style.open:
                    shared = self.random.random() < 0.7
                    shape[axis] = f"n{size}" if shared else f"{name}_{axis}"
            found[name] = shape
        return found

    # Names and leaves

    def name(self, prefix: str = "v") -> str:
        """A new name, of the whole model."""
        self.root.names += 1
        return f"{prefix}{self.root.names}"

    def leaf(self, array: Array, computed: float | None = None) -> Value:
        """An array as an input, an initializer or a node; `computed` is the share of inputs."""
        random = self.random
        share = 0.5 if computed is None else computed
        array = np.asarray(array)
        if self.outer is not None and random.random() < share:
            return self.root_leaf(array)
        if self.outer is None and random.random() < share:
            value = Value(self.name("x"), array)
            self.inputs[value.name] = array
        elif random.random() < (0.25 if self.outer is None else 0.8) and (
            self.opset >= 9 or array.dtype.kind == "f"
        ):
            value = Value(self.name("c"), array, True)
            self.nodes.append(self._constant(value.name, array))
        else:
            value = Value(self.name("w"), array, True)
            self.initializers[value.name] = array
        self.values.append(value)
        return value

    def root_leaf(self, array: Array) -> Value:
        """An input of the model, of which a body makes use."""
        value = Value(self.name("x"), array)
        self.root.inputs[value.name] = array
        self.root.values.append(value)
        return value

    def _constant(self, name: str, array: Array) -> NodeProto:
        if array.size and array.ndim == 1 and (array == array.flat[0]).all() and self.opset >= 9:
            if self.random.random() < 0.5 and array.dtype != BF16:
                shape = self.name("s")
                self.nodes.append(
                    helper.make_node(
                        "Constant", [], [shape], value=tensor("", np.array(array.shape, np.int64))
                    )
                )
                value = tensor("", array[:1])
                return helper.make_node("ConstantOfShape", [shape], [name], value=value)
        return helper.make_node("Constant", [], [name], value=tensor("", array))

    # Numbers

    def shape(self, rank: int | None = None, low: int = 0, high: int = 4) -> tuple[int, ...]:
        """A random shape."""
        random = self.random
        if rank is None:
            rank = min(max(random.choice((0, 1, 1, 2, 2, 3, 3, 4)), low), high)
        shape = [self.dim() for _ in range(rank)]
        while np.prod(shape) > 1200:
            shape[random.randrange(rank)] = random.randint(1, 3)
        return tuple(shape)

    def dim(self) -> int:
        """A random size."""
        random = self.random
        if random.random() < self.style.empty:
            return 0
        if random.random() < self.style.large:
            return random.choice((7, 8, 9, 15, 16, 17, 24, 33))
        return random.choice((1, 2, 2, 3, 3, 4, 5, 6))

    def array(self, dtype: np.dtype[Any], shape: Sequence[int], sane: bool = False) -> Array:
        """Random elements; `sane` ones are small numbers, and rarely no numbers."""
        random = self.random
        rng = np.random.default_rng(random.getrandbits(32))
        shape = tuple(shape)
        if random.random() < self.style.equal:
            one = self._plain(rng, dtype, ())
            return np.full(shape, one, dtype)
        array = self._plain(rng, dtype, shape)
        share = self.style.specials * (0.3 if sane else 1)
        if share and array.size and random.random() < (0.3 if sane else 0.7):
            specials = special_numbers(dtype, sane)
            chosen = rng.random(shape) < share
            picked = specials[rng.integers(0, len(specials), shape)]
            array = np.where(chosen, picked, array).astype(dtype)
        return array

    def _plain(self, rng: Any, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        if dtype.kind == "b":
            return np.asarray(rng.random(shape) < 0.5)
        if not is_float(dtype):
            low = 0 if dtype.kind == "u" else -5
            return np.asarray(rng.integers(low, 8, shape)).astype(dtype)
        if self.random.random() < 0.35:
            return np.asarray(rng.integers(-4, 5, shape) / self.random.choice((1, 2))).astype(dtype)
        return np.asarray(rng.standard_normal(shape) * 1.5).astype(dtype)

    # Choices

    def schema(self, op: str) -> Any:
        """The operator in this opset; Skip if there is none."""
        try:
            found = onnx.defs.get_schema(op, self.opset, "")
        except onnx.defs.SchemaError:
            raise Skip from None
        if found.deprecated:
            raise Skip
        return found

    def types(self, op: str, parameter: str = "T") -> list[np.dtype[Any]]:
        """The element types that an operator allows."""
        for constraint in self.schema(op).type_constraints:
            if constraint.type_param_str == parameter:
                names = [text[7:-1] for text in constraint.allowed_type_strs]
                return [DTYPES[name] for name in names if name in DTYPES]
        raise ValueError(f"{op} has no type {parameter}")

    def dtype(self, op: str, parameter: str = "T", kinds: str = "fiub") -> np.dtype[Any]:
        """One of the element types that an operator allows, mostly f32."""
        able = [t for t in self.types(op, parameter) if ("f" if is_float(t) else t.kind) in kinds]
        if not able:
            raise Skip
        weights = [_WEIGHTS.get(name_of(t), 2) for t in able]
        return self.random.choices(able, weights)[0]

    def visible(self) -> Iterator[Value]:
        """The values that a node may use."""
        builder: Builder | None = self
        while builder is not None:
            yield from builder.values
            builder = builder.outer

    def pick(
        self,
        dtype: np.dtype[Any],
        shape: Sequence[int] | None = None,
        *,
        low: int = 0,
        high: int = 4,
        sane: bool = False,
        test: Test | None = None,
        make: Callable[[], Array] | None = None,
        computed: float | None = None,
        closed: bool = False,
    ) -> Value:
        """
        A value of a type with a shape or a rank in bounds: one that is there, or a new one. What is
        `closed` is one of known size.
        """
        random = self.random
        able = [
            v
            for v in self.visible()
            if v.is_known
            and not isinstance(v.array, list)
            and v.array.dtype == dtype
            and (low <= v.array.ndim <= high if shape is None else v.array.shape == tuple(shape))
            and (not sane or is_sane(v.array))
            and (test is None or test(v.array))
            and not (closed and self.style.open)
        ]
        if able and random.random() < 0.75:
            # Each builder's values stand in the order in which they were made.
            return random.choice(able[-4:]) if random.random() < 0.6 else random.choice(able)
        for _ in range(20):
            size = self.shape(None, low, high) if shape is None else tuple(shape)
            array = self.array(dtype, size, sane) if make is None else make()
            if test is None or test(array):
                value = self.leaf(array, computed)
                if closed:
                    self.root.closed.add(value.name)
                return value
        raise Skip

    def parameter(self, array: Any, dtype: Any = np.int64) -> str:
        """A small array that says what a node does; mostly a constant."""
        value = self.leaf(np.asarray(array, dtype), self.style.computed)
        self.root.closed.add(value.name)
        return value.name

    def chance(self, probability: float) -> bool:
        """True in that share of cases."""
        return self.random.random() < probability

    def mostly(self, test: Test, probability: float = 0.7) -> Test | None:
        """A condition on what is judged: in that share of cases, and in bodies always."""
        return test if self.outer is not None or self.chance(probability) else None

    def broadcast(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to another one."""
        shape = tuple(shape)[self.random.choice((0, 0, 0, 1, 2)) :]
        return tuple(1 if self.chance(0.2) else size for size in shape)

    def axis(self, rank: int) -> int:
        """An axis, sometimes counted from the end (from opset 11 on)."""
        if not rank:
            raise Skip
        found = self.random.randrange(rank)
        return found - rank if self.opset >= 11 and self.chance(0.3) else found

    # Nodes

    def node(
        self,
        op: str,
        inputs: Sequence[Value | str | None],
        outputs: int = 1,
        absent: Sequence[int] = (),
        **attributes: Any,
    ) -> list[Value]:
        """
        Add a node and give its results.

        Attributes that are None are left out; with `absent` so are these outputs. Unsupported if no
        witness computes it.
        """
        self.schema(op)
        names = ["" if x is None else x if isinstance(x, str) else x.name for x in inputs]
        while names and not names[-1]:
            names.pop()
        given = {key: value for key, value in attributes.items() if value is not None}
        results = ["" if k in absent else self.name() for k in range(outputs)]
        while results and not results[-1]:
            results.pop()
        node = helper.make_node(op, names, results, **given)
        node.name = f"{op}_{results[0] if results[0] else self.name()}"
        arrays = {v.name: v.array for v in self.visible()}
        values = run_node(node, self.opset, arrays)
        is_known = not any(doubt(who, node, self.opset, arrays) for who in (NOBODY, UNPROMISED))
        if not is_known and self.outer is not None:
            raise Skip
        pairs = zip(results, values, strict=True)
        made = [Value(name, array, is_known=is_known) for name, array in pairs]
        for value in made:
            if is_array(value.array) and value.array.size > _MAX_ELEMENTS:
                raise Skip
        self.nodes.append(node)
        self.values += [value for value in made if value.name]
        return made


# Arrays


def output_dims(name: str, rank: int) -> list[str]:
    """The shape of an output of which only the rank is said."""
    return [f"{name}_{axis}" for axis in range(rank)]


def input_types(model: ModelProto) -> dict[str, ValueInfoProto]:
    """The inputs that have to be given, by name."""
    given = {value.name for value in model.graph.initializer}
    return {value.name: value for value in model.graph.input if value.name not in given}


def dims_of(value: ValueInfoProto) -> list[int | str]:
    """The sizes of a tensor, and the names of those that are symbols."""
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def name_of(dtype: np.dtype[Any]) -> str:
    """What onnx calls an element type."""
    return next(name for name, found in DTYPES.items() if found == dtype)


def type_of(dtype: np.dtype[Any]) -> int:
    """The number of an element type."""
    return helper.np_dtype_to_tensor_dtype(dtype)


def tensor(name: str, array: Array) -> TensorProto:
    """An array as the model has it."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    return helper.make_tensor(name, type_of(array.dtype), array.shape, array.tobytes(), raw=True)


def is_sane(array: Array) -> bool:
    """True if sums of products of the elements do not overflow, nor drown other ones."""
    with np.errstate(all="ignore"):
        wide = np.abs(array.astype(np.float64))
        wide = wide[np.isfinite(wide)]
    return not wide.size or float(wide.max()) < (
        16 if is_float(array.dtype) and array.dtype.itemsize == 2 else 1e3
    )


def special_numbers(dtype: np.dtype[Any], sane: bool) -> Array:
    """The elements that most things go wrong with."""
    if dtype.kind == "b":
        return np.array([False, True])
    if not is_float(dtype):
        limits = np.iinfo(dtype)
        if sane:
            return np.array([0, 1, 100, 127], dtype)
        return np.array([limits.min, limits.max, 0, 1, limits.max - 1], dtype)
    limits = finfo(dtype)
    numbers = [np.nan, np.inf, -np.inf, -0.0, 0.0, float(limits.smallest_subnormal), 0.5, -1.5]
    if not sane:
        numbers += [float(limits.tiny), -float(limits.max), float(limits.max), 1e-6, 2.5]
    return np.array(numbers).astype(dtype)


@dataclass(frozen=True)
class Body:
    """The body of a node, ready to be an attribute."""

    graph: GraphProto
    outputs: Sequence[Value] = field(default_factory=tuple[Value, ...])
