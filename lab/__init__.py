"""The lab: real systemd hosts on this one machine, for the demo and for molecule (see README.md)."""
