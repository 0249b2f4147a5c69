"""Weights in the HDF5 format, which needs the package h5py."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.frontends.errors import FrontendError


def read_layers(path: str, names: Iterable[str]) -> dict[str, dict[int, NDArray[Any]]]:
    """
    The blobs by number of those of the layers `names` that the file has: it holds them as
    `data/LAYER/NUMBER`. FrontendError without h5py, or if the file is no such file.
    """
    try:
        h5py: Any = import_module("h5py")
    except ImportError:
        raise FrontendError.of_file(
            path,
            "these weights are in the HDF5 format, which needs the package h5py; "
            "install lowerdeck[hdf5], or save them as caffemodel with Caffe",
        ) from None
    try:
        with h5py.File(path, "r") as file:
            if (data := file.get("data")) is None:
                raise FrontendError.of_file(path, "has no group 'data', expected weights of Caffe")
            found = {name: data.get(name) for name in names}
            return {
                name: _blobs(path, name, layer)
                for name, layer in found.items()
                if layer is not None
            }
    except OSError as error:
        message = f"is not valid HDF5, or is damaged: {error}; get a fresh copy"
        raise FrontendError.of_file(path, message) from None


def _blobs(path: str, name: str, layer: Any) -> dict[int, NDArray[Any]]:
    blobs: dict[int, NDArray[Any]] = {}
    for key in layer:
        if key.isdecimal():
            array = np.asarray(layer[key])
            if array.dtype.kind != "f":
                message = f"blob {key} of '{name}' is of the type {array.dtype}, expected floats"
                raise FrontendError.of_file(path, message)
            blobs[int(key)] = array
    return blobs
