"""The interpreter of the tflite dialect."""

from lowerdeck.passes.legalize.common.evaluate import interpreter_by
from lowerdeck.passes.legalize.tflite.framework import TfliteWalk

run_op = interpreter_by(TfliteWalk)
