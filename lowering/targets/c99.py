"""Any processor with a C99 compiler: no vectors."""

from __future__ import annotations

from lowerdeck.lowering.targets.base import Target
from lowerdeck.lowering.targets.machine import machine_named

C99 = Target("c99", machine_named("c99"))
