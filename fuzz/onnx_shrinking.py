"""Smaller ONNX graphs of the same outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from fuzz.fuzzing import Outcome
from fuzz.onnx_graphs import Program, is_float, output_dims, tensor, type_of
from fuzz.onnx_witnesses import Unsupported, evaluate, initial
from lowerdeck.tools.shrink_onnx import pruned, simpler_nodes

Check = Callable[[Program, int], Outcome]
_MAX_TRIALS = 120


def key(outcome: Outcome) -> str:
    """What has to stay the same: of a wrong value, who computes it."""
    if outcome.status == "wrong":
        return f"wrong {outcome.message.partition(':')[0]}"
    return outcome.kind


def shrink(program: Program, outcome: Outcome, check: Check) -> tuple[Program, Outcome]:
    """A smaller graph with the same outcome, as small as single steps lead to."""
    trials, changed = 0, True
    while changed and trials < _MAX_TRIALS:
        changed = False
        for candidate in _smaller(program):
            if not _is_computable(candidate):
                continue
            trials += 1
            if trials > _MAX_TRIALS:
                break
            found = check(candidate, outcome.seed)
            if key(found) == key(outcome):
                program, outcome, changed = candidate, found, True
                break
    return program, outcome


def _is_computable(program: Program) -> bool:
    try:
        evaluate(program.model, program.feed)
    except Unsupported:
        return False
    return True


def _smaller(program: Program) -> Iterator[Program]:
    """Graphs that are smaller by a little, those first that are smaller by much."""
    model = program.model
    if program.other is not None:
        yield Program(model, program.other)
        yield Program(model, program.feed)
    try:
        env = evaluate(model, program.feed)
    except Unsupported:
        return
    outputs = list(model.graph.output)
    for output in outputs if len(outputs) > 1 else ():
        changed = _copy(model)
        changed.graph.ClearField("output")
        changed.graph.output.append(output)
        yield _needed(Program(changed, program.feed))
    if len(model.graph.node) > 1:
        for at, node in enumerate(model.graph.node):
            values = [env[name] for name in node.output if name]
            if any(isinstance(value, list) for value in values):
                continue
            yield _cut(program, at, env)
            for name, value in zip([n for n in node.output if n], values, strict=True):
                if name in {o.name for o in outputs}:
                    continue
                # What is read here may be a result, too.
                changed = _copy(model)
                changed.graph.ClearField("output")
                changed.graph.output.append(
                    helper.make_tensor_value_info(
                        name, type_of(value.dtype), output_dims(name, value.ndim)
                    )
                )
                yield _needed(Program(changed, program.feed))
    yield from _simpler_nodes(program)
    yield from _simpler_inputs(program)


def _copy(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def _cut(program: Program, at: int, env: Any) -> Program:
    """The graph in which the results of a node are inputs."""
    changed = _copy(program.model)
    node = changed.graph.node[at]
    made = [name for name in node.output if name]
    del changed.graph.node[at]
    feed = dict(program.feed)
    for name in made:
        changed.graph.input.append(_input(name, env[name]))
        feed[name] = env[name]
    kept = [output for output in changed.graph.output if output.name not in made]
    changed.graph.ClearField("output")
    changed.graph.output.extend(kept)
    return _needed(Program(changed, feed))


def _input(name: str, value: Any) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, type_of(value.dtype), list(value.shape))


def _needed(program: Program) -> Program:
    """The graph without what its outputs do not need."""
    model = pruned(program.model)
    names = {value.name for value in model.graph.input}
    feed = {name: value for name, value in program.feed.items() if name in names}
    return Program(model, feed)


def _simpler_nodes(program: Program) -> Iterator[Program]:
    """Attributes and optional inputs left out."""
    for model in simpler_nodes(program.model):
        yield _needed(Program(model, program.feed))


def _simpler_inputs(program: Program) -> Iterator[Program]:
    """Dimensions without names, fewer and rounder numbers."""
    for at, value in enumerate(program.model.graph.input):
        if value.name not in program.feed:
            continue
        array = program.feed[value.name]
        if any(dim.dim_param for dim in value.type.tensor_type.shape.dim):
            changed = _copy(program.model)
            changed.graph.input[at].CopyFrom(_input(value.name, array))
            yield Program(changed, program.feed)
    env = initial(program.model, program.feed)
    for name, array in env.items():
        if not is_float(array.dtype) or not array.size:
            continue
        with np.errstate(all="ignore"):
            wide: Any = array.astype(np.float64)
            numbers: Any = np.where(np.isfinite(wide), wide, 0.0)
            rounded: Any = numbers.round().clip(-4, 4)
            for k in range(4):
                other: Any = (0 * rounded, 0 * rounded + 1, rounded, wide.round(1))[k]
                if not np.array_equal(other.astype(array.dtype), array, equal_nan=True):
                    yield _replaced(program, name, other.astype(array.dtype))


def _replaced(program: Program, name: str, array: Any) -> Program:
    if name in program.feed:
        return Program(program.model, {**program.feed, name: array})
    changed = _copy(program.model)
    for value in changed.graph.initializer:
        if value.name == name:
            value.CopyFrom(tensor(name, array))
    return Program(changed, program.feed)
