"""Recurrent operators on quantized numbers."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.activation import Activation, activation
from lowerdeck.frontends.onnx.contrib.definition import Call, defines, number, scales


def _activations(call: Call, directions: int) -> list[list[Activation]]:
    """Those of each direction; alphas and betas belong to those that have some, in order."""
    names = call.strings("activations") or ["sigmoid", "tanh", "tanh"] * directions
    if len(names) != 3 * directions:
        raise ValueError(f"found {len(names)} activations, expected {3 * directions}")
    alphas, betas = iter(call.floats("activation_alpha")), iter(call.floats("activation_beta"))
    found = [activation(name, alphas, betas) for name in names]
    return [found[3 * k : 3 * k + 3] for k in range(directions)]


@defines(
    """DynamicQuantizeLSTM <
      activation_alpha: floats = [], activation_beta: floats = [], activations: strings = [],
      clip: float = 0.0, direction: string = "forward", hidden_size: int = 0, input_forget: int = 0
    > (
      X, W, R, B, sequence_lens, initial_h, initial_c, P, W_scale, W_zero, R_scale, R_zero
    ) => (Y, Y_h, Y_c)"""
)
def dynamic_quantize_lstm(call: Call) -> str:
    """
    An LSTM whose input, all steps together, and whose output, at each step that of the whole batch,
    are quantized before they are multiplied with weights. What sequences that are over had as
    input and output counts for no range; their states are those of their last step.
    """
    direction = call.string("direction", "forward", "reverse", "bidirectional")
    reversals = {"forward": [False], "reverse": [True]}.get(direction, [False, True])
    activations = _activations(call, len(reversals))
    parts = [
        _SHARED,
        scales("W_scale", "R_scale"),
        _MASKED_INPUT if call.has("sequence_lens") else "x = Identity (X)",
        _QUANTIZED,
    ]
    for k, is_reverse in enumerate(reversals):
        parts.append(_direction(call, str(k), activations[k], is_reverse=is_reverse))
    columns = {"Y": "along", "Y_h": "first", "Y_c": "first"}
    for name, axes in columns.items():
        if not call.wants(name):
            continue
        rows = [f"{name}_row{k}" for k in range(len(reversals))]
        parts += [f"{row} = Unsqueeze ({name}_{k}, {axes})" for k, row in enumerate(rows)]
        axis = int(axes == "along")
        parts.append(f"{name} = Concat <axis = {axis}> ({', '.join(rows)})")
    return "\n".join(parts)


_SHARED = """
zero = Constant <value_float = 0.0> ()
one = Constant <value_float = 1.0> ()
first = Constant <value_ints = [0]> ()
along = Constant <value_ints = [1]> ()
both = Constant <value_ints = [1, 2]> ()
batch = Shape <start = 1, end = 2> (X)
hidden = Shape <start = 1, end = 2> (R)
sizes = Concat <axis = 0> (batch, hidden)
"""

_MASKED_INPUT = """
lengths = Cast <to = 7> (sequence_lens)
longest = ReduceMax <keepdims = 0> (lengths)
from = Constant <value_int = 0> ()
by = Constant <value_int = 1> ()
count = Shape <start = 0, end = 1> (X)
time = Squeeze (count, first)
steps = Range (from, time, by)
is_read = Less (steps, longest)
is_part = Unsqueeze (is_read, both)
x = Where (is_part, X, zero)
is_empty = Equal (lengths, from)
is_never = Unsqueeze (is_empty, along)
"""

_QUANTIZED = "q, q_scale, q_zero = DynamicQuantizeLinear (x)"


def _direction(call: Call, k: str, activations: list[Activation], *, is_reverse: bool) -> str:
    """The outputs Y_{k}, Y_h_{k} and Y_c_{k} of one direction."""
    names = [name for name in ("W", "R", "B", "P") if name in "WR" or call.has(name)]
    names += ["W_scale_number", "W_zero", "R_scale_number", "R_zero"]
    parts = [f"index_{k} = Constant <value_int = {k}> ()"]
    parts += [f"{name}_{k} = Gather <axis = 0> ({name}, index_{k})" for name in names]
    for name, state in (("initial_h", "h"), ("initial_c", "c")):
        if call.has(name):
            parts.append(f"{state}_{k} = Gather <axis = 0> ({name}, index_{k})")
        else:
            parts.append(f"{state}_{k} = ConstantOfShape (sizes)")
    parts.append(
        f"""
        sums_{k} = MatMulInteger (q, W_{k}, q_zero, W_zero_{k})
        scale_{k} = Mul (q_scale, W_scale_number_{k})
        whole_{k} = Cast <to = 1> (sums_{k})
        product_{k} = Mul (whole_{k}, scale_{k})"""
    )
    projected = f"product_{k}"
    if call.has("B"):
        parts.append(
            f"""
            Wb_{k}, Rb_{k} = Split <num_outputs = 2> (B_{k})
            bias_{k} = Add (Wb_{k}, Rb_{k})
            biased_{k} = Add (product_{k}, bias_{k})"""
        )
        projected = f"biased_{k}"
    if call.has("P"):
        parts.append(f"Pi_{k}, Po_{k}, Pf_{k} = Split <num_outputs = 3> (P_{k})")
    has_lengths, has_sequence = call.has("sequence_lens"), call.wants("Y")
    is_turned = is_reverse and has_lengths  # each sequence by itself, up to its end
    if is_turned:
        parts.append(f"turned_{k} = {_TURN} ({projected}, lengths)")
        projected = f"turned_{k}"
    inputs = [projected, "steps"] if has_lengths else [projected]
    directions = ", ".join([str(int(is_reverse and not is_turned))] * len(inputs))
    attributes = f"num_scan_inputs = {len(inputs)}, scan_input_directions = [{directions}]"
    if has_sequence:
        attributes += f", scan_output_directions = [{int(is_reverse and not is_turned)}]"
    # The output that the next step reads is zero where a sequence is over, the state is kept.
    is_apart = has_lengths and has_sequence
    states = ["output", "h", "c"] if is_apart else ["h", "c"]
    formals = [*states, "gates", "step"][: len(states) + len(inputs)]
    types = {"step": "int64[]"}
    arguments = ", ".join(f"{types.get(name, 'float[]')} {name}" for name in formals)
    results = [f"new_{name}" for name in states]
    last = [f"last_{name}_{k}" for name in states]
    outputs = [*last, *([f"sequence_{k}"] if has_sequence else [])]
    starts = [f"{'h' if name == 'output' else name}_{k}" for name in states]
    yielded = [*results, *(["emitted"] if has_sequence else [])]
    parts.append(
        f"""{", ".join(outputs)} = Scan <{attributes}, body = step_{k} ({arguments})
        => ({", ".join(yielded)}) {{ {_step(call, k, activations, states[0])} }}>
        ({", ".join([*starts, *inputs])})"""
    )
    if has_sequence and is_turned:
        parts.append(f"Y_{k} = {_TURN} (sequence_{k}, lengths)")
    elif has_sequence:
        parts.append(f"Y_{k} = Identity (sequence_{k})")
    for state in "hc":
        never = f"Where (is_never, zero, last_{state}_{k})"
        parts.append(f"Y_{state}_{k} = {never if has_lengths else f'Identity (last_{state}_{k})'}")
    return "\n".join(parts)


_TURN = "ReverseSequence <time_axis = 0, batch_axis = 1>"


def _step(call: Call, k: str, activations: list[Activation], output: str) -> str:
    """The nodes of a step, which reads the `output` of the one before."""
    f, g, h = activations
    parts = [
        f"""
        r, r_scale, r_zero = DynamicQuantizeLinear ({output})
        sums = MatMulInteger (r, R_{k}, r_zero, R_zero_{k})
        scale = Mul (r_scale, R_scale_number_{k})
        whole = Cast <to = 1> (sums)
        product = Mul (whole, scale)
        total = Add (gates, product)
        i, o, f, g = Split <axis = -1, num_outputs = 4> (total)"""
    ]

    def gate(name: str, activation: Activation, cell: str | None = None) -> None:
        x = name
        if cell is not None and call.has("P"):
            parts.append(f"{name}_peep = Mul ({cell}, P{name}_{k})")
            parts.append(f"{name}_sum = Add ({x}, {name}_peep)")
            x = f"{name}_sum"
        if call.gives("clip"):
            bound = call.float("clip")
            parts.append(f"{name}_least = Constant <value_float = {number(-bound)}> ()")
            parts.append(f"{name}_most = Constant <value_float = {number(bound)}> ()")
            parts.append(f"{name}_clip = Clip ({x}, {name}_least, {name}_most)")
            x = f"{name}_clip"
        parts.append(activation.nodes(f"{name}_gate", x))

    gate("i", f, "c")
    if call.int("input_forget"):
        parts.append("f_gate = Sub (one, i_gate)")
    else:
        gate("f", f, "c")
    gate("g", g)
    parts.append(
        """
        kept = Mul (f_gate, c)
        added = Mul (i_gate, g_gate)
        cell = Add (kept, added)"""
    )
    gate("o", f, "cell")
    parts.append(h.nodes("shown", "cell"))
    parts.append("state = Mul (o_gate, shown)")
    if call.has("sequence_lens"):
        parts.append(
            """
            is_running = Less (step, lengths)
            runs = Unsqueeze (is_running, along)
            new_h = Where (runs, state, h)
            new_c = Where (runs, cell, c)"""
        )
        if call.wants("Y"):
            parts.append("new_output = Where (runs, state, zero)\n emitted = Identity (new_output)")
    else:
        parts.append("new_h = Identity (state)\n new_c = Identity (cell)")
        if call.wants("Y"):
            parts.append("emitted = Identity (state)")
    return "\n".join(parts)
