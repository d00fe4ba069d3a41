"""What a machine needs follows from what was seen of it."""

from __future__ import annotations

import dataclasses

from lab import machine

EVERYTHING = frozenset(
    name for need in (*machine.NEEDS, *machine.NEEDS_TO_BUILD_DEBIAN, machine.ANY_RUNTIME) for name in need.found_as
)
FRIENDLY = machine.Facts(
    privilege="root",
    found=EVERYTHING,
    hybrid_cgroups=False,
    hard_nofile=machine.PODMAN_LIMIT,
    hard_nproc=machine.PODMAN_LIMIT,
    may_raise_limits=True,
    inotify_instances=1024,
    package_manager="apt-get",
)


def seen(without=(), **changes):
    return dataclasses.replace(FRIENDLY, found=EVERYTHING - set(without), **changes)


def test_a_machine_that_has_everything_is_left_alone():
    assert machine.plan(FRIENDLY, build_debian=True) == machine.Preparation()


def test_a_host_is_in_no_group_with_others_where_podman_makes_the_groups():
    assert machine.fair_share("cgroupfs")[:2] == ("--cgroup-parent", "/")
    assert machine.fair_share("systemd") == ()


def test_missing_programs_become_packages_each_named_once():
    wanted = machine.plan(seen(without=["podman", "ssh", "ssh-keygen"]), build_debian=True)
    assert wanted.packages == ("podman", "openssh-client")
    assert wanted.refusal is None


def test_one_of_several_programs_is_enough():
    assert machine.plan(seen(without=["runc"]), build_debian=True).packages == ()


def test_netavark_wants_iptables_although_nft_is_there():
    assert machine.plan(seen(without=["iptables"]), build_debian=True).packages == ("iptables",)


def test_hybrid_cgroups_want_runc_even_where_crun_is_there():
    wanted = machine.plan(seen(without=["runc"], hybrid_cgroups=True), build_debian=True)
    assert wanted.packages == ("runc",)
    assert wanted.containers_conf == '[engine]\nruntime = "runc"\n'


def test_a_ready_made_image_needs_no_mmdebstrap():
    assert machine.plan(seen(without=["mmdebstrap"]), build_debian=False).packages == ()


def test_tight_limits_are_written_as_they_really_are():
    tight = seen(may_raise_limits=False, hard_nofile=20000, hard_nproc=32768)
    assert machine.containers_conf(tight) == (
        '[containers]\ndefault_ulimits = ["nofile=1024:20000", "nproc=32768:32768"]\n'
    )


def test_low_limits_that_may_be_raised_need_no_configuration():
    assert machine.containers_conf(seen(hard_nofile=20000)) is None


def test_without_root_and_sudo_one_sentence_says_so():
    assert machine.plan(seen(privilege="none"), build_debian=True).refusal == machine.NO_PRIVILEGE


def test_without_apt_the_sentence_names_packages_and_command():
    wanted = machine.plan(seen(without=["podman", "ssh"], package_manager="dnf"), build_debian=False)
    assert wanted.refusal == (
        "The lab needs podman, openssh-clients; install them first: sudo dnf install podman openssh-clients"
    )


def test_too_few_inotify_instances_for_so_many_systemds_are_raised_and_enough_are_not():
    assert machine.plan(seen(inotify_instances=128), build_debian=True).inotify_instances == machine.INOTIFY_ENOUGH
    assert machine.plan(seen(inotify_instances=machine.INOTIFY_ENOUGH), build_debian=True).inotify_instances is None
