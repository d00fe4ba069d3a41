# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""TLS around a dialogue. OpenSSL, larger than everything else here, is imported only when a check needs it.

This module itself is imported early: later its archive may have been replaced, and Python could not read it.

OpenSSL reads and writes memory, which the plain stream transports: so it never blocks and owns no socket.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Callable, Generator, Tuple

from .network import BadResponse, Dialogue, Steps, Stream
from .outcome import lower

RECORD = 16384


def dialogue(server_name: str, verify: bool, authorities: str, inner: Dialogue) -> Dialogue:
    """Return a dialogue with a TLS handshake before the inner one.

    :param server_name: a name or an IP address; only a name is sent to the server (RFC 6066 section 3)
    :param authorities: a file of the trusted authorities; the system's if empty
    :raises ImportError: if Python has no TLS
    """
    import ssl

    def handshake(stream: Stream) -> Steps:
        stream.expect("no TLS handshake")
        try:
            context = _context(verify, authorities, _stamp(authorities) if verify else ())
        except OSError as fault:
            raise BadResponse(f"cannot use the authorities in {authorities}: {_reason(fault)}") from fault
        secure = TlsStream(stream, context, server_name)
        try:
            yield from secure.handshake()
            return (yield from inner(secure))
        except ssl.SSLError as fault:
            raise BadResponse(f"TLS: {_reason(fault)}") from fault

    return handshake


class TlsStream(Stream):
    """A TLS stream inside a plain one."""

    def __init__(self, outer: Stream, context: Any, server_name: str) -> None:
        import ssl

        super().__init__(outer.connection)
        self._ssl, self._outer = ssl, outer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)

    def expect(self, what: str) -> None:
        self._outer.expect(what)

    def handshake(self) -> Generator[int, None, None]:
        yield from self._perform(self._tls.do_handshake)

    def send(self, data: bytes) -> Generator[int, None, None]:
        yield from self._perform(self._tls.write, data)  # memory takes all of it

    def receive(self, size: int) -> Generator[int, None, bytes]:
        try:
            return (yield from self._perform(self._tls.read, size))
        except (self._ssl.SSLZeroReturnError, self._ssl.SSLEOFError):
            return b""

    def _perform(self, operation: Callable[..., Any], *arguments: Any) -> Generator[int, None, Any]:
        """Perform an operation of OpenSSL, transporting its data until it is done."""
        while True:
            try:
                result, done = operation(*arguments), True
            except self._ssl.SSLWantReadError:
                result, done = None, False
            yield from self._outer.send(self._outgoing.read())
            if done:
                return result
            data = yield from self._outer.receive(RECORD)
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()


@lru_cache(maxsize=8)
def _context(verify: bool, authorities: str, _stamp: Tuple[int, ...]) -> Any:
    """Return a context, shared by checks with equal settings: the system's authorities are megabytes."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = verify
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    if verify and authorities:
        context.load_verify_locations(authorities)
    elif verify:
        context.load_default_certs()
    return context


def _stamp(authorities: str) -> Tuple[int, ...]:
    """Return the times of the last change, so that a renewed file counts from the next run, one of the system's too."""
    import ssl

    if authorities:
        return (os.stat(authorities).st_mtime_ns,)
    known = ssl.get_default_verify_paths()
    return tuple(os.stat(path).st_mtime_ns for path in (known.cafile, known.capath) if path)


def _reason(fault: OSError) -> str:
    """OpenSSL gives reasons in capitals, and for certificates in sentences."""
    reason = getattr(fault, "reason", None) or ""
    return lower(
        getattr(fault, "verify_message", "") or reason.replace("_", " ").lower() or str(fault.strerror or fault)
    )
