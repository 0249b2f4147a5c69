"""`hoist-crop`: what a slice leaves out is not computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.passes.machinery.driver import Pattern, PatternPass
from lowerdeck.passes.movement.crops import CropBeforeSplit, HoistCrop


class HoistCropPass(PatternPass):
    """
    Slices move up to where what they leave out is computed.

    - slice(f(x, y)) -> f(slice(x), slice(y)) [f elementwise, batch_norm; softmax, layer_norm,
      cumulative and reduce along whole dimensions; matmul without zero points; attention to a part
      of the queries; the result used only by slices that take the same, in the same block]
    - slice(concat(x, y, z)) -> concat(slice(x), slice(y)) [what is left of the operands that are
      met; if it meets all of them: it reaches an f that makes each part]
    - slice(pad(x)) -> pad(slice(x)), with what is left of the pads [constant; edge and reflect with
      step 1; wrap around all of x; something of x is left]
    - slice(conv(x, w, b)) -> conv(slice(x), slice(w), slice(b)), with larger strides and with the
      pads that the windows still reach; likewise for pools [steps positive; whole groups of output
      channels]
    - slice(conv_transpose(x, w, b)) -> conv_transpose(slice(x), w, b), with larger pads [steps of
      one along windows; all channels]
    - y, z of _, y, z, _ = split(f(x)) -> split(slice(f(x))) [if it reaches f; the first or last
      parts are not used]
    - likewise for reshapes, transposes and broadcasts [if it reaches another f]

    Sizes that are not numbers pass where nothing has to be known of them: in whole dimensions, in
    dimensions that stay, and in windows of which every second, third, ... is taken.

    A map behind a convolution, pool or reduction that a slice does not pass stays: it is done there
    on the way. A part of the input of a convolution or pool is copied only if the windows left out
    have 16 multiply-adds for each element. So a model that reads one token of its last layer
    computes that one token, and an image whose border is cut off is computed without it.
    """

    name = "hoist-crop"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [CropBeforeSplit(), HoistCrop()]
