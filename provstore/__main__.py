"""``python -m provstore`` is ``prov``."""

import sys

from provstore.cli import main

if __name__ == "__main__":
    sys.exit(main())
