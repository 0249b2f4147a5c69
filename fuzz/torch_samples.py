"""
PyTorch's own samples of its operators, with the answers that it gave, as a corpus.

    python -m fuzz.torch_samples FOLDER [--filter REGEX] [--dtypes float32,int64] [--most N]
    python -m models.corpus pt2 --corpus FOLDER --interpret

The first runs in a Python that has PyTorch and expecttest and needs nothing of this project. A
case is one operator for one type of elements: a program of torch.export with the samples of
PyTorch's own tests, of broadcasting, empty tensors, views and other arguments. What export itself
refuses is left out.
"""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from models.torch_exports import Case, tensors_of

RANDOM = re.compile(
    "rand|normal|bernoulli|dropout|multinomial|uniform|poisson|exponential|cauchy|geometric|rrelu"
    "|empty|resize|sparse|nested|to_sparse|sampled|fractional|prims|masked\\.|signal\\."
)
LARGEST = 4000
"""Elements of a tensor."""


class Calls(torch.nn.Module):
    """An operator called for several samples."""

    def __init__(self, op: Any, specs: Sequence[Any], plain: Sequence[Sequence[Any]]) -> None:
        super().__init__()
        self.op, self.specs, self.plain = op, specs, plain

    def forward(self, *tensors: Any) -> Any:
        rest = iter(tensors)
        results = []
        for spec, leaves in zip(self.specs, self.plain, strict=True):
            given = [next(rest) if leaf is TENSOR else leaf for leaf in leaves]
            args, kwargs = pytree.tree_unflatten(given, spec)
            found = pytree.tree_leaves(self.op(*args, **kwargs))
            kept = [one for one in found if isinstance(one, torch.Tensor)]
            results += [torch.view_as_real(o.resolve_conj()) if o.is_complex() else o for o in kept]
        return results


TENSOR = object()


def samples(op: Any, dtype: Any, most: int) -> Iterator[tuple[list[Any], Any]]:
    """The leaves of the arguments of each sample, and their structure."""
    count = 0
    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
        leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if any(t.numel() > LARGEST or t.is_complex() or t.layout != torch.strided for t in tensors):
            continue
        if any(isinstance(leaf, torch.Generator) or callable(leaf) for leaf in leaves):
            continue
        yield leaves, spec
        count += 1
        if count == most:
            return


def write(op: Any, found: Sequence[tuple[list[Any], Any]], folder: Path) -> None:
    """One case of several samples; of half of them each, if together they cannot be exported."""
    tensors = [leaf for leaves, _ in found for leaf in leaves if isinstance(leaf, torch.Tensor)]
    plain = [
        [TENSOR if isinstance(one, torch.Tensor) else one for one in leaves] for leaves, _ in found
    ]
    module = Calls(op, [spec for _, spec in found], plain).eval()
    case = Case(folder, "model.pt2")
    try:
        given = [one.detach().clone() for one in tensors]
        program = torch.export.export(module, tuple(given), strict=False)
        torch.export.save(program, case.model)
        results = program.module()(*[one.detach().clone() for one in tensors])
        signature = program.graph_signature
        case.sample(
            tensors_of("USER_INPUT", signature.input_specs, tensors),
            tensors_of("USER_OUTPUT", signature.output_specs, results),
            [],
        )
        case.finish()
    except Exception as error:  # whatever PyTorch refuses, the other samples are written
        shutil.rmtree(folder, ignore_errors=True)
        if len(found) == 1:
            print(f"{folder.name}: {error}".splitlines()[0], file=sys.stderr)
            return
        half = len(found) // 2
        write(op, found[:half], folder.with_name(f"{folder.name}_a"))
        write(op, found[half:], folder.with_name(f"{folder.name}_b"))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    from torch.testing._internal.common_methods_invocations import op_db

    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--dtypes", default="float32,int64,bool")
    parser.add_argument("--most", type=int, default=12, help="samples of one operator and type")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for op in op_db:
        for text in options.dtypes.split(","):
            dtype = getattr(torch, text)
            name = re.sub(r"\W", "_", f"{op.name}_{op.variant_test_name}_{text}")
            if RANDOM.search(op.name) or not re.search(options.filter, name):
                continue
            if dtype not in op.dtypes:
                continue
            torch.manual_seed(1)
            try:
                found = list(samples(op, dtype, options.most))
            except Exception as error:  # samples that this machine cannot have
                print(f"{name}: {type(error).__name__}", flush=True)
                continue
            if found:
                with torch.no_grad():
                    write(op, found, options.folder / "pt2" / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
