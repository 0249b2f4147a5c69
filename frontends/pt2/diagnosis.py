"""What other files of PyTorch are, and the lines of Python that make of each one that is read."""

from __future__ import annotations

import io
import zipfile
from typing import Any, cast

from lowerdeck.frontends.pickles import Made, PickleError, read_pickle
from lowerdeck.frontends.pt2.archive import ArchiveError, Entries

_EXPORT = (
    "program = torch.export.export(model.eval(), (x,)); torch.export.save(program, 'model.pt2')"
)
_WITH_MODEL = f"model = torch.load(path, weights_only=False); {_EXPORT}"
_WITH_WEIGHTS = f"model.load_state_dict(torch.load(path)); {_EXPORT}"

_MOST = 1 << 26
"""Bytes of a pickle that is looked into."""


def diagnosis(path: str) -> str | None:
    """
    What a ZIP archive of PyTorch is that holds no program; None for any other file, and for one
    with a program.
    """
    if not _is_zip(path):
        return None
    try:
        entries = Entries(path)
        if entries.has("archive_format") and entries.under("models/"):
            return None
        if any("data/aotinductor/" in name for name in entries.entries):
            return (
                "is a package of AOTInductor: code that is compiled for one machine, without the "
                f"program; in Python: {_EXPORT}"
            )
        if entries.has("constants.pkl") and entries.under("code/"):
            return None
        if "serialized_exported_program.json" in entries.entries:
            return (
                "is of an older version of torch.export; with that version, in Python: program = "
                f"torch.export.load(path); model = program.module(); {_EXPORT}"
            )
        if entries.has("bytecode.pkl"):
            return (
                "is for PyTorch's mobile interpreter and has no code beside its bytecode; in "
                f"Python, with the model: {_EXPORT}"
            )
        if entries.has("data.pkl"):
            return _of_pickle(read_pickle(io.BytesIO(entries.read("data.pkl", _MOST))))
    except (ArchiveError, PickleError, OSError):
        return None
    return None


def _is_zip(path: str) -> bool:
    try:
        return zipfile.is_zipfile(path)
    except (OSError, zipfile.BadZipFile):  # the latter for an archive on several disks
        return False


def _of_pickle(found: Any) -> str:
    """What `torch.save` has written."""
    if isinstance(found, Made) and found.name != "collections.OrderedDict":
        return (
            f"is a pickled object of {found.name or 'a class'}, whose code is not in the file, and "
            f"which only running that code makes a model; in Python: {_WITH_MODEL}"
        )
    keys = list(cast("dict[Any, Any]", found)) if isinstance(found, dict) else []
    if "param_groups" in keys:
        return f"is the state of an optimizer, without weights or a program; in Python: {_EXPORT}"
    return (
        "holds weights alone (a state_dict), without a program; give it to a model with "
        f"--import-weights, or in Python: {_WITH_WEIGHTS}"
    )
