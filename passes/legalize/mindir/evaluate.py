"""The interpreter of the mindir dialect."""

from lowerdeck.passes.legalize.common.evaluate import interpreter_by
from lowerdeck.passes.legalize.mindir.framework import MindirWalk

run_op = interpreter_by(MindirWalk)
