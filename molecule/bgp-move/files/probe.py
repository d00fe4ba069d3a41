"""Opens a new connection each 20 ms until a file goes, and prints what was not answered: PROBE VIP FILE."""

import json
import os
import socket
import sys
import threading
import time

EACH, LIMIT = 0.02, 1.0
REQUEST = b"GET / HTTP/1.0\r\n\r\n"
attempts = []  # when it began, and when it was answered, or None


def ask(vip, began):
    answered = None
    try:
        with socket.create_connection((vip, 80), timeout=LIMIT) as connection:
            connection.sendall(REQUEST)
            answered = time.monotonic() if connection.recv(1) else None
    except OSError:
        pass
    attempts.append((began, answered))


def outages(found):
    """Return when each time began in which no attempt was answered within LIMIT, and for how many milliseconds."""
    first, seen = None, []
    for began, answered in sorted(found):
        if answered is None:
            first = began if first is None else first
        elif first is not None:
            seen.append((first, round(1000 * (began - first))))
            first = None
    return seen


def main(vip, path):
    with open(path, "w"):
        pass
    due = time.monotonic()
    while os.path.exists(path):
        threading.Thread(target=ask, args=(vip, time.monotonic())).start()
        due += EACH
        time.sleep(max(0.0, due - time.monotonic()))
    time.sleep(LIMIT + 0.5)
    seen, offset = outages(attempts), time.time() - time.monotonic()
    slow = max((answered - began for began, answered in attempts if answered), default=0)
    failed = sum(answered is None for _began, answered in attempts)
    print(
        json.dumps(
            {
                "attempts": len(attempts),
                "failed": failed,
                "outages_ms": [lasted for _first, lasted in seen],
                "outages_at": [time.strftime("%H:%M:%S", time.gmtime(first + offset)) for first, _lasted in seen],
                "slowest_ms": round(1000 * slow),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
