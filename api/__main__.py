"""`python -m lowerdeck`: the command `lowerdeck`."""

from __future__ import annotations

import sys

from lowerdeck.tools.lowerdeck import main

if __name__ == "__main__":
    sys.exit(main())
