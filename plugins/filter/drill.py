# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rounds of a drill, and the report on them."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import (
    announced,
    history,
    lost_servers,
    page,
    questions,
    report,
    returns,
    rounds,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import announcing


def drill_history(given, about, kept):
    """Return ``{record, file, comparisons, lines}``: a drill, and the last twenty that had the same events.

    :param given: as `drill_report` returns it
    :param about: ``at`` (when it ended, in seconds since 1970), ``layout``, ``ansible`` (its version), ``interval_ms``
        of the probe, ``plans``, and ``members``: what `member_info` returned of each before and after, by name
    :param kept: the files in the folder of the history, as the lookup `drill_history` returns them
    """
    return history.history(given, about, kept)._asdict()


def drill_page(results, found, compared):
    """Return what the page of a drill says, and where each mark of its figures is.

    :param results: the rounds, as `drill_report` takes them
    :param found: as `drill_report` returns it
    :param compared: as `drill_history` returns it
    """
    return as_data(page.page(results, found, compared))


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "drill_announced": rounds.announced,
            "drill_ask": questions.ask,
            "drill_asked": rounds.asked,
            "drill_history": drill_history,
            "drill_held_back": rounds.held_back,
            "drill_kept_members": announced.refusals,
            "drill_kept_servers": lost_servers.refusals,
            "drill_not_returned": returns.differences,
            "drill_page": drill_page,
            "drill_questions": questions.questions,
            "drill_refusals": rounds.refusals,
            "drill_report": report.report,
            "drill_rounds": rounds.rounds,
            "drill_sent": questions.sent,
            "drill_unannounced": announcing.unannounced,
            "drill_unproved": lost_servers.unproved,
            "drill_unrouted": announced.unrouted,
        }
