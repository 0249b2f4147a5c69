"""The types of the options in a configuration, which are the same wherever an option is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np


def _is_integer(value: Any) -> bool:
    """True for an integer that can be a size or an axis, of which none has more than 31 bits."""
    return isinstance(value, int) and abs(value) < 1 << 31


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _are(value: Any, is_one: Callable[[Any], bool]) -> bool:
    """True for one item or a list of items."""
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return all(is_one(item) for item in items)


def _are_integers(value: Any) -> bool:
    return _are(value, _is_integer)


def _are_sizes(value: Any) -> bool:
    return _are(value, lambda item: item is None or _is_integer(item))


def _are_integers_in_pairs(value: Any) -> bool:
    return _are(value, _are_integers)


def _is_padding(value: Any) -> bool:
    return isinstance(value, str) or _are_integers_in_pairs(value)


def _is_table(value: Any) -> bool:
    """True for a number, or for lists of numbers that are equally long."""
    try:
        return np.array(value).dtype.kind in "bif"
    except ValueError:
        return False


def _is_number_or_word(value: Any) -> bool:
    return isinstance(value, int | float | str)


def _is_policy(value: Any) -> bool:
    """True for the name of a type, or for a policy with its configuration."""
    if not isinstance(value, dict):
        return isinstance(value, str)
    entry = cast("dict[str, Any]", value)
    return isinstance(entry.get("class_name"), str) and isinstance(entry.get("config"), dict)


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "an integer": (
        _is_integer,
        """
        block_size decimals depth_multiplier fft_length filters frame_length frame_step groups
        head_dim height input_dim k key_dim n num num_bins num_classes num_heads
        num_key_value_heads num_mel_bins num_query_heads num_tokens output_dim sequence_length
        sequence_stride units value_dim width
        """,
    ),
    "a number": (
        _is_number,
        """
        epsilon mag_exp mask_value max_freq max_value min_freq min_power negative_slope order
        ref_power sampling_rate theta threshold top_db
        """,
    ),
    "a word": (
        _is_word,
        """
        class_name data_format equation function interpolation merge_mode method mode output_mode
        score_mode subscripts
        """,
    ),
    "a number or a word": (_is_number_or_word, "ord"),
    "an integer or a list of integers": (
        _are_integers,
        """
        attention_axes axis dilation_rate dims kernel_size output_size pool_size shift size strides
        """,
    ),
    "a size or a list of sizes": (_are_sizes, "target_shape output_padding"),
    "integers or pairs of them": (_are_integers_in_pairs, "axes cropping pad_width"),
    "a word, integers or pairs of them": (_is_padding, "padding"),
    "a number or a table of numbers": (_is_table, "bin_boundaries mean offset scale variance"),
    "a word or a list of numbers": (lambda value: _is_word(value) or _is_table(value), "window"),
    "the name of a type, or a policy": (_is_policy, "dtype"),
}

_EXPECTED = {
    name: (is_valid, expected)
    for expected, (is_valid, names) in _KINDS.items()
    for name in names.split()
}

_REQUIRED = frozenset("dims height n units width".split())
"""Options that are never nothing."""


def problems_of(config: Mapping[str, Any]) -> list[str]:
    """What is wrong with the types of the options of a layer or an operation."""
    found: list[str] = []
    for name, value in config.items():
        is_valid, expected = _EXPECTED.get(name, (None, ""))
        if is_valid is None or (value is None and name not in _REQUIRED):
            continue
        if not is_valid(value):
            found.append(f"'{name}' is {str(value)[:80]}, expected {expected}")
    return found
