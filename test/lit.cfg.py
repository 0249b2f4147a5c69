"""Settings of lit for the textual tests: every `.mlir` file below this folder."""

import os
import sys

import lit.formats
from lit.TestingConfig import TestingConfig

config: TestingConfig = globals()["config"]  # put there by lit

# Tests start from a clean environment; these variables pass through.
PASSED_ON = (
    "CC",
    "COVERAGE_PROCESS_START",
    "LOWERDECK_CACHE",
    "PYTHONPATH",
    "TMPDIR",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
)

config.name = "lowerdeck"
config.suffixes = [".mlir"]
config.excludes = ["Inputs", "Output"]  # data that a test reads or writes, not tests
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(config.test_source_root, "Output")
config.test_format = lit.formats.ShTest(execute_external=False)

# `opt-tool`, `lowerdeck` and `filecheck` are those beside the running Python.
config.environment["PATH"] = os.pathsep.join(
    (os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath))
)
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment.update({name: os.environ[name] for name in PASSED_ON if name in os.environ})

# First line of a dialect's test: what is printed is read back and printed the same.
config.substitutions.append(
    ("LOWERDECK_GENERIC_ROUNDTRIP", "opt-tool %s --print-op-generic | opt-tool | filecheck %s")
)
config.substitutions.append(("LOWERDECK_ROUNDTRIP", "opt-tool %s | opt-tool | filecheck %s"))
config.substitutions.append(("%pythonpath", os.environ.get("PYTHONPATH", "")))
