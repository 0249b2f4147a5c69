"""The interpreter of the paddle dialect."""

from lowerdeck.passes.legalize.common.evaluate import interpreter_by
from lowerdeck.passes.legalize.paddle.framework import PaddleWalk

run_op = interpreter_by(PaddleWalk)
