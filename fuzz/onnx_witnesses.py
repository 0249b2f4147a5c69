"""
What other implementations say of an ONNX graph: onnx.reference and onnxruntime, node by node.

Neither is right always: a node of which `onnx_differences` says that one of them does something
else than the specification has the other one as its witness.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import erf
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from fuzz.onnx_differences import NOBODY, UNPROMISED, doubt, is_array

Array: TypeAlias = NDArray[Any]
Env: TypeAlias = Mapping[str, Any]


class Unsupported(Exception):
    """A witness does not compute a node."""


def type_proto(array: Any) -> TypeProto:
    """The type of a value."""
    if isinstance(array, list):
        items = cast("list[Array]", array)
        if not items:
            return helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
        return helper.make_sequence_type_proto(
            helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(items[0].dtype), None)
        )
    dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_type_proto(dtype, list(array.shape))


def node_model(node: NodeProto, opset: int, env: Env) -> ModelProto:
    """A model of one node, with what it uses as inputs."""
    used = [name for name in dict.fromkeys(free_names(node)) if name in env]
    inputs = [helper.make_value_info(name, type_proto(env[name])) for name in used]
    outputs = [helper.make_value_info(name, TypeProto()) for name in node.output if name]
    graph = helper.make_graph([node], "g", inputs, outputs)
    opsets = [helper.make_opsetid("", opset)]
    version = helper.find_min_ir_version_for(opsets)
    return helper.make_model(graph, opset_imports=opsets, ir_version=version)


def free_names(node: NodeProto) -> list[str]:
    """The names that a node uses and does not make itself."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.type != onnx.AttributeProto.GRAPH:
            continue
        graph = attribute.g
        made = {value.name for value in graph.input} | {t.name for t in graph.initializer}
        for inner in graph.node:
            found += [name for name in free_names(inner) if name not in made]
            made.update(inner.output)
        found += [value.name for value in graph.output if value.name not in made]
    return found


def run_node(node: NodeProto, opset: int, env: Env) -> list[Any]:
    """The outputs of a node, None where one is absent, by whoever computes it."""
    try:
        return reference_node(node, opset, env)
    except Unsupported:
        return onnxruntime_node(node, opset, env)


def reference_node(node: NodeProto, opset: int, env: Env) -> list[Any]:
    """The outputs of a node by onnx.reference; Unsupported if it fails, or is known to be wrong."""
    if node.op_type == "Erf" and env[node.input[0]].dtype == np.float64:
        return [np.asarray(np.vectorize(erf, [np.float64])(env[node.input[0]]))]
    if cause := doubt("reference", node, opset, env):
        raise Unsupported(cause)
    model = node_model(node, opset, env)
    feed = {value.name: env[value.name] for value in model.graph.input}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            evaluator: Any = ReferenceEvaluator(model)
            found: Any = evaluator.run(None, feed)
        except Exception as error:  # whatever it is, it is no witness
            raise Unsupported(f"{type(error).__name__}: {error}") from None
    return _checked(node, opset, env, _placed(node, [_plain(value) for value in found]))


def _checked(node: NodeProto, opset: int, env: Env, values: list[Any]) -> list[Any]:
    """The values in the types that the operator has; Unsupported if they are none of these."""
    types = inferred(node, opset, env)
    for k, (value, name) in enumerate(zip(values, node.output, strict=True)):
        type_ = types.get(name)
        if type_ is None or not type_.HasField("tensor_type") or not is_array(value):
            continue
        tensor = type_.tensor_type
        if tensor.elem_type:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            if value.dtype != dtype:
                if not _is_number(value.dtype) or not _is_number(dtype):
                    raise Unsupported(f"a result is {value.dtype}, expected {dtype}")
                with np.errstate(all="ignore"):
                    values[k] = value.astype(dtype)
        if tensor.HasField("shape"):
            dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
            fits = [d in (None, size) for d, size in zip(dims, value.shape)]
            if len(dims) != value.ndim or not all(fits):
                raise Unsupported(f"a result is {list(value.shape)}, expected {dims}")
    return values


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def inferred(node: NodeProto, opset: int, env: Env) -> Mapping[str, TypeProto]:
    """The types of results by the inference of onnx, as far as it gets."""
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    used = [name for name in dict.fromkeys(free_names(node)) if name in env]
    types = {name: type_proto(env[name]) for name in used}
    data = {
        name: numpy_helper.from_array(env[name])
        for name in used
        if is_array(env[name]) and env[name].size < 16
    }
    opsets = [helper.make_opsetid("", opset)]
    try:
        return onnx.shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=opsets, ir_version=10
        )
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        if "Constant" in str(error):  # the body of a function, which is of another opset
            return {}
        raise Unsupported(f"inference: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [np.asarray(item) for item in cast("list[Any]", value)]
    if value is None:
        raise Unsupported("a result is None")
    return np.asarray(value)


def _placed(node: NodeProto, found: Sequence[Any]) -> list[Any]:
    left = iter(found)
    return [next(left) if name else None for name in node.output]


# onnxruntime


@cache
def _settings() -> Any:
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    runtime: Any = onnxruntime
    runtime.set_default_logger_severity(4)
    settings = runtime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return settings


def onnxruntime_model(model: ModelProto, feed: Env) -> list[Any]:
    """The outputs of a model by onnxruntime; Unsupported if it fails."""
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    if any(not isinstance(v, list) and v.dtype == ml_dtypes.bfloat16 for v in feed.values()):
        raise Unsupported("bfloat16")
    runtime: Any = onnxruntime
    try:
        session = runtime.InferenceSession(
            model.SerializeToString(), _settings(), providers=["CPUExecutionProvider"]
        )
        used = {value.name for value in session.get_inputs()}
        return session.run(None, {name: feed[name] for name in used})
    except Exception as error:  # whatever it is, it is no witness
        raise Unsupported(f"{type(error).__name__}: {error}") from None


def onnxruntime_node(node: NodeProto, opset: int, env: Env) -> list[Any]:
    """The outputs of a node by onnxruntime; Unsupported if it fails, or is known to be wrong."""
    if cause := doubt("onnxruntime", node, opset, env):
        raise Unsupported(cause)
    model = node_model(node, opset, env)
    feed = {value.name: env[value.name] for value in model.graph.input}
    values = _placed(node, [_plain(value) for value in onnxruntime_model(model, feed)])
    return _checked(node, opset, env, values)


# What is right


def close(found: Any, want: Any, spread: Any = 0.0) -> bool:
    """True if a value is another one but for rounding, or differs by 16 times `spread` at most."""
    if isinstance(want, list) or isinstance(found, list):
        sequences = cast("list[list[Any]]", [found, want])
        if any(type(value) is not list for value in sequences) or len(sequences[0]) != len(
            sequences[1]
        ):
            return False
        return all(close(a, b) for a, b in zip(*sequences, strict=True))
    if (found.dtype, found.shape) != (want.dtype, want.shape):
        return False
    if found.dtype.kind in "biu":
        return bool(((found == want) | (np.asarray(spread) > 0)).all())
    unit = unit_of(found.dtype)
    with np.errstate(all="ignore"):
        a, b = found.astype(np.float64), want.astype(np.float64)
        finite = np.abs(b[np.isfinite(b)])
        # What is small beside its neighbors may be what two large ones left.
        scale = min(float(finite.max(initial=0.0)), 1e30)
        allowed = 32 * unit * np.abs(b) + 8 * unit * scale + 16 * np.asarray(spread)
        allowed = allowed + 4 * float(finfo(found.dtype).smallest_subnormal)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed)
        same |= np.isinf(np.asarray(spread)) | _at_limit(a, b, found.dtype)
    return bool(same.all())


def _is_same(found: Any, want: Any) -> bool:
    """True if nothing is different, not even by rounding; zeros may be of either sign."""
    if isinstance(want, list) or isinstance(found, list):
        return close(found, want)
    if (found.dtype, found.shape) != (want.dtype, want.shape):
        return False
    return bool(((found == want) | ((found != found) & (want != want))).all())


def _at_limit(a: Any, b: Any, dtype: Any) -> Any:
    """Where one is the largest number but for rounding, and the other infinite."""
    limit = float(finfo(dtype).max)
    large = np.minimum(np.abs(a), np.abs(b)) >= limit * (1 - 64 * unit_of(dtype))
    return large & (np.sign(a) == np.sign(b)) & (np.isinf(a) | np.isinf(b))


def finfo(dtype: Any) -> Any:
    """The limits of a floating-point type."""
    return cast(Any, ml_dtypes).finfo(dtype)


def unit_of(dtype: Any) -> float:
    """Half the distance of one to the next number, doubled: eps."""
    return float(finfo(dtype).eps)


EXACT = frozenset(
    "Abs Ceil Floor Neg Relu Round Sign BitwiseNot Not Identity IsInf IsNaN Max Min Equal "
    "Greater Less GreaterOrEqual LessOrEqual And Or Xor BitwiseAnd BitwiseOr BitwiseXor "
    "BitShift Where Clip ReduceMax ReduceMin ArgMax ArgMin Hardmax Reshape Flatten Squeeze "
    "Unsqueeze Transpose Concat Split Slice Pad Tile Expand Shape Size Gather GatherElements "
    "Scatter ScatterElements GatherND ScatterND OneHot EyeLike ConstantOfShape Constant Trilu "
    "DepthToSpace SpaceToDepth ReverseSequence Compress NonZero TopK Unique CenterCropPad "
    "MatMulInteger ConvInteger MaxPool GlobalMaxPool MaxUnpool MaxRoiPool Dropout TensorScatter "
    "SequenceConstruct SequenceInsert SequenceAt SequenceLength ConcatFromSequence "
    "SplitToSequence Cast CastLike".split()
)
"""Operators whose results are not rounded, or in one way only."""

EITHER_ZERO = frozenset(
    "Max Min ReduceMax ReduceMin Clip Relu MaxPool GlobalMaxPool MaxUnpool MaxRoiPool".split()
)
"""Of these, zeros of either sign may come out where there are both."""

_MIXED = frozenset(
    "GroupNormalization InstanceNormalization LayerNormalization MeanVarianceNormalization "
    "GRU LSTM RNN".split()
)
"""
Operators that take a mean away, of which only the rounding is left where all is constant, or that
mix all they read: what rounding does to one result it may do to any.
"""

_LEFT_OVERS = frozenset(
    "HannWindow HammingWindow BlackmanWindow Celu Elu Selu Gelu GRU LSTM".split()
)
"""Operators whose results are what is left of sums of about one, whatever they read."""


def evaluate(model: ModelProto, feed: Env) -> dict[str, Any]:
    """All values of a graph by whoever computes each node first; Unsupported if nobody does."""
    env = initial(model, feed)
    for node in model.graph.node:
        values = run_node(node, model.opset_import[0].version, env)
        env.update({k: v for k, v in zip(node.output, values, strict=True) if k})
    return env


def initial(model: ModelProto, feed: Env) -> dict[str, Any]:
    """Inputs and initializers."""
    env = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return env | dict(feed)


Runner = Callable[[NodeProto, int, Env], list[Any]]
_TRIALS = 16


class Judgement:
    """What each value of a graph is, by those witnesses that are right of each node."""

    def __init__(self, model: ModelProto, feed: Env, *, by_runtime: bool = False) -> None:
        """Where the two differ, onnx.reference is believed; or, `by_runtime`, onnxruntime."""
        self.model, self.feed, self._by_runtime = model, feed, by_runtime
        self.opset = model.opset_import[0].version
        self.undecided: list[str] = []
        """Operators of which witnesses differ, and nobody knows who is right."""
        self._runs: list[Runner] = []
        self.values = self._decide()
        self._spreads: dict[str, Any] | None = None

    def _decide(self) -> dict[str, Any]:
        env = initial(self.model, self.feed)
        for node in self.model.graph.node:
            run = self._choose(node, env)
            self._runs.append(run)
            values = run(node, self.opset, env)
            env.update({k: v for k, v in zip(node.output, values, strict=True) if k})
        return env

    def _choose(self, node: NodeProto, env: Env) -> Runner:
        """Who is right of a node."""
        precise = wide_node if has_half(node, env) and node.op_type not in EXACT else reference_node
        try:
            by_reference = precise(node, self.opset, env)
        except Unsupported:
            if precise is reference_node:
                return onnxruntime_node
            precise = reference_node
            try:
                by_reference = precise(node, self.opset, env)
            except Unsupported:
                return onnxruntime_node
        if doubt(NOBODY, node, self.opset, env) or doubt(UNPROMISED, node, self.opset, env):
            return precise
        try:
            by_runtime = onnxruntime_node(node, self.opset, env)
        except Unsupported:
            return precise
        alike = _is_same if node.op_type in EXACT else close
        pairs = zip(by_reference, by_runtime, strict=True)
        if all(a is None or alike(a, b) for a, b in pairs):
            return precise
        if node.op_type not in EXACT:
            spreads = _node_spreads(precise, node, self.opset, env, by_reference)
            places = zip(by_reference, by_runtime, spreads, strict=True)
            if all(a is None or close(b, a, spread) for a, b, spread in places):
                return onnxruntime_node if self._by_runtime else precise
        self.undecided.append(node.op_type)
        return onnxruntime_node if self._by_runtime else precise

    def spread(self, name: str) -> Any:
        """How far rounding leads a value astray, by trial."""
        if self._spreads is None:
            self._spreads = self._find_spreads()
        return self._spreads.get(name, 0.0)

    def _find_spreads(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        nodes = self.model.graph.node
        alike = {name for node in nodes if node.op_type in _MIXED for name in node.output}
        for trial in range(_TRIALS):
            noisy = self._with_noise(np.random.default_rng(trial))
            for name, value in self.values.items():
                distance = _distance(noisy.get(name), value)
                if name in alike:
                    # The rounding of a mean is that of all that it is taken away from.
                    distance = np.max(distance, initial=0.0, where=np.isfinite(distance))
                found[name] = np.maximum(found.get(name, 0.0), distance)
        return found

    def _with_noise(self, rng: Any) -> dict[str, Any]:
        """All values, as rounding errors that are drawn might make them."""
        env = initial(self.model, self.feed)
        for node, run in zip(self.model.graph.node, self._runs, strict=True):
            exact = node.op_type in EXACT
            try:
                values = (
                    run(node, self.opset, env)
                    if exact
                    else _shaken(run, node, self.opset, env, rng)
                )
            except Unsupported:
                values = [None] * len(node.output)
            for name, value in zip(node.output, values, strict=True):
                if name and value is not None:
                    env[name] = value if exact else _noisy(value, rng)
            if any(v is None and k for k, v in zip(node.output, values, strict=True)):
                return env
        return env

    def accepts(self, name: str, found: Any) -> bool:
        """True if a value is right."""
        return self.agree(name, found, self.values[name])

    def agree(self, name: str, found: Any, want: Any) -> bool:
        """True if what two ways give for a value is the same but for rounding."""
        return close(found, want) or close(found, want, self.spread(name))


def _shaken(run: Runner, node: NodeProto, opset: int, env: Env, rng: Any) -> list[Any]:
    """
    The outputs of a node with rounding errors in what it reads, others in each place where it reads
    a value.
    """
    changed, given = NodeProto(), dict(env)
    changed.CopyFrom(node)
    if node.op_type == "Resize" and env[node.input[0]].dtype.kind in "iu":
        return _with_ties(run, node, opset, env, rng)
    for name in set(names_read(node)) & env.keys() - set(node.input):
        given[name] = _noisy(env[name], rng)
    for k, name in enumerate(node.input):
        if name:
            changed.input[k] = f"{name}/{k}"
            given[changed.input[k]] = _noisy(env[name], rng)
    found = run(changed, opset, given)
    if node.op_type in _LEFT_OVERS:
        found = [
            v if v is None else (v + unit_of(v.dtype) * rng.uniform(-1, 1, v.shape)).astype(v.dtype)
            for v in found
        ]
    return found


def _with_ties(run: Runner, node: NodeProto, opset: int, env: Env, rng: Any) -> list[Any]:
    """The integers of a Resize, those between two of them on either side."""
    x = env[node.input[0]]
    (wide,) = run(node, opset, {**env, node.input[0]: x.astype(np.float64)})
    with np.errstate(all="ignore"):
        aside = rng.choice([-1e-5, 1e-5], wide.shape) * np.maximum(np.abs(wide), 1)
        return [np.rint(wide + aside).astype(x.dtype)]


def _node_spreads(
    run: Runner, node: NodeProto, opset: int, env: Env, values: Sequence[Any]
) -> list[Any]:
    """How far rounding of what a node reads leads its results astray."""
    spreads: list[Any] = [0.0] * len(values)
    for trial in range(_TRIALS):
        rng = np.random.default_rng(trial)
        try:
            noisy = _shaken(run, node, opset, env, rng)
        except Unsupported:
            continue
        for k, (a, value) in enumerate(zip(noisy, values, strict=True)):
            spreads[k] = np.maximum(spreads[k], _distance(a, value))
    return spreads


def has_half(node: NodeProto, env: Env) -> bool:
    """True if a node reads 16-bit floats."""
    return any(_is_half(env[name]) for name in node.input if name in env)


def _is_half(value: Any) -> bool:
    return is_array(value) and value.dtype.name in ("float16", "bfloat16")


def wide_node(node: NodeProto, opset: int, env: Env) -> list[Any]:
    """The reference's outputs of a node of 16-bit floats, rounded once."""
    wide = {k: v.astype(np.float32) if _is_half(v) else v for k, v in env.items()}
    if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
        raise Unsupported("a body has types of its own")
    found = reference_node(node, opset, wide)
    return _checked(node, opset, env, found)


def _noisy(value: Any, rng: Any) -> Any:
    if not is_array(value) or value.dtype.kind in "biu":
        return value
    with np.errstate(all="ignore"):
        factor = 1 + 2 * unit_of(value.dtype) * rng.uniform(-1, 1, value.shape)
        return np.asarray(value.astype(np.float64) * factor).astype(value.dtype)


def _distance(noisy: Any, value: Any) -> Any:
    if not is_array(value) or not is_array(noisy):
        return 0.0 if type(noisy) is type(value) else np.inf
    if noisy.shape != value.shape:
        return np.inf
    with np.errstate(all="ignore"):
        a, b = noisy.astype(np.float64), value.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        distance = np.where(same, 0.0, np.abs(a - b))
        return np.where(np.isnan(distance), np.inf, distance)


# Bodies


def names_read(node: NodeProto) -> Iterator[str]:
    """The names that a node uses, those in its bodies included."""
    yield from node.input
    for attribute in node.attribute:
        for graph in graphs_of(attribute):
            for inner in graph.node:
                yield from names_read(inner)
            yield from (output.name for output in graph.output)


def graphs_of(attribute: AttributeProto) -> Iterator[GraphProto]:
    """The graphs of an attribute."""
    if attribute.type == AttributeProto.GRAPH:
        yield attribute.g
    yield from attribute.graphs
