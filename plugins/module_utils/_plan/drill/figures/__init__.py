# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The figures of a drill's report: where each mark is. Pure; the templates of the role drill turn them into SVG."""
