"""Settings of lit; `lit test` runs the tests, once the package is installed."""

import os
import sys

import lit.formats
from lit.TestingConfig import TestingConfig

config: TestingConfig = globals()["config"]  # put there by lit

config.name = "lowerdeck-saturate"
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(config.test_source_root, "Output")
config.test_format = lit.formats.ShTest(execute_external=False)

# `opt-tool` and `filecheck` are those beside the running Python.
config.environment["PATH"] = os.pathsep.join(
    (os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath))
)
config.environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
