"""Weights in four bits that suit samples: `quantize_weights`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lowerdeck.binding import RunError
from lowerdeck.calibration import CalibrationError, Data
from lowerdeck.compiler import CompileOptions, compile_with, import_and_lower
from lowerdeck.dialects.frameworks import OptionValue, exports
from lowerdeck.dialects.recursion import working_on_modules
from lowerdeck.exporting import phase_of
from lowerdeck.model import Array
from lowerdeck.passes.fuse.observe_layers import OBSERVED
from lowerdeck.passes.linear.narrow_weights import NarrowWeightsPass
from lowerdeck.passes.linear.rounding import Moments, as_halves_for
from lowerdeck.passes.machinery.options import OptionError, block_of
from lowerdeck.reading import Source, known_options, model_file, read_model
from lowerdeck.samples import samples_of
from lowerdeck.telling import telling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["quantize_weights"]

_MOST_ROWS = 1 << 13
"""Of a matrix whose left factors are looked at: their moments are a square of as many."""


def quantize_weights(
    model: Source,
    calibration: Data,
    path: str | os.PathLike[str],
    *,
    weight_format: str = "int4",
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    skip_nodes: str | Sequence[str] | None = None,
    **import_options: OptionValue,
) -> None:
    """
    Write the model as ONNX with its matrices in four bits a weight, rounded so that products with
    what the samples make of their left factors change least (GPTQ): better than `compile` with the
    same `weight_format`, which rounds each weight to nearest. `compile` keeps them in four bits.

    `calibration` holds samples of the inputs, as for `quantize`; the other arguments are those of
    `compile`. Weights of other layers, tables, and matrices inside of loops stay as they are: no
    sample says how they are best rounded. CalibrationError for samples that do not fit,
    FrontendError or CompileError for a model that cannot be exported; then nothing is written.
    """
    options = CompileOptions(
        outputs=outputs,
        input_shapes=input_shapes,
        dims=dims,
        fixed=fixed,
        skip_nodes=skip_nodes,
        weight_format=weight_format,
        import_options=known_options(import_options),
    )
    quantize_weights_with(model, calibration, os.fspath(path), options)


def quantize_weights_with(model: Source, data: Data, path: str, options: CompileOptions) -> None:
    """`quantize_weights` with the options as one value."""
    block = None if options.weight_format is None else block_of(options.weight_format)
    if block is None:
        found = options.weight_format
        raise OptionError([("weight_format", f"'{found}' is not one of int4, int4:BLOCK")])
    if (phase := phase_of(path)) != "onnx":
        raise OptionError([("path", f"{path}: such weights are for .onnx")])
    with model_file(model) as file:
        options.progress("calibrate")
        pass_ = _rounding(_moments(file, data, replace(options, weight_format=None)))
        module, _ = import_and_lower(file, phase, options, {pass_.name: pass_})
        options.progress("export")
        exports()[phase].write()(module, path)


def _moments(path: str, data: Data, options: CompileOptions) -> dict[bytes, Moments]:
    """Those of the rows of left factors over all samples, by their constant factor."""
    from lowerdeck.lowering.pipeline import run_to_phase
    from lowerdeck.passes.fuse.layers import layers_of, matrices
    from lowerdeck.passes.machinery.provenance import check_names

    with working_on_modules():
        module, context = read_model(path, options)
        # The matrices that are to stay as they are have to be there, before samples are looked at.
        check_names(module, options, must_match=True)
        run_to_phase(context, module, "optimized", telling(context))
    layers = layers_of(module)
    observed = matrices(layers)
    if not observed:
        raise CalibrationError(f"{path}: there is no product with a constant matrix")
    sizes = {first: layers[number].weight.array.shape[0] for number, first in observed.items()}
    sums = {first: Moments(size) for first, size in sizes.items() if size <= _MOST_ROWS}
    observer = compile_with(path, replace(options, probe="matrices"), cache=False)
    own = [info for info in observer.outputs if not info.name.startswith(OBSERVED)]
    for number, sample in enumerate(samples_of(data, observer.inputs, own)):
        try:
            found = observer(sample)
        except (RunError, ValueError) as error:
            raise CalibrationError(f"calibration: sample {number}: {error}") from error
        weight = np.sqrt(weight_of(found[own[0].name])) if own else 1
        for first, total in sums.items():
            rows = found[f"{OBSERVED}{first}"].reshape(-1, sizes[first])
            if not np.isfinite(rows).all():
                raise CalibrationError(
                    f"calibration: sample {number}: what a product reads has NaN or infinities"
                )
            total.add(rows * weight)
    result: dict[bytes, Moments] = {}
    for number, first in observed.items():
        if first in sums:
            array = layers[number].weight.array
            result.setdefault(_digest(array), Moments(len(array))).join(sums[first])
    return result


_SURE = 0.1
"""How much a sample counts whose decision is sure; one of which all is open counts 1 more."""


def weight_of(scores: Array) -> float:
    """
    How much a sample counts: where the model gives probabilities, the more the less sure they are,
    by sums of p (1 - p), for what is lost changes close decisions; otherwise all count the same.
    """
    rows = scores.reshape(-1, scores.shape[-1] if scores.ndim else 1).astype(np.float64)
    if rows.size == 0 or rows.shape[1] < 2 or (rows < 0).any():
        return 1.0
    if not np.allclose(rows.sum(1), 1, atol=1e-2):
        return 1.0
    return _SURE + float((rows * (1 - rows)).sum(1).mean())


def _rounding(moments: Mapping[bytes, Moments]) -> NarrowWeightsPass:
    class RoundedForSamplesPass(NarrowWeightsPass):
        keeps_others = True

        def halves(self, array: Array, axis: int, block: int) -> tuple[Array, ...] | None:
            found = moments.get(_digest(array)) if axis == 0 else None
            return None if found is None else as_halves_for(array, found.mean, block)

    return RoundedForSamplesPass()


def _digest(array: Array) -> bytes:
    head = f"{array.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).digest()
