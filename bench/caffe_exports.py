"""
Models as nets of Caffe, read back by this compiler and by OpenCV.

    python -m bench.caffe_exports [MODEL.onnx ...] [--corpus FOLDER] [--filter REGEX] [--json F]

Each case of the corpus (see `corpus.py`), and each ONNX file that has inputs beside it (NAME.npz,
arrays "input:<tensor>", and "output:<tensor>" or else what onnxruntime makes of them), is exported
with layers of the SSD fork. The numbers of the net, compiled here and read by OpenCV's dnn module
(`pip install 'opencv-python-headless<5'`), are compared with those of the model. A line for each
says what became of it: what Caffe cannot say is refused; where OpenCV fails or differs, the layers
that it is known not to read as Caffe does are the reason. The exit status is 1 if our numbers
differ, or OpenCV's without such a reason.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from google.protobuf import text_format
from numpy.typing import NDArray

import lowerdeck
from bench.caffe_peer import MISSING, MOST, difference
from bench.peer_runs import load_onnxruntime
from bench.reference import recorded_inputs, recorded_outputs
from lowerdeck.compiler import CompileOptions
from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter, NetParameter
from lowerdeck.engines import LostTask
from lowerdeck.exporting import export_with
from models.campaign import add_options, engine_of, main_of
from models.corpus import REFUSALS, corpus_folder, load_cases

Arrays: TypeAlias = "Mapping[str, NDArray[Any]]"


@dataclass(frozen=True)
class Source:
    """A model, and what it computes from one set of inputs."""

    kind: str
    name: str
    path: Path
    inputs: Arrays
    expected: Arrays


@dataclass
class Outcome:
    """What became of a model; `reasons` are of OpenCV."""

    kind: str
    name: str
    refused: str = ""
    ours: str = ""
    """Empty if the numbers are the same."""
    opencv: str = ""
    reasons: list[str] = field(default_factory=list[str])

    @property
    def is_wrong(self) -> bool:
        """True if our numbers differ, or those of OpenCV without a known reason."""
        return bool(self.ours or (self.opencv and not self.reasons))

    @property
    def line(self) -> str:
        """What there is to say."""
        text = "same"
        if self.refused:
            text = f"refused: {self.refused}"
        elif self.ours:
            text = f"WRONG: {self.ours}"
        elif self.opencv:
            why = "; ".join(self.reasons) or "NO KNOWN REASON"
            text = f"same, but in OpenCV: {self.opencv} ({why})"
        return f"{self.kind:5} {self.name:28} {text}"


def sources(files: Sequence[Path], corpus: Path | None, names: str) -> Iterator[Source]:
    """The cases of the corpus, and models with what is beside them, of the names that match."""
    for path in files:
        if not re.search(names, path.stem):
            continue
        beside = str(path.with_suffix(".npz"))
        inputs = recorded_inputs(beside)
        outputs = recorded_outputs(beside) or _by_onnxruntime(path, inputs)
        yield Source("onnx", path.stem, path, inputs, outputs)
    for kind in () if corpus is None else ("tf1", "caffe"):
        assert corpus is not None
        for case in load_cases(corpus, kind):
            if not re.search(names, case.name):
                continue
            inputs, expected = next(case.samples())
            chosen = {name: expected[name] for name in case.outputs}
            yield Source(kind, case.name, case.model, inputs, chosen)


def _by_onnxruntime(path: Path, inputs: Arrays) -> Arrays:
    """Outputs that last longer than the session."""
    loaded = load_onnxruntime(str(path), dict(inputs), 1)
    return {name: array.copy() for name, array in loaded.outputs().items()}


# What OpenCV is known not to read

_MISSING = frozenset("ArgMax Bias Clip DummyData Embed Parameter Reduction RNN Threshold".split())

_OTHERWISE: Mapping[str, Callable[[LayerParameter], bool]] = {
    "Convolution along another axis": lambda layer: layer.convolution_param.axis != 1,
    "Im2col has another shape": lambda layer: layer.type == "Im2col",
    "Eltwise of one dimension": lambda layer: (
        layer.type == "Input" and any(len(shape.dim) == 1 for shape in layer.input_param.shape)
    ),
    "InnerProduct along another axis": lambda layer: layer.inner_product_param.axis != 1,
    "LRN without k": lambda layer: layer.lrn_param.k != 1,
    "LSTM has other weights": lambda layer: layer.type == "LSTM",
    "MVN without eps": lambda layer: layer.type == "MVN",
    "Normalize for four dimensions": lambda layer: layer.type == "Normalize",
    "Tile without tiles": lambda layer: layer.type == "Tile",
}
"""What layers are to OpenCV."""


def reasons(net: NetParameter) -> list[str]:
    """Why OpenCV (4.14) may fail to read a net, or read another one."""
    layers = net.layer
    found = {f"no layer {layer.type}" for layer in layers if layer.type in _MISSING}
    found |= {why for why, applies in _OTHERWISE.items() if any(map(applies, layers))}
    read = {name for layer in layers for name in layer.bottom}
    for layer in layers:
        if layer.type == "Pooling" and not read.issuperset(layer.top[1:]):
            found.add("no places of maxima that nothing reads")
    tops = {name for layer in layers for name in layer.top}
    if any(layer.name in tops and layer.name not in layer.top for layer in layers):
        found.add("no layer with the name of a blob that another one makes")
    return sorted(found)


# One model


def _outcome(source: Source) -> Outcome:
    outcome = Outcome(source.kind, source.name)
    shapes = {name: array.shape for name, array in source.inputs.items()}
    names = list(source.expected)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "net.prototxt")
        options = CompileOptions(outputs=names, input_shapes=shapes, warn=lambda text: None)
        try:
            export_with(str(source.path), str(path), options, dialect="ssd")
        except REFUSALS as error:
            outcome.refused = " ".join(str(error).split())[:300]
            return outcome
        # A net takes and gives floats, also where the model has integers.
        inputs = {name: array.astype(np.float32) for name, array in source.inputs.items()}
        found = lowerdeck.compile(path, outputs=names, cache=False)(inputs)
        outcome.ours = _apart(found, source.expected)
        net = text_format.Parse(path.read_text(), NetParameter())
        try:
            outcome.opencv = _apart(_by_opencv(path, net, inputs, names), source.expected)
        except Exception as error:
            outcome.opencv = _said(error)
        if outcome.opencv:
            outcome.reasons = reasons(net)
    return outcome


def _by_opencv(path: Path, net: NetParameter, inputs: Arrays, names: Sequence[str]) -> Arrays:
    """Outputs, which OpenCV knows by the layers that make them last, or convolutions by these."""
    cv2: Any = import_module("cv2")
    cv2.setNumThreads(1)
    reader: Any = cv2.dnn.readNetFromCaffe(str(path), str(path.with_suffix(".caffemodel")))
    for name, array in inputs.items():
        reader.setInput(array, name)
    makers = {top: (layer.name, k) for layer in net.layer for k, top in enumerate(layer.top)}
    known = set(reader.getLayerNames())
    layers = [makers[name][0] if makers[name][0] in known else name for name in names]
    found: dict[str, NDArray[Any]] = {}
    tops = reader.forwardAndRetrieve(layers)
    for name, layer, each in zip(names, layers, tops, strict=True):
        number = makers[name][1]
        if number >= len(each):
            raise LookupError(f"{layer} has {len(each)} tops")
        found[name] = each[number]
    return found


def _said(error: Exception) -> str:
    """The message of an error of OpenCV without the place in its sources."""
    text = " ".join(str(error).split())
    return re.sub(r"^OpenCV\(.*?\) \S+ error: ", "", text)[:200]


def _apart(found: Arrays, expected: Arrays) -> str:
    """How outputs differ; empty if they do not."""
    for name, array in expected.items():
        if (apart := difference(np.asarray(found[name]), array)) > MOST:
            return f"{name} differs by {apart:.1e} of the largest value"
    return ""


# All of them


def main(arguments: Sequence[str] | None = None) -> int:
    """Go through the models and print a line for each; 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--corpus", help="the folder with the cases")
    parser.add_argument("--filter", default="", help="only models whose name matches")
    parser.add_argument("--json", type=Path, metavar="F")
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        import_module("cv2")
    except ImportError:
        print(MISSING, file=sys.stderr)
        return 1
    found: list[Outcome] = []
    chosen = sources(options.models, corpus_folder(options.corpus), options.filter)
    for source, future in engine_of(options).deal(_outcome, chosen):
        try:
            found.append(future.result())
        except LostTask:  # OpenCV may end it
            found.append(Outcome(source.kind, source.name, ours="the process died"))
        print(found[-1].line, flush=True)
    print(totals(found))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1))
    return int(any(each.is_wrong for each in found))


def totals(outcomes: Sequence[Outcome]) -> str:
    """A line for each kind of models."""
    lines: list[str] = []
    for kind in dict.fromkeys(each.kind for each in outcomes):
        own = [each for each in outcomes if each.kind == kind]
        nets = [each for each in own if not each.refused]
        counts = Counter("same" if not each.opencv else "others" for each in nets)
        right = sum(not each.ours for each in nets)
        lines.append(
            f"{kind}: {len(nets)} of {len(own)} models are nets of Caffe; the same numbers here "
            f"{right}, in OpenCV {counts['same']}; wrong {sum(each.is_wrong for each in own)}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
