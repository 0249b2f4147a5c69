"""
`lowerdeck reduce`: the smallest variant of a model or module that a test still finds interesting.

The test is a command of the user's, which a variant is interesting to if it exits with 0, or by
default that `lowerdeck check` still finds the same pass and pattern to be wrong.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowerdeck.dialects.files import replacing
from lowerdeck.tools.check import (
    add_finding_arguments,
    finding_arguments,
    with_passes_under_test,
)
from lowerdeck.tools.command import add_command, command_options
from lowerdeck.tools.common import ToolError, about, user_errors
from lowerdeck.tools.shrinking import MAX_TRIALS, Shrunk, shrink

if TYPE_CHECKING:
    from onnx import ModelProto
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.passes.machinery.options import CompileOptions
    from lowerdeck.tools.blame import Blamer, Finding
    from lowerdeck.tools.reference import Inputs

EPILOG = (
    "without --test, a variant is interesting if 'lowerdeck check' finds the same pass and pattern "
    "to be wrong in it; an ONNX model stays one if OUT ends with .onnx, any other becomes the "
    "module that it is legalized to; exit status: 0 if the smallest variant was written; 1 if the "
    "model itself is not interesting, or cannot be read"
)


def add_reduce(commands: Any) -> None:
    """The command and its arguments."""
    text = "shrink a failing model or module to a small one that still fails"
    one = add_command(commands, "reduce", _reduce, text)
    one.epilog = EPILOG
    one.add_argument(
        "-o", metavar="OUT", dest="out", required=True, help="file to write: .onnx, else .mlir"
    )
    one.add_argument(
        "--test",
        metavar="'CMD {}'",
        help="shell command; a variant, whose file takes the place of {}, is INTERESTING IF THE "
        "COMMAND EXITS WITH 0 (so: 'not CMD {}', or '! CMD {}', to keep a failure)",
    )
    one.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="S",
        help="seconds after which a test is not interesting (default: 300)",
    )
    one.add_argument(
        "--trials",
        type=int,
        default=MAX_TRIALS,
        metavar="N",
        help=f"variants to try at most (default: {MAX_TRIALS})",
    )
    add_finding_arguments(one)


def _reduce(args: argparse.Namespace) -> int:
    from lowerdeck.dialects.recursion import working_on_modules
    from lowerdeck.frontends.detect import detect_format
    from lowerdeck.tools.progress import progress

    with about(args.model), progress() as shown, working_on_modules():
        options = with_passes_under_test(args, command_options(args, shown))
        is_onnx = not os.path.isdir(args.model) and detect_format(args.model) == "onnx"
        as_onnx = args.out.endswith(".onnx")
        if as_onnx and not is_onnx:
            raise ToolError(f"lowerdeck: -o {args.out}: expected a file that ends with .mlir")
        if as_onnx:
            _reduce_onnx(args, options)
        else:
            _reduce_module(args, options)
    return 0


# Both forms


@dataclass
class _Checks:
    """Whether `lowerdeck check` finds in a file what it has found in the first one."""

    options: CompileOptions
    given: Inputs | None
    steps: int
    first: Finding | None = None
    is_in_core: bool = False
    """True if that one needs no C."""

    def __call__(self, path: str) -> bool:
        from lowerdeck.dialects.errors import InternalError

        try:
            blamer = self._blamer(path)
            if blamer is None:
                return False
            if self.first is None:
                return self._find(blamer)
            found = blamer.find_in_core()
            if not self.first.is_of_c:
                if not self.is_in_core:
                    found = found or self._found_below(blamer)
                return found is not None and found.key == self.first.key
            # To search each time takes long, and what the C alone tells is most often one mistake.
            return found is None and blamer.compare_c() is not None
        except (*user_errors(), InternalError):
            return False

    def _blamer(self, path: str) -> Blamer | None:
        from lowerdeck.compiler import import_and_lower
        from lowerdeck.tools.blame import Blamer
        from lowerdeck.tools.reference import NoReferenceError, interpret, reference_run

        module, _ = import_and_lower(path, "imported", self.options)
        try:
            known = None if self.given is None else _fitting(module, self.given)
            inputs, expected = reference_run(
                module, known, lambda m, i: interpret(m, i, self.steps)
            )
        except NoReferenceError:
            return None
        return Blamer(module, self.options, inputs, expected, self.steps)

    def _find(self, blamer: Blamer) -> bool:
        self.first = blamer.find_in_core()
        self.is_in_core = self.first is not None
        if self.first is None and (problem := blamer.compare_c()) is not None:
            self.first = blamer.find(problem)
        return self.first is not None

    def _found_below(self, blamer: Blamer) -> Finding | None:
        """What the interpreter finds on loops, if the C shows anything."""
        problem = blamer.compare_c()
        return None if problem is None else blamer.find(problem)


def _fitting(module: ModuleOp, given: Inputs) -> Inputs:
    """The arrays that were given, as far as they fit; random ones for inputs that are new."""
    from lowerdeck.tools.arguments import inputs_among
    from lowerdeck.tools.sample_inputs import inputs_of, sample_inputs

    arrays = sample_inputs(inputs_of(module))
    for name, array in inputs_among(given, arrays).items():
        if name in arrays and (arrays[name].shape, arrays[name].dtype) == (
            array.shape,
            array.dtype,
        ):
            arrays[name] = array
    return arrays


def _tester(args: argparse.Namespace, options: CompileOptions) -> Callable[[str], bool]:
    """The test of a file; the model itself comes first."""
    if args.test is not None:
        return lambda path: _exits_with_zero(args.test, path, args.timeout)
    return _Checks(options, *finding_arguments(args))


def _exits_with_zero(command: str, path: str, seconds: float) -> bool:
    quoted = shlex.quote(path)
    text = command.replace("{}", quoted) if "{}" in command else f"{command} {quoted}"
    quiet = subprocess.DEVNULL
    # A session of its own, so that what the shell has started ends with it.
    process = subprocess.Popen(
        text, shell=True, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def _require_interesting(args: argparse.Namespace, is_interesting: bool) -> None:
    if is_interesting:
        return
    if args.test is None:
        raise ToolError(f"{args.model}: 'lowerdeck check' finds nothing wrong in it; give --test")
    raise ToolError(f"{args.model}: not interesting: the test does not exit with 0: {args.test}")


def _report(args: argparse.Namespace, found: Shrunk[Any], before: int, after: int) -> None:
    end = "" if found.is_minimal else "; there may be smaller ones, for --trials is used up"
    print(f"{args.out}: {before} -> {after} operations, {found.trials} variants tried{end}")


# ONNX


def _reduce_onnx(args: argparse.Namespace, options: CompileOptions) -> None:
    import onnx

    from lowerdeck.tools.shrink_onnx import nodes_of, variants

    test = _tester(args, options)
    model: ModelProto = onnx.load(args.model)  # pyright: ignore[reportUnknownMemberType]
    with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
        path = os.path.join(folder, "variant.onnx")

        def is_interesting(variant: ModelProto) -> bool:
            Path(path).write_bytes(variant.SerializeToString())
            return test(path)

        _require_interesting(args, is_interesting(model))
        options.progress("reduce")
        found = shrink(model, variants, is_interesting, key=_digest, max_trials=args.trials)
    with replacing(args.out, "wb") as file:
        file.write(found.subject.SerializeToString())
    _report(args, found, nodes_of(model.graph), nodes_of(found.subject.graph))


def _digest(model: ModelProto) -> int:
    return hash(model.SerializeToString(deterministic=True))


# Modules


def _reduce_module(args: argparse.Namespace, options: CompileOptions) -> None:
    from lowerdeck.compiler import import_and_lower
    from lowerdeck.tools.shrink_ir import operations, variants
    from lowerdeck.tools.weights import has_anonymous_weights

    # What is not core yet has no types of values.
    module, _ = import_and_lower(args.model, "legal", options)
    test = _tester(args, _of_text(options))
    with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
        path = os.path.join(folder, "variant.mlir")

        def is_interesting(variant: ModuleOp) -> bool:
            _write(variant, path, f"{path}.weights")
            return test(path)

        _require_interesting(args, is_interesting(module))
        options.progress("reduce")
        found = shrink(
            module, variants, is_interesting, key=_digest_of_module, max_trials=args.trials
        )
    smallest = found.subject
    _detach_weights(smallest)
    weights = f"{args.out}.weights" if has_anonymous_weights(smallest) else None
    _write(smallest, args.out, weights)
    _report(args, found, operations(module), operations(smallest))


def _of_text(options: CompileOptions) -> CompileOptions:
    """The options without what is said of a model's file."""
    return replace(
        options, outputs=None, input_shapes=None, dims=None, fixed=None, import_options={}
    )


def _digest_of_module(module: ModuleOp) -> int:
    """What tells modules apart, large constants included, which do not show in text."""
    from lowerdeck.dialects.blob import BlobAttr

    constants = [
        value.data
        for op in module.walk()
        for value in op.properties.values()
        if isinstance(value, BlobAttr)
    ]
    return hash((str(module), *constants))


def _detach_weights(module: ModuleOp) -> None:
    """Copy what constants read from the model's file, which the result should not need."""
    import numpy as np

    from lowerdeck.dialects.blob import Blob, BlobAttr

    for op in module.walk():
        for name, value in op.properties.items():
            if isinstance(value, BlobAttr) and value.data.file is not None:
                array = np.frombuffer(value.data.data, np.uint8)
                op.properties[name] = BlobAttr(Blob.of(array.copy()))


def _write(module: ModuleOp, path: str, weights: str | None) -> None:
    from xdsl.printer import Printer

    from lowerdeck.tools.weights import WeightsFile

    if weights is not None:
        module = module.clone()
        with replacing(weights, "wb") as file:
            WeightsFile(weights, file).store(module)
    with replacing(path) as file:
        Printer(file).print_op(module)
        file.write("\n")
