"""The interpreter of the darknet dialect."""

from lowerdeck.passes.legalize.common.evaluate import interpreter_by
from lowerdeck.passes.legalize.darknet.framework import DarknetWalk

run_op = interpreter_by(DarknetWalk)
