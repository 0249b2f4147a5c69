"""Any processor with a C99 compiler: no vectors."""

from __future__ import annotations

from lowerdeck.lowering.targets.base import Target

C99 = Target("c99", registers=16, l2_bytes=256 << 10)
