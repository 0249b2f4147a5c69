"""The operators that a TorchScript file calls."""

from __future__ import annotations

from collections.abc import Iterator

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.frontend import Use
from lowerdeck.frontends.pt2.archive import ArchiveError, told
from lowerdeck.frontends.torchscript.archive import ScriptArchive
from lowerdeck.frontends.torchscript.builtins import Builtins, overload_of, target_of
from lowerdeck.frontends.torchscript.code import operators_in


def inventory(path: str) -> Iterator[Use]:
    """
    A use for each operator and function of the code that calls it. Of which overload a call is,
    only the types of its arguments say.
    """
    try:
        code = ScriptArchive(path).code
    except ArchiveError as error:
        raise FrontendError.of_file(path, told(error)) from None
    builtins = Builtins()
    methods = [method for cls in code.classes.values() for method in cls.methods.values()]
    for definition in (*code.functions.values(), *methods):
        for name, line in operators_in(definition).items():
            target = overload_of(name)
            if target is not None or not builtins.is_known(name):
                yield Use(target or target_of(name), f"{definition.file}:{line}")
