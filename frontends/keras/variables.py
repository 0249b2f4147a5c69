"""The variables that a layer has: their names, in the order in which it makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lowerdeck.dialects.keras.policies import policy_of
from lowerdeck.dialects.records import record


@record
class Variable:
    """A variable of a layer."""

    name: str
    """Its name, after the attribute of the layer inside that has it: `query_dense/kernel`."""
    is_trained: bool = True

    @property
    def folder(self) -> str:
        """The layer inside that has it, or nothing."""
        return self.name.rpartition("/")[0]


Config = Mapping[str, Any]


def _with(config: Config, *, biased: str = "use_bias") -> list[Variable]:
    """A kernel, and a bias if there is one."""
    return [Variable("kernel"), *([Variable("bias")] if config.get(biased, True) else [])]


def _separable(config: Config) -> list[Variable]:
    bias = [Variable("bias")] if config.get("use_bias", True) else []
    return [Variable("depthwise_kernel"), Variable("pointwise_kernel"), *bias]


def _affine(config: Config) -> list[Variable]:
    scale = [Variable("gamma")] if config.get("scale", True) else []
    if config.get("rms_scaling"):
        return [Variable("gamma")]
    return [*scale, *([Variable("beta")] if config.get("center", True) else [])]


def _batch(config: Config) -> list[Variable]:
    moving = [Variable("moving_mean", False), Variable("moving_variance", False)]
    return [*_affine(config), *moving]


def _cell(config: Config) -> list[Variable]:
    bias = [Variable("cell/bias")] if config.get("use_bias", True) else []
    return [Variable("cell/kernel"), Variable("cell/recurrent_kernel"), *bias]


def _bare_cell(config: Config) -> list[Variable]:
    return [Variable(variable.name.removeprefix("cell/")) for variable in _cell(config)]


def _attention(prefix: str) -> Callable[[Config], list[Variable]]:
    def variables(config: Config) -> list[Variable]:
        parts = ["kernel", "bias"] if config.get("use_bias", True) else ["kernel"]
        layers = [f"{prefix}{name}_dense" for name in ("query", "key", "value", "output")]
        return [Variable(f"{layer}/{part}") for layer in layers for part in parts]

    return variables


def _scaled(config: Config) -> list[Variable]:
    scale = [Variable("scale")] if config.get("use_scale", False) else []
    is_concat = config.get("score_mode") == "concat"
    return [*scale, *([Variable("concat_score_weight")] if is_concat else [])]


def _additive(config: Config) -> list[Variable]:
    return [Variable("scale")] if config.get("use_scale", True) else []


def _normalization(config: Config) -> list[Variable]:
    if config.get("mean") is not None:
        return []
    names = ("mean", "variance", "count")
    return [Variable(name, False) for name in names]


def _spectrogram(config: Config) -> list[Variable]:
    other = {"real": "imag", "imag": "real"}.get(config.get("mode", "log"))
    return [Variable(f"{part}_kernel") for part in ("real", "imag") if part != other]


_QUANTIZED = frozenset({"Dense", "EinsumDense", "Embedding"})

_KERNELS = """
    Dense Conv1D Conv2D Conv3D Conv1DTranspose Conv2DTranspose Conv3DTranspose DepthwiseConv1D
    DepthwiseConv2D
"""

_VARIABLES: Mapping[str, Callable[[Config], list[Variable]]] = {
    **dict.fromkeys(_KERNELS.split(), _with),
    "EinsumDense": lambda config: (
        _with(config, biased="bias_axes") if config.get("bias_axes") else [Variable("kernel")]
    ),
    **dict.fromkeys(["SeparableConv1D", "SeparableConv2D"], _separable),
    "BatchNormalization": _batch,
    **dict.fromkeys(["LayerNormalization", "GroupNormalization"], _affine),
    "RMSNormalization": lambda config: [Variable("scale")],
    "LayerScale": lambda config: [Variable("gamma")],
    "Embedding": lambda config: [Variable("embeddings")],
    "PReLU": lambda config: [Variable("alpha")],
    **dict.fromkeys("LSTM GRU SimpleRNN ConvLSTM1D ConvLSTM2D ConvLSTM3D".split(), _cell),
    **dict.fromkeys(["LSTMCell", "GRUCell", "SimpleRNNCell"], _bare_cell),
    "MultiHeadAttention": _attention(""),
    "GroupQueryAttention": _attention("_"),
    "Attention": _scaled,
    "AdditiveAttention": _additive,
    "Normalization": _normalization,
    "SpectralNormalization": lambda config: [Variable("vector_u", False)],
    "STFTSpectrogram": _spectrogram,
}


def _scales(class_name: str, config: Config) -> list[Variable]:
    """What quantization adds: scales, and zero points and groups where rows share them."""
    policy = policy_of(config)
    if policy is None or policy.mode not in ("int8", "int4") or class_name not in _QUANTIZED:
        return []
    name = "embeddings" if class_name == "Embedding" else "kernel"
    found = [Variable(f"{name}_scale", False)]
    if policy.mode == "int4" and policy.block > 0:
        found += [Variable(f"{name}_zero", False), Variable("g_idx", False)]
    return found


def variables_of(class_name: str, config: Config) -> list[Variable]:
    """The variables of a layer of a class; of a class without any, none."""
    make = _VARIABLES.get(class_name)
    if make is None:
        return []
    scales = _scales(class_name, config)
    # Integers are not trained.
    own = [
        Variable(variable.name, variable.is_trained and (not scales or variable.name == "bias"))
        for variable in make(config)
    ]
    return [*own, *scales]
