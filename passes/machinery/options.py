"""What a user asks of one compilation."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast

from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.dialects.frameworks import OptionValue, declared_options
from lowerdeck.dialects.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.passes.machinery.ranges import Ranges


def _in_any_order(values: Collection[str]) -> list[str]:
    return sorted(values)


def _is_parallel(threads: int) -> bool:
    return threads > 1


def _import_key(values: Mapping[str, OptionValue]) -> dict[str, Any]:
    known = declared_options()
    return {
        name: known[name].key(value) if name in known else value for name, value in values.items()
    }


def regexes_of(patterns: str | Sequence[str] | None) -> tuple[str, ...]:
    """One regular expression, several, or none, as a tuple."""
    return (patterns,) if isinstance(patterns, str) else tuple(patterns or ())


def _patterns_key(patterns: str | Sequence[str] | None) -> list[str]:
    return sorted(set(regexes_of(patterns)))


PRECISIONS = ("f32", "bf16", "int8", "auto")
"""What layers may be computed in."""

WEIGHT_FORMATS = ("bf16", "fp16", "int8", "int4", "int4:BLOCK")
"""How constant weights can be stored; a block of weights, an even number of at least 8, shares a
scale."""

_BLOCK = 32
"""Of `int4` alone."""


_FORMAT = re.compile(r"(?:bf|fp|f|float|u?int)[0-9]+(?::.*)?")
"""What is meant as a format, also one that there is not: a file of this name is `./int8`."""


def split_weights(
    options: Mapping[str, OptionValue], format_: str | None
) -> tuple[dict[str, OptionValue], str | None]:
    """
    Options of frontends, and the format of weights: that is what `weights` says if it looks like
    one, and no other is given.
    """
    weights = options.get("weights")
    if format_ is not None or not isinstance(weights, str) or not _FORMAT.fullmatch(weights):
        return dict(options), format_
    return {name: value for name, value in options.items() if name != "weights"}, weights


def is_weight_format(value: object) -> bool:
    """True for what says how weights are stored, not where they are."""
    return isinstance(value, str) and (value in WEIGHT_FORMATS[:3] or block_of(value) is not None)


def block_of(format_: str) -> int | None:
    """How many weights of four bits share a scale; None for other formats."""
    match = re.fullmatch(r"int4(?::([1-9][0-9]{0,8}))?", format_)
    if match is None:
        return None
    size = int(match[1] or _BLOCK)
    return size if size >= 8 and size % 2 == 0 else None


def _values_key(values: Mapping[str, Any] | None) -> dict[str, list[Any]]:
    """Arrays by their bytes, and whether an element type came with them."""
    import numpy as np

    arrays = {name: (value, np.asarray(value)) for name, value in (values or {}).items()}
    return {
        name: [hasattr(value, "dtype"), str(array.dtype), array.shape, _digest(array)]
        for name, (value, array) in arrays.items()
    }


def _digest(array: NDArray[Any]) -> str:
    content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return hashlib.sha256(content).hexdigest()


def _ranges_key(ranges: Ranges | None) -> str | None:
    return None if ranges is None else ranges.text


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


class OptionError(LowerdeckError, ValueError):
    """All options that make no sense, each with what is wrong."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("\n".join(f"{name}: {text}" for name, text in problems))
        self.problems = tuple(problems)


@record
class FinishedPass:
    """What one pass has done."""

    name: str
    seconds: float
    before: int
    """Operations of the module before it."""
    after: int
    rewrites: int

    def __str__(self) -> str:
        count = f"{self.after}" if self.before == self.after else f"{self.before} -> {self.after}"
        made = "1 rewrite" if self.rewrites == 1 else f"{self.rewrites} rewrites"
        return f"{self.name}: {self.seconds:.3f} s, {count} operations, {made}"


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """
    All that can be asked of a compilation, from the command line to the passes.

    Every field is part of the cache's key, in the form that `metadata["key"]` gives it if there is
    one; those with `compare=False` change nothing in the output.
    """

    outputs: Sequence[str] | None = None
    """Tensors to return instead of the model's own outputs."""
    input_shapes: Mapping[str, Sequence[int]] | None = None
    """Shapes of inputs by name; of a TensorFlow graph they also make inputs of other tensors."""
    dims: Mapping[str, int] | None = None
    """Sizes of open dimensions of inputs, by their names."""
    fixed: Mapping[str, Any] | None = field(default=None, metadata={"key": _values_key})
    """Inputs that are constants: their values by name, as numbers or arrays."""
    states: Mapping[str, str] | None = None
    """Inputs that hold what an output has held after the last run: by their names, the output's."""
    import_options: Mapping[str, OptionValue] = field(
        default_factory=dict[str, OptionValue], metadata={"key": _import_key}
    )
    """What the model's framework lets its user say, by name (`dialects/frameworks.py`)."""
    target: str = "native"
    """What is compiled for: lowering chooses layouts and schedules by it."""
    name: str | None = None
    """What the identifiers and files of the C begin with; None for the name of the model's file."""
    # The C for a pool of threads runs on one of any size.
    threads: int = field(default=1, metadata={"key": _is_parallel})
    """How many threads share the work."""
    disable: Collection[str] = field(default=(), metadata={"key": _in_any_order})
    """Names of passes that do nothing, members of groups included."""
    skip_nodes: str | Sequence[str] | None = field(default=None, metadata={"key": _patterns_key})
    """No optional rewrite consumes an op of a source node in whose name this regex is found, or one
    of several; or of a place in IR text, `file:line:col`, that it describes as a whole."""
    rewrite_limit: int | None = None
    """Make the first this many rewrites of the whole run, and no other."""
    strict_accuracy: bool = False
    """Leave out what is faster but adds to rounding errors, such as Winograd's larger tiles."""
    small_weights: bool = False
    """Leave out what stores weights padded, transformed, wider or twice."""
    weight_format: str | None = None
    """How constant weights are stored, in fewer bits (`passes/linear/narrow_weights.py`)."""
    precision: str | None = None
    """What layers may be computed in: `bf16`, `int8`, or `auto`, as the ranges say
    (`passes/fuse/quantize_layers.py`)."""
    ranges: Ranges | None = field(default=None, metadata={"key": _ranges_key})
    """What calibration has found (`passes/machinery/ranges.py`)."""
    probe: str | None = None
    """For calibration: `observe` returns what layers read that have one range, `inputs` what all
    layers read, `matrices` what all products read, and `switch` asks which are on, too."""
    fast_math: bool = False
    """Use algebra of real numbers on floats (`passes/fold/fast_math.py`)."""
    embed_weights: bool = False
    """The weights become part of the C."""
    static_workspace: bool = False
    """The C has a workspace of its own, for one run at a time."""
    max_stack: int = 4096
    """The bytes of buffers that a kernel has on the stack, at most; others are workspace."""
    byte_order: str = "little"
    """That of the machine that reads the weights file: `little` or `big`."""
    profile: bool = False
    """The C can take the time of each call of a kernel."""
    disable_strategy: Collection[str] = field(default=(), metadata={"key": _in_any_order})
    """Names of strategies that no kernel runs by."""
    strategy: Collection[str] = field(default=(), metadata={"key": _in_any_order})
    """Names of strategies that kernels run by wherever they can, whatever the estimates say."""
    extra_passes: str = ""
    """Passes, of plugins or others, that run at the end of the phase `optimized`: a pipeline, as
    `--pass-pipeline` takes it."""
    rank: int = 0
    """Which schedules kernels get instead of the best by estimate: 1 is the second best, and so on;
    `tune` tries them."""
    schedules: Mapping[str, str] = field(default_factory=dict[str, str])
    """What single kernels get, by name: their shapes and a schedule, as `tune` has found them."""
    progress: Callable[[str], None] = field(default=lambda text: None, compare=False)
    """Told what is being done."""
    finished: Callable[[FinishedPass], None] | None = field(default=None, compare=False)
    """Told what each pass has done; None spares the counting."""
    rewritten: Callable[[str], None] | None = field(default=None, compare=False)
    """Told of each rewrite: pass, pattern, reason and source nodes; None spares the text."""
    warn: Callable[[str], None] = field(default=_warn, compare=False)
    """Told what is no error, but most likely not what was meant."""

    @property
    def is_tuned(self) -> bool:
        """True if not every schedule is the best by rule."""
        return self.rank != 0 or bool(self.schedules)

    @property
    def key(self) -> str:
        """The options as text, for the cache: equal for those that give the same output."""
        parts: dict[str, Any] = {}
        for entry in fields(self):
            if entry.compare:
                form = cast("Callable[[Any], Any]", entry.metadata.get("key", _plain))
                parts[entry.name] = form(getattr(self, entry.name))
        return json.dumps(parts, sort_keys=True)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return {name: _plain(items[name]) for name in items}
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else value


UNSPECIFIED = CompileOptions(target="c99")
"""
The options of a context that was given none: without vectors, so that passes do the same on every
machine.
"""
