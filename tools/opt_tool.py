"""
opt-tool: IR or a model in, IR out, with any passes in between.

Everything that xdsl-opt has, plus our dialects, passes, model files and switches. What a run does
not use is not imported.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import IO, TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ParseError, ShrinkException
from xdsl.xdsl_opt_main import xDSLOptMain

from lowerdeck.dialects.registry import DIALECTS
from lowerdeck.frontends import MODEL_FORMATS
from lowerdeck.lowering.targets import TARGETS
from lowerdeck.passes.options import LowerdeckContext, RewriteOptions
from lowerdeck.tools.common import ToolError, about, replacing, run_tool, verify

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.tools.check_each import PassChecker
    from lowerdeck.tools.weights import WeightsFile

PassFactory = Callable[[], type[ModulePass]]

_PASS_TABLES = ("lowerdeck.passes.pipeline", "lowerdeck.lowering.pipeline")
"""Modules whose `PASSES` maps names to factories that import the pass."""


def registered_passes() -> dict[str, PassFactory]:
    """The passes of this project, by name."""
    passes: dict[str, PassFactory] = {}
    for name in _PASS_TABLES:
        if find_spec(name) is not None:
            passes.update(import_module(name).PASSES)
    return passes


class OptTool(xDSLOptMain):
    """The tool for one command line; `main` runs it."""

    description = "Apply passes to IR text or to a model."
    version_format = "opt-tool of lowerdeck (xdsl {xdsl_version})"

    def __init__(self, args: Sequence[str] | None = None) -> None:
        self.options = RewriteOptions()
        self.checker: PassChecker | None = None
        self._inputs: Mapping[str, NDArray[Any]] | None = None
        self.timings: list[tuple[str, float]] = []
        self._started = 0.0
        super().__init__(self.description, args)

    # What is available

    def register_all_dialects(self) -> None:
        self.ctx = LowerdeckContext()
        super().register_all_dialects()
        for name, factory in DIALECTS.items():
            self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        super().register_all_passes()
        for name, factory in registered_passes().items():
            self.register_pass(name, factory)

    def register_all_frontends(self) -> None:
        super().register_all_frontends()
        self.available_frontends["mlir"] = self._read_text
        for name in MODEL_FORMATS:
            self.available_frontends[name] = self._load_model

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "opt-tool"
        arg_parser.usage = "opt-tool [options] [input_file]"
        add = arg_parser.add_argument
        add(
            "--pass-pipeline",
            dest="passes",
            default=argparse.SUPPRESS,
            metavar="SPEC",
            help="passes to apply: name,name{option=value other=value},...",
        )
        add(
            "--compile-to",
            metavar="PHASE",
            help="apply the compiler's own passes up to the end of a phase: imported, legal, "
            "optimized, kernels, buffer, scheduled or c",
        )
        add("--print-ir-after-all", action="store_true", help="IR after each pass, to stderr")
        add("--pass-statistics", action="store_true", help="rewrites by pattern, to stderr")
        add("--skip-nodes", metavar="REGEX", help="source nodes that optional passes leave alone")
        add("--disable", action="append", default=[], metavar="PASS", help="leave a pass out")
        add(
            "--for-target",
            choices=list(TARGETS),
            default="c99",
            help="what layouts and schedules are chosen for (default: c99, without vectors)",
        )
        add("--rewrite-limit", type=int, metavar="N", help="make the first N rewrites only")
        add("--rewrite-log", action="store_true", help="each rewrite made, to stderr")
        add(
            "--check-each",
            action="store_true",
            help="interpret the module before and after each pass and compare the results; with "
            "--compile-to=c run the C, too",
        )
        add("--inputs", metavar="FILE.npz", help="inputs for --check-each; else random ones")
        add(
            "--check-steps",
            type=int,
            metavar="N",
            help="ops and iterations that a run of --check-each may take (default: 10,000,000)",
        )
        add(
            "--allow-unchecked",
            action="store_true",
            help="what --check-each cannot check is a note on stderr, not an error",
        )
        add(
            "--weights-out",
            metavar="FILE",
            help="write constants to FILE; without it, those over 1 KB print elided "
            "(with -o OUT, the default is OUT.weights)",
        )
        add("--output", action="append", metavar="NAME", help="tensor to return from a model")
        add(
            "--input-shape",
            action="append",
            default=[],
            metavar="NAME=1,2,3",
            help="shape of an input of a model",
        )
        add("--weights", metavar="FILE", help="the .caffemodel of a .prototxt; a checkpoint")
        add("--tags", metavar="A,B", help="tags of the graph in a SavedModel (default: serve)")
        add("--signature", metavar="NAME", help="signature of a SavedModel")
        add(
            "--load-pass",
            action="append",
            default=[],
            metavar="MODULE:CLASS",
            help="register a pass from an importable module under its own name",
        )

    # Input

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The input, its format from its content where the suffix is none that is known."""
        path = self.args.input_file
        if path is not None and os.path.isdir(path):
            from lowerdeck.frontends.detect import detect_format, graph_file

            format_ = detect_format(path)
            return open(graph_file(path), "rb"), format_
        stream, extension = super().get_input_stream()
        if extension not in self.available_frontends and not self.args.frontend:
            from lowerdeck.frontends.detect import detect_format

            stream.close()
            return open(self.args.input_file, "rb"), detect_format(self.args.input_file)
        return stream, extension

    def _read_text(self, stream: IO[bytes]) -> ModuleOp:
        from lowerdeck.frontends.text import parse_module

        try:
            text = stream.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolError(f"{self.get_input_name()}: is not valid IR text: {error}") from error
        name, is_strict = self.get_input_name(), self.args.no_implicit_module
        return parse_module(self.ctx, text, name, allow_implicit=not is_strict)

    def _load_model(self, stream: IO[bytes]) -> ModuleOp:
        from lowerdeck.frontends import load_model
        from lowerdeck.tools.arguments import parse_shapes, parse_tags

        if self.args.input_file is None or self.args.split_input_file:
            raise ToolError("opt-tool: a model is read from one file, whole")
        return load_model(
            self.args.input_file,
            outputs=self.args.output,
            input_shapes=parse_shapes(self.args.input_shape),
            weights=self.args.weights,
            tags=parse_tags(self.args.tags),
            signature=self.args.signature,
            context=self.ctx,
        )

    # Passes

    def setup_pipeline(self) -> None:
        """The pipeline that the arguments ask for; ToolError if they make no sense."""
        args = self.args
        self.options = RewriteOptions(
            skip_nodes=_regex(args.skip_nodes),
            disable=frozenset(args.disable),
            target=args.for_target,
            rewrite_limit=args.rewrite_limit,
            log=sys.stderr if args.rewrite_log else None,
        )
        cast(LowerdeckContext, self.ctx).options = self.options
        for spec in args.load_pass:
            loaded = _loaded_pass(spec)
            self.register_pass(loaded.name, lambda loaded=loaded: loaded)
        self._require_known(args.disable, "--disable")
        if args.compile_to is not None and args.passes:
            raise ToolError("opt-tool: --compile-to and --pass-pipeline exclude each other")
        self.pipeline = PassPipeline(self._parse_passes(args.passes), self._between)

    def apply_passes(self, prog: ModuleOp) -> None:
        """The passes of the pipeline, or those of each phase up to that of `--compile-to`."""
        if self.args.compile_to is None:
            self.pipeline.apply(self.ctx, prog)
            return
        from lowerdeck.passes.contracts import check_contract
        from lowerdeck.tools.phases import stages_to

        for phase, names in stages_to(self.args.compile_to):
            passes = self._parse_passes(",".join(names))
            PassPipeline(passes, self._between).apply(self.ctx, prog)
            check_contract(prog, phase)

    def _parse_passes(self, text: str) -> tuple[ModulePass, ...]:
        from xdsl.utils.exceptions import ArgSpecParseError

        try:
            specs = tuple(parse_pipeline(text))
            self._require_known([spec.name for spec in specs], "--pass-pipeline")
            return tuple(
                self.available_passes[spec.name]().from_pass_spec(spec)
                for spec in specs
                if not self._is_left_out(spec.name)
            )
        except (ArgSpecParseError, ValueError) as error:
            raise ToolError(f"opt-tool: --pass-pipeline: {error}") from error

    def _is_left_out(self, name: str) -> bool:
        """Passes of the driver see `--disable` themselves; the others are dropped here."""
        from lowerdeck.passes.driver import is_enabled

        return not is_enabled(self.available_passes[name](), self.options)

    def _require_known(self, names: Sequence[str], option: str) -> None:
        unknown = [name for name in names if name not in self.available_passes]
        if unknown:
            from difflib import get_close_matches

            near = get_close_matches(unknown[0], self.available_passes, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ToolError(f"opt-tool: {option}: no pass '{unknown[0]}'{hint}")

    def _between(
        self, previous: ModulePass | None, module: ModuleOp, following: ModulePass | None
    ) -> None:
        """After each pass, and before the first: measure, verify, print, check."""
        now = perf_counter()
        if previous is not None:
            self.timings.append((previous.name, now - self._started))
        if not self.args.disable_verify:
            verify(module, self.get_input_name(), None if previous is None else previous.name)
        if previous is not None and self.args.print_ir_after_all:
            self._print_after(previous, module, sys.stderr)
        if previous is not None and following is not None and self.args.print_between_passes:
            self._print_after(previous, module, sys.stdout)
        if self.checker is not None:
            self.checker.check(previous, module, following)
        self._started = perf_counter()

    def _print_after(self, previous: ModulePass, module: ModuleOp, stream: IO[str]) -> None:
        from xdsl.printer import Printer

        print(f"// -----// IR after {previous.name} //----- //", file=stream)
        Printer(stream, print_generic_format=self.args.print_op_generic).print_op(module)
        print(file=stream)

    # The run

    def run(self) -> None:
        """Read, transform and print every chunk; files appear only when all of it went well."""
        chunks, extension = self.prepare_input()
        if self.args.check_each and self.args.inputs:
            from lowerdeck.tools.arguments import read_arrays

            self._inputs = read_arrays(self.args.inputs)
        with self._outputs() as (output, weights):
            for position, (chunk, offset) in enumerate(chunks):
                if position > 0:
                    output.write("// -----\n")
                with chunk:
                    self._run_chunk(chunk, extension, offset, output, weights)
        self._report()

    def _run_chunk(
        self,
        chunk: IO[bytes],
        extension: str,
        offset: int,
        output: IO[str],
        weights: WeightsFile | None,
    ) -> None:
        try:
            with about(self.get_input_name()):
                module = self._parse(chunk, extension, offset)
                if module is None:
                    return
                self.checker = self._new_checker()
                self.apply_passes(module)
                if weights is not None:
                    weights.store(module)
                text = self.output_resulting_program(module)
                if self.checker is not None:
                    self.checker.finish()
                output.write(text)
                output.flush()
        except ToolError as error:
            parsing = isinstance(error.__cause__, ParseError)
            expected = self.args.parsing_diagnostics if parsing else self.args.verify_diagnostics
            if not expected:
                raise
            print(error, file=output)

    def _new_checker(self) -> PassChecker | None:
        if not self.args.check_each:
            return None
        from lowerdeck.tools.check_each import MAX_STEPS, PassChecker

        return PassChecker(
            self.ctx,
            self.get_input_name(),
            self._inputs,
            max_steps=self.args.check_steps or MAX_STEPS,
            allow_unchecked=self.args.allow_unchecked,
        )

    def _parse(self, chunk: IO[bytes], extension: str, offset: int) -> ModuleOp | None:
        """The module of a chunk; line numbers in errors are those of the whole file."""
        try:
            return self.parse_chunk(chunk, extension, offset)
        except ParseError as error:
            error.span = replace(error.span, line_offset=offset)
            raise

    @contextmanager
    def _outputs(self) -> Generator[tuple[IO[str], WeightsFile | None]]:
        """Where the text goes, and the file for weights if there is one."""
        path, weights = self.args.output_file, self.args.weights_out
        if path is not None and weights is None:
            weights = f"{path}.weights"
        with _text_output(path) as output:
            if weights is None:
                yield output, None
                return
            from lowerdeck.tools.weights import WeightsFile

            with replacing(weights, "wb", keep_empty=self.args.weights_out is not None) as file:
                yield output, WeightsFile(weights, file)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """The text of the result: IR, C at the end of `--compile-to=c`, or that of a target."""
        if self.args.compile_to == "c":
            from lowerdeck.tools.phases import c_artifact

            artifact = c_artifact(prog, self.get_input_name(), self.options.target)
            if self.checker is not None:
                self.checker.check_c(artifact)
            return artifact.files[f"{artifact.name}.c"]
        return super().output_resulting_program(prog)

    def _report(self) -> None:
        if self.args.time_passes:
            total = sum(seconds for _, seconds in self.timings)
            for name, seconds in self.timings:
                print(f"{seconds:10.4f} s  {name}", file=sys.stderr)
            print(f"{total:10.4f} s  in total", file=sys.stderr)
        if self.args.pass_statistics:
            print(self.options.summary(), file=sys.stderr)


@contextmanager
def _text_output(path: str | None) -> Generator[IO[str]]:
    if path is None:
        yield sys.stdout
        return
    with replacing(path) as file:
        yield file


def _regex(pattern: str | None) -> str | None:
    """The pattern; ToolError if it is not a regular expression."""
    import re

    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ToolError(f"opt-tool: --skip-nodes: {error}") from error
    return pattern


def _loaded_pass(spec: str) -> type[ModulePass]:
    """The class that `MODULE:CLASS` names; ToolError if it is no pass."""
    module, _, name = spec.partition(":")
    try:
        loaded = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ToolError(f"opt-tool: --load-pass {spec}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, ModulePass)):
        raise ToolError(f"opt-tool: --load-pass {spec}: not a class derived from ModulePass")
    return loaded


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of one run of the tool."""

    def run() -> int:
        tool = OptTool(args)
        try:
            tool.run()
        except ShrinkException:
            # This is what shrinkray asks for: zero if the input may shrink further.
            return 0
        return int(tool.args.shrink)

    return run_tool("opt-tool", run)


if __name__ == "__main__":
    sys.exit(main())
