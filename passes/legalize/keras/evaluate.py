"""The interpreter of the keras dialect."""

from lowerdeck.passes.legalize.common.evaluate import interpreter_by
from lowerdeck.passes.legalize.keras.framework import KerasWalk

run_op = interpreter_by(KerasWalk)
