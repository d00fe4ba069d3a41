"""Makes what services.yml shows in TLS, and what its clients show, in the folder of the first argument."""

import sys
from pathlib import Path

from support.certificates import Authority, certificate

FOLDER = Path(sys.argv[1])
for folder in ("customers", "contents"):
    (FOLDER / folder).mkdir(parents=True)
certificate(FOLDER, "www.example.com")
for name in ("shop.example.net", "shop.example.org"):
    certificate(FOLDER / "contents", name)
for name in ("one.example.net", "two.example.net"):
    certificate(FOLDER / "customers", name)
authority = Authority(FOLDER)
authority.issue("known")
authority.revoked(authority.issue("gone"))
