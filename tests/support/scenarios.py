# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scenarios of molecule/, and the images of the lab's hosts that they run on."""

from __future__ import annotations

IMAGES = ("debian12", "debian13")
# The RedHat family, as far as the lab makes one of Debian's programs, and what plays there.
RPM = "rpm"
ON_RPM = ("default", "agent", "ipi")
# One image of Debian for each scenario. Both are covered.
IMAGE_OF = {
    "default": "debian12",
    "agent": "debian13",
    "mixed": "debian12",
    "rke2": "debian13",
    "direct": "debian13",
    "examples": "debian12",
    "ipi": "debian13",
    "ipi-agent": "debian12",
    "cluster": "debian13",
    "pods": "debian12",
    "roles": "debian13",
    "names": "debian12",
    "bgp": "debian12",
    "bgp-move": "debian12",
    "machines": "debian12",
}
# First each on its own image: the matrix plays it in full there, and finds most with it.
_OWN = [f"{scenario}:{image}" for scenario, image in IMAGE_OF.items()]
_BOTH = [f"{scenario}:{image}" for image in IMAGES for scenario in IMAGE_OF]
EVERY = tuple(dict.fromkeys([*_OWN, *_BOTH, *(f"{scenario}:{RPM}" for scenario in ON_RPM)]))
