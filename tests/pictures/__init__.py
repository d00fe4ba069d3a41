# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws the pictures of the documentation, as SVG for light and dark pages.

`svg` has the shapes. Each other module is one picture, a pure function of a small description. `gallery` knows what
each of them shows.
"""
