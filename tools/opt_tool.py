"""
opt-tool: IR or a model in, IR out, with any passes in between.

Everything that xdsl-opt has, plus our dialects, passes, model files and switches. What a run does
not use is not imported.
"""

# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass, PassPipeline
from xdsl.universe import Universe
from xdsl.utils.exceptions import ParseError, ShrinkException, VerifyException
from xdsl.xdsl_opt_main import xDSLOptMain

from lowerdeck import lowering
from lowerdeck.dialects.files import is_special, replacing
from lowerdeck.dialects.frameworks import FRAMEWORKS, exports
from lowerdeck.dialects.registry import dialects
from lowerdeck.frontends.frontend import formats, graph_file
from lowerdeck.lowering.pipeline import (
    ALL_PASSES,
    LOADED,
    check_options,
    no_pass,
    parse_passes,
    run_passes,
    run_to_phase,
)
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import PHASES
from lowerdeck.passes.machinery.fixed_dims import fix_dims
from lowerdeck.passes.machinery.options import UNSPECIFIED
from lowerdeck.passes.machinery.provenance import check_names
from lowerdeck.tools.arguments import (
    JoinAction,
    add_options,
    checking_options,
    compile_options,
    listed,
    load_plugins,
)
from lowerdeck.tools.between_passes import BetweenPasses
from lowerdeck.tools.common import ToolError, about, run_tool
from lowerdeck.tools.completion import complete
from lowerdeck.tools.listings import ListAction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.tools.check_each import PassChecker
    from lowerdeck.tools.weights import WeightsFile


_ELIDE_ABOVE = 200
_CONSTANT = re.compile(r'(dense<)[^>]*(>)|("0x)[0-9A-F]*(")')
"""The elements of a constant in IR text, as numbers or as bytes."""


# It looks through all installed packages, and is asked three times in one run.
Universe.get_multiverse = staticmethod(cache(Universe.get_multiverse))


class OptTool(xDSLOptMain):
    """The tool for one command line; `main` runs it."""

    description = "Apply passes to IR text or to a model."
    version_format = "opt-tool of lowerdeck (xdsl {xdsl_version})"

    def __init__(self, args: Sequence[str] | None = None) -> None:
        self.checker: PassChecker | None = None
        self._inputs: Mapping[str, NDArray[Any]] | None = None
        self._expects = False
        """Comments of the input say which errors are expected."""
        self.timings: list[tuple[str, float]] = []
        self._shown = 0
        """Files written of what passes do."""
        super().__init__(self.description, args)

    @property
    def context(self) -> LowerdeckContext:
        """The context, with the options of the run."""
        return cast(LowerdeckContext, self.ctx)

    # What is available

    def register_all_dialects(self) -> None:
        self.ctx = LowerdeckContext()
        # Of packages that tell xDSL of their dialects, as this one does where it is installed.
        known = {**Universe.get_multiverse().all_dialects, **dialects()}
        for name, factory in known.items():
            self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        super().register_all_passes()
        for name, factory in ALL_PASSES.items():
            self.register_pass(name, factory)

    def register_all_frontends(self) -> None:
        super().register_all_frontends()
        self.available_frontends["mlir"] = self._read_text
        for name in formats():
            self.available_frontends[name] = self._load_model

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "opt-tool"
        arg_parser.usage = "opt-tool [options] [input_file]"
        add = arg_parser.add_argument
        # In place of xDSL's own option, of which the last one counts.
        group = arg_parser.add_argument_group("passes", conflict_handler="resolve")
        group.add_argument(
            "-p",
            "--passes",
            "--pass-pipeline",
            dest="passes",
            action=JoinAction,
            default="",
            metavar="SPEC",
            help="passes to apply: name,name{option=value other=value},...; repeated, one pipeline "
            "after the other; --list-passes lists ours, and xdsl-opt --help those of xDSL",
        )
        add(
            "--compile-to",
            metavar="PHASE",
            help="apply the compiler's own passes up to the end of a phase: imported, legal, "
            "optimized, kernels, buffer, scheduled or c; or, as for an export, onnx or caffe",
        )
        add("--print-ir-after-all", action="store_true", help="IR after each pass, to stderr")
        add("--print-ir-before-all", action="store_true", help="IR before each pass, to stderr")
        add(
            "--print-ir-after-change",
            action="store_true",
            help="IR after each pass that changes its text, to stderr",
        )
        add(
            "--print-ir-tree-dir",
            metavar="DIR",
            help="these options write files into DIR, numbered in order, not to stderr",
        )
        add(
            "--print-ir-after",
            action="append",
            default=[],
            metavar="PASS,...",
            help="IR after these passes, to stderr",
        )
        add(
            "--print-ir-before",
            action="append",
            default=[],
            metavar="PASS,...",
            help="IR before these passes, to stderr",
        )
        add(
            "--print-ir-diff",
            action="store_true",
            help="what each pass changes in the text of the IR, as a unified diff, to stderr; with "
            "--print-ir-after, for those passes",
        )
        add(
            "--elide-above",
            type=int,
            default=_ELIDE_ABOVE,
            metavar="N",
            help="leave constants of more characters out of what these options print (default: "
            f"{_ELIDE_ABOVE})",
        )
        add("--list-passes", action=ListAction, listed="passes", help="list our passes, and leave")
        add("--list-targets", action=ListAction, listed="targets", help="list targets, and leave")
        add("--pass-statistics", action="store_true", help="rewrites by pattern, to stderr")
        add("--rewrite-log", action="store_true", help="each rewrite made, to stderr")
        add(
            "--why-not",
            action="append",
            default=[],
            metavar="NAME,...",
            help="of these passes or patterns (pass, pattern or pass/pattern), say at which line "
            "of the source each does not match an op, and log each rewrite made, to stderr",
        )
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
        # Without vectors by default, so that output does not depend on the machine.
        add_options(arg_parser, target_flag="--for-target", target=UNSPECIFIED.target)
        complete(arg_parser)

    # Input

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        """The chunks of the input; those of text begin with as many empty lines as precede them."""
        chunks, extension = super().prepare_input()
        if extension != "mlir":
            return chunks, extension
        texts = [b"\n" * offset + chunk.read() for chunk, offset in chunks]
        if self.args.verify_diagnostics:
            from lowerdeck.tools.diagnostics import has_expectations

            self._expects = any(has_expectations(text.decode(errors="replace")) for text in texts)
        return [(BytesIO(text), 0) for text in texts], extension

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The input, its format from its content where the suffix is none that is known."""
        path: str | None = None if self.args.input_file == "-" else self.args.input_file
        self.args.input_file = path
        if path is not None and os.path.isdir(path):
            from lowerdeck.frontends.detect import detect_format

            format_ = detect_format(path)
            return open(graph_file(path), "rb"), format_
        stream, extension = super().get_input_stream()
        if path and extension not in self.available_frontends and not self.args.frontend:
            from lowerdeck.frontends.detect import detect_format

            stream.close()
            return open(path, "rb"), detect_format(path)
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

        if self.args.input_file is None or self.args.split_input_file:
            raise ToolError("opt-tool: a model is read from one file, whole")
        options = self.context.options
        return load_model(
            self.args.input_file,
            outputs=options.outputs,
            input_shapes=options.input_shapes,
            fixed=options.fixed,
            context=self.ctx,
            **options.import_options,
        )

    # Passes

    def setup_pipeline(self) -> None:
        """What the arguments ask for; ToolError if they make no sense."""
        args = self.args
        self._load_plugins()
        for name in (*listed(args.print_ir_after), *listed(args.print_ir_before)):
            if name not in self.available_passes:
                raise ToolError(f"opt-tool: {no_pass(name, self.available_passes)}")
        options = compile_options(args)
        with checking_options("opt-tool"):
            check_options(options, self.available_passes)
        why_not = listed(args.why_not)
        log = sys.stderr if args.rewrite_log or why_not else None
        self.context.start(options, log, why_not)
        if args.compile_to is not None and args.passes:
            raise ToolError("opt-tool: --compile-to and --pass-pipeline exclude each other")
        phases = (*PHASES, "c", *exports())
        if args.compile_to not in (None, *phases):
            known = ", ".join(phases)
            raise ToolError(f"opt-tool: --compile-to: '{args.compile_to}' is none of {known}")
        self.pipeline = PassPipeline(self._parse_passes(args.passes))

    def _load_plugins(self) -> None:
        """What plugins add to what is known since before the arguments were read."""
        load_plugins("opt-tool", self.args.load)
        self.available_passes.update(LOADED)
        for framework in FRAMEWORKS.values():
            if framework.name not in self.ctx.registered_dialect_names:
                self.ctx.register_dialect(framework.name, framework.dialect)
                self.available_passes.update(framework.legalization)
        for name in formats():
            self.available_frontends[name] = self._load_model

    def apply_passes(self, prog: ModuleOp) -> None:
        """The passes of the pipeline, or those of each phase up to that of `--compile-to`."""
        observer = BetweenPasses(self)
        observer.verify(prog)
        if self.args.compile_to is None:
            try:
                run_passes(self.ctx, prog, self.pipeline.passes, observer)
            except VerifyException as error:
                raise ToolError(observer.not_applicable(error)) from error
            return
        phase = "scheduled" if self.args.compile_to == "c" else self.args.compile_to
        run_to_phase(self.ctx, prog, phase, observer)

    def _parse_passes(self, text: str) -> tuple[ModulePass, ...]:
        try:
            return tuple(parse_passes(text, self.available_passes))
        except ValueError as error:
            raise ToolError(f"opt-tool: --pass-pipeline: {error}") from error

    def print_ir(self, when: str, module: ModuleOp) -> None:
        """The module as it is before or after a pass, where the arguments want it."""
        self.show(when, f"// -----// IR {when} //----- //\n{self.text_of(module)}", "mlir")

    def show(self, when: str, text: str, suffix: str) -> None:
        """A text about a pass: on stderr, or as the next file of the folder for them."""
        if (folder := self.args.print_ir_tree_dir) is None:
            print(text, file=sys.stderr)
            return
        os.makedirs(folder, exist_ok=True)
        self._shown += 1
        name = f"{self._shown:03}-{when.replace(' ', '-')}.{suffix}"
        with replacing(os.path.join(folder, name)) as file:
            file.write(f"{text}\n")

    def text_of(self, module: ModuleOp) -> str:
        """The module as text, in the format that the arguments ask for."""
        from io import StringIO

        from xdsl.printer import Printer

        text = StringIO()
        Printer(
            text,
            print_generic_format=self.args.print_op_generic,
            print_debuginfo=self.args.print_debuginfo,
        ).print_op(module)
        limit = self.args.elide_above

        def shortened(match: re.Match[str]) -> str:
            return (
                match[0]
                if len(match[0]) <= limit
                else f"{match[1] or match[3]}...{match[2] or match[4]}"
            )

        return _CONSTANT.sub(shortened, text.getvalue())

    # The run

    def run(self) -> None:
        """Read, transform and print every chunk; files appear only when all of it went well."""
        chunks, extension = self.prepare_input()
        mismatches: list[str] = []
        if self.args.check_each and self.args.inputs:
            from lowerdeck.tools.arguments import read_arrays

            self._inputs = read_arrays(self.args.inputs)
        with self._outputs() as (output, weights):
            for position, (chunk, _) in enumerate(chunks):
                if position > 0:
                    output.write("// -----\n")
                with chunk:
                    if self._expects:
                        mismatches += self._mismatches(chunk, extension, output, weights)
                    else:
                        self._run_chunk(chunk, extension, output, weights)
            if mismatches:
                raise ToolError("\n".join(mismatches))
        self._report()

    def _run_chunk(
        self, chunk: IO[bytes], extension: str, output: IO[str], weights: WeightsFile | None
    ) -> None:
        """Print the module of a chunk, or an error that the user asked to be printed."""
        try:
            self._transform_chunk(chunk, extension, output, weights)
        except ToolError as error:
            parsing = isinstance(error.__cause__, ParseError)
            expected = self.args.parsing_diagnostics if parsing else self.args.verify_diagnostics
            if not expected:
                raise
            print(error, file=output)

    def _mismatches(
        self, chunk: IO[bytes], extension: str, output: IO[str], weights: WeightsFile | None
    ) -> list[str]:
        """Print the module of a chunk; how its errors differ from those that it expects."""
        from lowerdeck.tools.diagnostics import mismatches

        text, found = chunk.read().decode(errors="replace"), None
        chunk.seek(0)
        try:
            self._transform_chunk(chunk, extension, output, weights)
        except ToolError as error:
            found = error
        return mismatches(text, self.get_input_name(), found)

    def _transform_chunk(
        self, chunk: IO[bytes], extension: str, output: IO[str], weights: WeightsFile | None
    ) -> None:
        with about(self.get_input_name()):
            module = self.parse_chunk(chunk, extension)
            if module is None:
                return
            fix_dims(module, self.context.options.dims or {})
            check_names(module, self.context.options)
            self.checker = self._new_checker()
            self.apply_passes(module)
            if weights is not None:
                weights.store(module)
            text = self.output_resulting_program(module)
            if self.checker is not None:
                self.checker.finish()
            output.write(text)
            output.flush()

    def _new_checker(self) -> PassChecker | None:
        if not self.args.check_each:
            return None
        from lowerdeck.tools.check_each import PassChecker
        from lowerdeck.tools.reference import MAX_STEPS

        return PassChecker(
            self.context,
            self.get_input_name(),
            self._inputs,
            max_steps=self.args.check_steps or MAX_STEPS,
            allow_unchecked=self.args.allow_unchecked,
        )

    @contextmanager
    def _outputs(self) -> Generator[tuple[IO[str], WeightsFile | None]]:
        """Where the text goes, and the file for weights if there is one."""
        path, weights = self.args.output_file, self.args.weights_out
        if path is not None and weights is None and not is_special(path):
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
            from lowerdeck.reading import name_of

            name = name_of(self.get_input_name(), self.context.options)
            artifact = lowering.emit(self.ctx, prog, name)
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
        for name in listed(self.args.why_not):
            if name not in self.context.recorder.tried:
                print(f"opt-tool: --why-not: '{name}' was tried at no op", file=sys.stderr)
        if self.args.pass_statistics:
            print(self.context.recorder.summary(), file=sys.stderr)


@contextmanager
def _text_output(path: str | None) -> Generator[IO[str]]:
    if path is None:
        yield sys.stdout
        return
    with replacing(path) as file:
        yield file


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of one run of the tool."""

    def run() -> int:
        checked = Attribute.__post_init__
        try:
            tool = OptTool(args)
            tool.run()
        except ShrinkException:
            # This is what shrinkray asks for: zero if the input may shrink further.
            return 0
        finally:
            # `--disable-verify` replaces it for good, also for who calls this as a function.
            Attribute.__post_init__ = checked
        return int(tool.args.shrink)

    return run_tool("opt-tool", run)


if __name__ == "__main__":
    sys.exit(main())
