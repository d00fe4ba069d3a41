"""Asks for a name in TLS, again and again on new connections, until a file is there.

The arguments: the address, the port, the name, the file, and one to write meanwhile, in JSON: how often it was
answered, each failure, and the checksums of the certificates that it was shown, in order, without repetitions.
"""

import hashlib
import json
import os
import socket
import ssl
import sys
import time

ADDRESS, PORT, NAME, ENDED, FOUND = sys.argv[1:]
LIMIT, PAUSE = 20, 0.1  # seconds


def asked(context):
    """Return the checksum of the certificate with which a request was answered."""
    with context.wrap_socket(socket.create_connection((ADDRESS, int(PORT)), LIMIT), server_hostname=NAME) as secure:
        secure.sendall(f"GET / HTTP/1.0\r\nHost: {NAME}\r\n\r\n".encode())
        if b" 200 " not in secure.recv(100):
            raise OSError("no answer")
        return hashlib.sha256(ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True)).encode()).hexdigest()


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    found = {"answered": 0, "failures": [], "shown": []}
    while not os.path.exists(ENDED):
        try:
            checksum = asked(context)
        except OSError as error:
            found["failures"].append(f"{time.strftime('%X')} {error!r}")
        else:
            found["answered"] += 1
            found["shown"] += [checksum] if found["shown"][-1:] != [checksum] else []
        with open(f"{FOUND}.new", "w") as file:
            json.dump(found, file)
        os.replace(f"{FOUND}.new", FOUND)
        time.sleep(PAUSE)


main()
