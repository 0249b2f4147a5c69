"""From a model to a model file of another framework: `export`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.frameworks import OptionValue, exports
from lowerdeck.reading import Source, known_options, model_file

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

__all__ = ["export"]


def export(
    model: Source,
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    dialect: str = "bvlc",
    **import_options: OptionValue,
) -> None:
    """
    Write a model in the format that the suffix of `path` names: .onnx, or .prototxt for a net of
    Caffe, whose weights go to the .caffemodel beside it.

    A net has layers of BVLC Caffe, or with `dialect` "ssd" those of the SSD fork, too. The model
    and the other arguments are those of `compile`. FrontendError or CompileError lists
    everything that cannot be exported, and then nothing is written; ValueError for another suffix.
    """
    options = CompileOptions(
        outputs=outputs,
        input_shapes=input_shapes,
        dims=dims,
        fixed=fixed,
        import_options=known_options(import_options),
    )
    export_with(model, os.fspath(path), options, dialect=dialect)


def export_with(
    model: Source, path: str, options: CompileOptions, *, dialect: str = "bvlc"
) -> ModuleOp:
    """`export` with the options as one value; the module that was written."""
    phase = phase_of(path)
    instead: dict[str, ModulePass] = {}
    if phase == "caffe":
        from lowerdeck.exporters.caffe.convert import ConvertToCaffePass

        instead[ConvertToCaffePass.name] = ConvertToCaffePass(dialect)
    with model_file(model) as file:
        module, _ = import_and_lower(file, phase, options, instead)
        options.progress("export")
        exports()[phase].write()(module, path)
        return module


def phase_of(path: str) -> str:
    """The phase that the format of a file is written from; ValueError if its suffix has none."""
    suffix = os.path.splitext(path)[1].lower()
    for phase, each in exports().items():
        if each.suffix == suffix:
            return phase
    known = " or ".join(each.suffix for each in exports().values())
    raise ValueError(f"{path}: the format is not known by this name; expected one with {known}")
