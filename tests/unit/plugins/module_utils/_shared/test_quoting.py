# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each format has one way to write a text, and a sentence for what it cannot express."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import quoting

WRITTEN = [
    (quoting.haproxy, "/haproxy_stats", "/haproxy_stats"),
    (quoting.haproxy, "a#b c", "'a#b c'"),
    (quoting.haproxy, "it's", """'it'"'"'s'"""),
    (quoting.keepalived, "lb1.example", "lb1.example"),
    (quoting.keepalived, "", '""'),
    (quoting.keepalived, "a b # {", '"a b # {"'),
    (quoting.keepalived_command, "/usr/bin/killall -0 haproxy", '"/usr/bin/killall -0 haproxy"'),
    (quoting.keepalived_command, "/bin/x", '"/bin/x"'),
    (quoting.keepalived_command, '/bin/x "a b"', """"/bin/x 'a b'\""""),
    (quoting.keepalived_command, "/bin/x ''", """"/bin/x ''\""""),
    (quoting.systemd_command, "/usr/sbin/nft --file /etc/x.nft", "/usr/sbin/nft --file /etc/x.nft"),
    (quoting.systemd_command, "/bin/x '100% $HOME' ; \"it's\"", r"/bin/x '100%% $$HOME' ';' 'it\'s'"),
    (quoting.systemd_command, r"/bin/x 'a\b'", r"/bin/x 'a\\b'"),
    (quoting.systemd_shell, "echo 0 > /run/down", "/bin/sh -c 'echo 0 > /run/down'"),
]


@pytest.mark.parametrize("quote, text, written", WRITTEN)
def test_a_text_is_written_as_its_program_reads_it(quote, text, written):
    assert quote(text) == written


PRINTABLE = "one line of printable characters is required."
REFUSED = [
    *[(quote, text, PRINTABLE) for quote in (quoting.haproxy, quoting.keepalived) for text in ("a\nb", "\0", "\ud800")],
    (quoting.keepalived, 'a"b', 'keepalived.conf cannot have the character " there, leave it out.'),
    (quoting.keepalived, "$_PWD", "keepalived would replace what begins with $_, leave it out."),
    *[
        (quoting.keepalived, brace, f"keepalived takes {brace} for a block's, also in quotes, write more than that.")
        for brace in "{}"
    ],
    (quoting.keepalived, "é" * 500, "keepalived reads 960 bytes at most, shorten it."),
    (
        quoting.keepalived_command,
        '/x "it\'s"',
        "keepalived.conf cannot have the character ' inside a word: write a script.",
    ),
    *[
        (quote, text, sentence)
        for quote in (quoting.haproxy_words, quoting.keepalived_command, quoting.systemd_command)
        for text, sentence in (
            ("/x 'open", "a quote has no end: close it."),
            ("/x \\", "it ends in a backslash, which escapes nothing there: leave it out."),
            ('/x "open\\', "it ends in a backslash, which escapes nothing there: leave it out."),
        )
    ],
    (quoting.keepalived_command, " ", "a program and its arguments are required."),
    *[
        (
            quoting.systemd_command,
            command,
            "an absolute path to the program is required first, of letters, digits and . _ + - / only.",
        )
        for command in ("x", "-/bin/x", "/bin/%n", "/bin/$x", "/bin/", "'/bin/a b'")
    ],
    (
        quoting.systemd_command,
        f"/bin/{'x' * 256} y",
        "each part of a path has at most 255 characters, shorten it.",
    ),
]


@pytest.mark.parametrize("quote, text, sentence", REFUSED)
def test_what_a_format_cannot_express_is_a_sentence(quote, text, sentence):
    with pytest.raises(quoting.Unquotable) as refused:
        quote(text)
    assert str(refused.value) == sentence
