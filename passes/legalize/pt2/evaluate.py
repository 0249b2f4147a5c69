"""The interpreter of the pt2 dialect."""

from lowerdeck.passes.legalize.common.evaluate import interpreter_by
from lowerdeck.passes.legalize.pt2.framework import Pt2Walk

run_op = interpreter_by(Pt2Walk)
