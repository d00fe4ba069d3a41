# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the process that asks the balancer tells keepalived and the other members."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.outcome import Outcome
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import answers
from hypothesis import given
from hypothesis import strategies as st

ANSWERED, MISSING = Outcome(True, "answered"), Outcome(False, "no answer within 0.5 s")


class Log:
    def __init__(self):
        self.said = []
        self.info = self.warning = self.said.append

    def fault(self, _key, text):
        self.said.append(text)

    def cured(self, *_said):
        pass


BALANCER = {"name": "haproxy_answers", "file": "/run/answers", "type": "haproxy", "address": "127.0.0.1", "port": 9444}
TIMES = {"interval": 1, "timeout": 0.5, "rise": 2, "fall": 2}

CHECK = answers.question(**BALANCER, **TIMES).check


class Host:
    """Takes what is written, and what is offered."""

    def __init__(self):
        self.log, self.written, self.missing, self.refused = Log(), [], [], None
        self.verdicts = answers.Verdicts(CHECK, self.write, self.missing.append, self.log)

    def write(self, text):
        if self.refused:
            raise self.refused
        self.written.append(text.strip())

    def take(self, *outcomes):
        for outcome in outcomes:
            self.verdicts.take(outcome)
        return self


def test_when_it_has_just_started_it_says_nothing_against_the_balancer():
    assert Host().written == ["0"]
    assert Host().take(MISSING).written == ["0"]


def test_the_second_answer_in_a_row_that_is_missing_counts_and_the_second_that_comes():
    assert Host().take(MISSING, ANSWERED, MISSING).written == ["0"]
    assert Host().take(MISSING, MISSING).written == ["0", "1"]
    assert Host().take(MISSING, MISSING, ANSWERED, MISSING, ANSWERED).written == ["0", "1"]
    assert Host().take(MISSING, MISSING, ANSWERED, ANSWERED).written == ["0", "1", "0"]


def test_the_answers_that_are_missing_are_counted_from_the_lower_priority_on_until_it_answers_again():
    host = Host().take(MISSING, MISSING, MISSING, ANSWERED, ANSWERED, ANSWERED)
    assert host.missing == [0, 1, 2, 3, 0, 0]


def test_the_log_has_a_line_for_each_change():
    host = Host().take(MISSING, MISSING, *[MISSING] * 30, ANSWERED, ANSWERED)
    assert host.log.said == [
        "haproxy_answers fails: no answer within 0.5 s.",
        "haproxy_answers succeeds again.",
    ]


def test_a_file_that_cannot_be_written_is_a_sentence_and_is_written_once_it_can_be():
    host = Host()
    host.refused = PermissionError(13, "Permission denied")
    host.take(MISSING, MISSING)
    host.refused = None
    host.take(MISSING)
    assert host.written == ["0", "1"]
    assert "The track file of haproxy_answers cannot be written: Permission denied." in host.log.said


@given(st.lists(st.booleans(), max_size=60))
def test_the_file_has_a_1_only_after_two_answers_in_a_row_were_missing(answered):
    host, run, silent = Host(), 0, False
    for each in answered:
        host.take(ANSWERED if each else MISSING)
        run = run + 1 if each == silent else 0
        silent, run = (not silent, 0) if run == CHECK.fall else (silent, run)
        assert host.written[-1] == str(int(silent))


def test_the_track_file_is_written_in_its_place(tmp_path):
    path = tmp_path / "silent"
    write = answers.writer(str(path))
    write("1\n")
    before = path.stat().st_ino
    write("0\n")
    assert (path.read_text(), path.stat().st_ino) == ("0\n", before)
