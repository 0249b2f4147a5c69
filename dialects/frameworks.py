"""
The frameworks whose models are compiled: what the compiler knows of each, registered once.

Whatever is made for all frameworks (reading, interpreting, legalizing, listing operators, the
options of the command line) is made from this register. It holds names of what the folders above
this one define, each imported when it is first used.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from lowerdeck.dialects.records import record

if TYPE_CHECKING:
    from xdsl.ir import Dialect, Operation
    from xdsl.passes import ModulePass

PassFactory: TypeAlias = "Callable[[], type[ModulePass]]"
OptionValue: TypeAlias = "str | os.PathLike[str] | Sequence[str] | None"


def lazy(module: str, name: str) -> Callable[[], Any]:
    """The function that imports a module of this package and takes `name` from it."""
    return lambda: getattr(import_module(f"lowerdeck.{module}"), name)


class FrameworkOp(ABC):
    """An op that stands for an operator of a framework: an interface of the dialects' ops."""

    @property
    @abstractmethod
    def op_type(self) -> str:
        """What the framework calls the operator, without domain and version."""


@record
class ImportOption:
    """What a user may say of a model besides the model itself."""

    name: str
    """The keyword of `compile`; the flag is `--name`, with dashes."""
    metavar: str
    help: str
    is_list: bool = False
    """True for strings in any order; a flag has them with commas between them."""
    is_path: bool = False
    is_flag: bool = False
    """True for one that has no value: it is asked for, or not."""
    formats: tuple[str, ...] = ()
    """The formats of the framework that it is for; none means all."""
    refusal: str = ""
    """What is said of a model of another format."""

    def parse(self, text: str | None) -> OptionValue:
        """The value of a flag; None without it, an empty list for an empty one."""
        if text is not None and self.is_flag:
            return "" if text.lower() in ("", "0", "false", "no") else "yes"
        if text is None or not self.is_list:
            return text
        return [part for part in map(str.strip, text.split(",")) if part]

    def key(self, value: Any) -> Any:
        """A value as the cache knows it."""
        if self.is_list:
            return sorted(value)
        return os.path.abspath(value) if self.is_path else value


@record
class Export:
    """How models are written in the format of a framework."""

    suffix: str
    """That of the file, by which the format is chosen."""
    passes: Mapping[str, PassFactory]
    """Those that lead from core to the framework's dialect, in order."""
    write: Callable[[], Any]
    """Writes a module of the dialect to a path."""
    simplification: Mapping[str, PassFactory] = field(default_factory=dict[str, "PassFactory"])
    """
    Those that simplify a module of the dialect, in order. With them, a model of the framework is
    written without the way over core: its nodes stay what they are.
    """
    after: str = "optimized"
    """
    The phase that it branches off from: `optimized`, or `legal` if the framework has layers of its
    own for what is optimized away, such as batch normalizations.
    """
    weights: Callable[[], Any] | None = None
    """The class of the ops of another dialect that are written as weights, if there is one."""


@record
class Framework:
    """
    One framework. Its name is that of its dialect.

    The members are functions that give what they are named after, so that nothing is imported
    before it is used.
    """

    name: str
    dialect: Callable[[], Dialect]
    frontend: Callable[[], Any]
    """Its `frontends.frontend.Frontend`: formats, options, import."""
    interpreter: Callable[[], Any]
    """Runs one op: from it, the values of its operands and what runs a region, to its results."""
    legalization: Mapping[str, PassFactory]
    """The passes that lead to `core`, in order."""
    support: Callable[[], Any]
    """How an operator is compiled: `passes.legalize.support.Support` by domain, name and opset."""
    graphs: Callable[[], Any] | None = None
    """For a dialect whose graphs are no functions, its `interpret.graphs.GraphRunner`."""
    infer_types: Callable[[], Any] | None = None
    """
    What sets the types in a `func.func` that holds its ops: those of what they are legalized to.
    """
    follower: Callable[[], Any] | None = None
    """
    The class of what finds the types of its ops one after the other, while a program is imported
    that states none.
    """
    options: Sequence[ImportOption] = field(default=())
    export: Export | None = None
    """Its exporter, if there is one. The phase that its passes make has the framework's name."""


FRAMEWORKS: dict[str, Framework] = {}
"""All frameworks by name, in the order in which models are tried with them."""

LEGALIZATION: dict[str, PassFactory] = {}
"""The legalization of all frameworks: passes by name."""

EXPORT: dict[str, PassFactory] = {}
"""What leads to the dialects of frameworks: passes by name."""


def register(framework: Framework) -> None:
    """Let the compiler know a framework."""
    FRAMEWORKS[framework.name] = framework
    LEGALIZATION.update(framework.legalization)
    if framework.export is not None:
        EXPORT.update(framework.export.passes)
        EXPORT.update(framework.export.simplification)


def framework_of(op: Operation) -> Framework | None:
    """The framework whose dialect an op is of; None for the compiler's own."""
    return FRAMEWORKS.get(op.dialect_name())


def exports() -> dict[str, Export]:
    """The exporters, by the name of the phase that each of them makes by itself."""
    found = {name: framework.export for name, framework in FRAMEWORKS.items()}
    return {name: export for name, export in found.items() if export is not None}


def _register(name: str, **given: Any) -> None:
    """Register a framework whose parts are where those of all are, but for what is given."""
    rooms = f"passes.legalize.{name}"
    passes = {f"legalize-{name}": lazy(rooms, f"Legalize{name.capitalize()}Pass")}
    usual: dict[str, Any] = {
        "dialect": lambda: lazy(f"dialects.{name}", f"{name}_dialect")()(),
        "frontend": lazy(f"frontends.{name}.frontend", "FRONTEND"),
        "interpreter": lazy(f"{rooms}.evaluate", "run_op"),
        "legalization": passes,
        "support": lazy(f"{rooms}.support", "support"),
        "infer_types": lazy(f"{rooms}.framework", "infer_types"),
    }
    register(Framework(name, **{**usual, **given}))


IMPORT_WEIGHTS = ImportOption(
    "import_weights",
    "FILE",
    "weights that take the place of those of the model, by name: .pth, .safetensors, .npz, "
    ".pdparams, or .ckpt of MindSpore",
    is_path=True,
)
"""What can be said of models of every framework."""


def declared_options() -> dict[str, ImportOption]:
    """What can be said of models of any framework, by name; the help is that of all."""
    found: dict[str, ImportOption] = {IMPORT_WEIGHTS.name: IMPORT_WEIGHTS}
    for framework in FRAMEWORKS.values():
        for option in framework.options:
            known = found.get(option.name)
            text = option.help if known is None else f"{known.help}; {option.help}"
            found[option.name] = replace(option if known is None else known, help=text)
    return found


_register(
    "onnx",
    interpreter=lazy("dialects.interpret.onnx", "run_op"),
    options=(
        ImportOption(
            "optional",
            "A,B",
            "inputs that may be left out, for they have an initializer; those that are not "
            "named are constants (default: all of them, unless one is a weight by its role)",
            is_list=True,
        ),
    ),
    export=Export(
        ".onnx",
        passes={"convert-to-onnx": lazy("exporters.onnx.convert", "ConvertToOnnxPass")},
        write=lazy("exporters.onnx", "write_model"),
        simplification={
            "simplify-onnx": lazy("exporters.onnx.simplify.simplify_onnx", "SimplifyOnnxPass"),
            "recover-operators": lazy(
                "exporters.onnx.simplify.recover_operators", "RecoverOperatorsPass"
            ),
        },
    ),
)

_register(
    "tf1",
    interpreter=lazy("dialects.interpret.tf1", "run_op"),
    graphs=lazy("dialects.interpret.tf1.graph", "GRAPHS"),
    legalization={
        "raise-tf1-control-flow": lazy("passes.control_flow", "RaiseTf1ControlFlowPass"),
        "legalize-tf1": lazy("passes.legalize.tf1", "LegalizeTf1Pass"),
    },
    options=(
        ImportOption("weights", "FILE", "a graph's checkpoint", is_path=True),
        ImportOption(
            "optional",
            "A,B",
            "placeholders with a default, instead of those of floats that decide no branch",
            is_list=True,
        ),
        ImportOption(
            "tags",
            "A,B",
            "tags of the graph in a SavedModel (default: serve)",
            is_list=True,
            formats=("saved-model",),
            refusal="tags choose among the graphs of a SavedModel only",
        ),
        ImportOption(
            "signature",
            "NAME",
            "signature of a SavedModel (default: serving_default)",
            formats=("saved-model", "meta-graph"),
            refusal="it has no signatures, which a SavedModel has",
        ),
    ),
)

_register(
    "tflite",
    options=(
        ImportOption(
            "signature", "NAME", "signature of a .tflite file (default: the first subgraph)"
        ),
    ),
)

_register("keras")

_register(
    "pt2",
    follower=lazy("passes.legalize.torchscript.follower", "Follower"),
    options=(
        ImportOption(
            "input_type",
            "x=1x3xnxf32,...",
            "types of the inputs of a TorchScript file: sizes with x between them, names for "
            "open ones, and the element type (default: f32)",
            is_list=True,
            formats=("torchscript",),
            refusal="types of inputs are in every file but those of TorchScript",
        ),
    ),
)

_register("mindir")

_register(
    "paddle",
    options=(
        ImportOption(
            "weights",
            "FILE",
            "the weights of a program of PaddlePaddle that are not beside it",
            is_path=True,
        ),
    ),
)

_register(
    "mxnet",
    options=(
        ImportOption(
            "weights",
            "FILE",
            "the .params of a symbol of MXNet, if there is not one beside it",
            is_path=True,
        ),
    ),
)

_register(
    "darknet",
    options=(
        ImportOption("weights", "FILE", "the .weights of a .cfg", is_path=True),
        ImportOption(
            "raw_heads",
            "",
            "results of a .cfg are what its heads get, not boxes",
            is_flag=True,
        ),
    ),
)

_register(
    "caffe",
    interpreter=lazy("dialects.interpret.caffe", "run_op"),
    options=(
        ImportOption("weights", "FILE", "the .caffemodel of a .prototxt", is_path=True),
        ImportOption("stages", "A,B", "stages of a .prototxt's net", is_list=True),
        ImportOption(
            "transform",
            "INPUT,...",
            "inputs of a .prototxt to which their transform_param is applied",
            is_list=True,
        ),
    ),
    export=Export(
        ".prototxt",
        passes={"convert-to-caffe": lazy("exporters.caffe.convert", "ConvertToCaffePass")},
        write=lazy("exporters.caffe", "write_model"),
        after="legal",
        weights=lazy("dialects.core.constant", "ConstantOp"),
    ),
)
