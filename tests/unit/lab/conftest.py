"""The lab is a folder that is run, not an installed package: its tests find it beside them."""

import sys

from support.paths import ROOT

sys.path.insert(0, str(ROOT))
