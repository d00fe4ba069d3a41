"""The lab's command line: `python3 lab up`, `down`, `images`, `able`, `status`, `gone`, `inventory`, `off`, `on` and
`ssh`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))  # `python3 lab` runs this folder as a script, not as a package

from lab import hosts, machine, shell  # noqa: E402
from lab.layout import Lab  # noqa: E402


def main() -> int:
    arguments = parser().parse_args()
    try:
        arguments.act(arguments)
    except (shell.LabError, OSError) as error:
        shell.say(f"lab: {error}")
        return 1
    except KeyboardInterrupt:
        shell.say("lab: interrupted; the next `up` or `down` cleans up")
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python3 lab", description="Real systemd hosts on this machine.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, help_text: str, act: object, scenario: str = "default") -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help_text)
        sub.add_argument("--scenario", default=scenario or None, help="which lab (%(default)s)")
        sub.set_defaults(act=act)
        return sub

    command("up", "start the hosts from the image LAB_IMAGE", up)
    remove = command("down", "remove every lab of this checkout, or one scenario's", down, scenario="")
    remove.add_argument("--all", action="store_true", help="remove images and caches, too")
    images = command("images", "build or pull the images that hosts start from", make_images)
    images.add_argument("names", nargs="+", metavar="NAME")
    command("able", "print why this machine cannot run the lab, if it cannot", able)
    gone = command("gone", "fail if a host of these scenarios still exists", check_gone)
    gone.add_argument("scenarios", nargs="+", metavar="SCENARIO")
    command("status", "list the hosts of this checkout", status)
    command("inventory", "print the inventory's path", print_inventory)
    for name, help_text in (("off", "cut the power of a host"), ("on", "give it back: the host boots")):
        power = command(name, help_text, switch_power)
        power.add_argument("host")
        power.set_defaults(on=name == "on")
    open_shell = command("ssh", "open a shell on a host, or run a command there", ssh)
    open_shell.add_argument("host")
    open_shell.add_argument("command", nargs=argparse.REMAINDER)
    return top


def up(arguments: argparse.Namespace) -> None:
    started = time.monotonic()
    inventory = hosts.up(Lab(CHECKOUT, arguments.scenario), os.environ.get("LAB_IMAGE") or "debian12")
    shell.say(f"lab: {arguments.scenario} is up after {time.monotonic() - started:.1f} s; its inventory is")
    print(inventory)


def down(arguments: argparse.Namespace) -> None:
    hosts.down(CHECKOUT, arguments.scenario, caches=arguments.all)


def make_images(arguments: argparse.Namespace) -> None:
    hosts.make_images(Lab(CHECKOUT, ""), arguments.names)


def able(_arguments: argparse.Namespace) -> None:
    refusal = machine.plan(machine.observe(), build_debian=True).refusal
    if refusal:
        raise shell.LabError(refusal)


def status(arguments: argparse.Namespace) -> None:
    sys.stdout.write(hosts.status(CHECKOUT) or "no lab is up\n")


def check_gone(arguments: argparse.Namespace) -> None:
    left = [line for name in arguments.scenarios for line in hosts.left(Lab(CHECKOUT, name))]
    if left:
        raise shell.LabError(f"still there: {', '.join(left)}")


def print_inventory(arguments: argparse.Namespace) -> None:
    print(Lab(CHECKOUT, arguments.scenario).inventory)


def switch_power(arguments: argparse.Namespace) -> None:
    hosts.switch_power(Lab(CHECKOUT, arguments.scenario), arguments.host, arguments.on)


def ssh(arguments: argparse.Namespace) -> None:
    command = hosts.ssh_command(Lab(CHECKOUT, arguments.scenario), arguments.host)
    os.execvp(command[0], [*command, *arguments.command])


if __name__ == "__main__":
    sys.exit(main())
