"""What is compiled: model files, and models that are objects, as modules of the IR."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from lowerdeck.dialects.frameworks import OptionValue, declared_options
from lowerdeck.dialects.recursion import working_on_modules
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.pytorch import is_module, is_program, write_program
from lowerdeck.telling import telling

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from lowerdeck.passes.machinery.context import KernelStore, LowerdeckContext

Source: TypeAlias = "str | os.PathLike[str] | Message | object"


def known_options(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Options of frontends that were given; TypeError for a name that none of them has."""
    from lowerdeck.plugins import load_installed

    load_installed()
    declared = declared_options()
    if unknown := [name for name in options if name not in declared]:
        raise TypeError(f"compile() has no option {unknown[0]!r}; frontends have {[*declared]}")
    return {name: value for name, value in options.items() if value is not None}


def import_and_lower(
    model: str,
    phase: str,
    options: CompileOptions,
    instead: Mapping[str, ModulePass | None] = MappingProxyType({}),
) -> tuple[ModuleOp, LowerdeckContext]:
    """
    The module of a model file at the end of a phase before `c`, and its context; `instead` gives
    what runs in place of passes, as for `run_to_phase`.
    """
    from lowerdeck.lowering.pipeline import run_to_phase

    with working_on_modules():
        module, context = read_model(model, options)
        run_to_phase(context, module, phase, telling(context), instead=instead)
    return module, context


def read_model(
    model: str, options: CompileOptions, kernels: KernelStore | None = None
) -> tuple[ModuleOp, LowerdeckContext]:
    """
    The module of a model file as it was read, before any pass, and its context, by which finished
    kernels are found in a store and kept there.
    """
    from lowerdeck.dialects.registry import register_dialects
    from lowerdeck.frontends import load_model
    from lowerdeck.lowering.pipeline import check_options
    from lowerdeck.passes.machinery.context import LowerdeckContext
    from lowerdeck.passes.machinery.fixed_dims import fix_dims
    from lowerdeck.passes.machinery.provenance import check_names
    from lowerdeck.plugins import load_installed

    load_installed()
    check_options(options)
    context = LowerdeckContext(options=options, kernels=kernels)
    register_dialects(context)
    options.progress("import")
    module = load_model(
        model,
        outputs=options.outputs,
        input_shapes=options.input_shapes,
        fixed=options.fixed,
        context=context,
        **options.import_options,
    )
    fix_dims(module, options.dims or {})
    check_names(module, options)
    return module, context


def name_of(path: str, options: CompileOptions) -> str:
    """The name of a model in C: the one asked for, or that of its file."""
    return _untaken(options.name) if options.name is not None else model_name(path)


def model_name(path: str) -> str:
    """The name of a model in C: that of its file or folder, as an identifier."""
    base = os.path.basename(os.path.abspath(path))
    stem = base if os.path.isdir(path) else os.path.splitext(base)[0]
    name = re.sub(r"[^A-Za-z0-9_]", "_", stem)
    if not name or name[0].isdigit():
        name = f"model_{name}"
    return _untaken(name)


def _untaken(name: str) -> str:
    is_taken = name.lower() in _TAKEN or name.startswith("lowerdeck")
    return f"model_{name}" if is_taken else name


_TAKEN = frozenset(
    """
    example main
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
    stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar
    wchar wctype alloca dirent endian fcntl features malloc memory pthread sched strings syslimits
    unistd
    all all_build clean depend edit_cache help install package package_source rebuild_cache
    run_tests test zero_check
    """.split()
)
"""What the files of a model and the targets of its build file are not called: other files that go
along, headers of C and POSIX, what CMake knows."""


@contextmanager
def model_file(model: Source, args: Sequence[Any] | None = None) -> Generator[str]:
    """
    The model as a file; one in memory, also of PyTorch or Keras, is written to a temporary one.
    `args` are the arguments for which a module of PyTorch is exported; TypeError for other models.
    """
    if is_program(model) or is_module(model):
        with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
            path = os.path.join(folder, "model.pt2")
            write_program(model, args, path)
            yield path
        return
    if args is not None:
        raise TypeError(f"arguments are for modules of PyTorch, not for {type(model).__name__}")
    if isinstance(model, str | os.PathLike):
        yield os.fspath(cast("str | os.PathLike[str]", model))
        return
    if _is_of_keras(model):
        with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
            path = os.path.join(folder, "model.keras")
            cast(Any, model).save(path)
            yield path
        return
    from lowerdeck.frontends.frontend import frontends

    # What torch.onnx.export returns holds a ModelProto.
    message = model if hasattr(model, "DESCRIPTOR") else getattr(model, "model_proto", None)
    if not hasattr(message, "DESCRIPTOR"):
        raise TypeError(
            "a model is a path, an ONNX ModelProto, a TensorFlow GraphDef, a module or program of "
            f"PyTorch, or a Keras model, not {type(model).__name__}; {_advice(model)}"
        )
    message = cast("Message", message)
    kind = message.DESCRIPTOR.name
    suffixes = {name: suffix for f in frontends() for name, suffix in f.messages.items()}
    if kind not in suffixes:
        raise TypeError(f"a {kind} is no model; expected one of {', '.join(suffixes)}")
    with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
        path = os.path.join(folder, f"model{suffixes[kind]}")
        with open(path, "wb") as file:
            file.write(message.SerializeToString())
        yield path


def _is_of_keras(model: object) -> bool:
    """True for a model of Keras, whose package need not be here."""
    return any(
        cls.__name__ == "Model" and cls.__module__.partition(".")[0] in ("keras", "tf_keras")
        for cls in type(model).__mro__
    )


_ADVICE = {
    "torch": "torch.export.export(module, arguments) makes what is compiled here",
    "keras": "give the model that it is of",
    "tensorflow": "tf.saved_model.save(module, folder) writes what is read from the folder",
    "onnx_ir": "onnx_ir.to_proto(model) makes a ModelProto of it",
    "onnxruntime": "give the file that the session was made from",
}
"""What to write instead of giving an object, by the package of its class or of a base."""


def _advice(model: object) -> str:
    packages = [cls.__module__.partition(".")[0] for cls in type(model).__mro__]
    found = next((_ADVICE[name] for name in packages if name in _ADVICE), None)
    return found or "bytes of an ONNX file are read by onnx.load_from_string"
