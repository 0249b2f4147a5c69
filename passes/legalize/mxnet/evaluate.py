"""The interpreter of the mxnet dialect."""

from lowerdeck.passes.legalize.common.evaluate import interpreter_by
from lowerdeck.passes.legalize.mxnet.framework import MxnetWalk

run_op = interpreter_by(MxnetWalk)
