"""The lab is a folder that is run, not an installed package: its tests find it beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
