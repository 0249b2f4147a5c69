"""The interpreter of the pt2 dialect."""

from lowerdeck.passes.legalize.common.evaluate import interpreter_by
from lowerdeck.passes.legalize.pt2.framework import Pt2Walk


class _OneOp(Pt2Walk):
    """The legalization of one op, whose results another one may read."""

    returns_pairs = True


run_op = interpreter_by(_OneOp)
