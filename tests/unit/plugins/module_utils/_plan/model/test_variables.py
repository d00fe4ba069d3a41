# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of variables: those of other projects pass, and none has no effect in silence."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import variables
from support.variable_tables import options

# The variables of other roles by their prefix, from the defaults of each.
OTHERS = {
    "geerlingguy.haproxy": {
        "haproxy": """
            backend_balance_method backend_httpchk backend_mode backend_name backend_servers ca_base chroot
            client_timeout connect_timeout crt_base default_options frontend_bind_address frontend_mode frontend_name
            frontend_port global_vars group server_timeout socket socket_mode template user
        """,
    },
    "Oefenweb.haproxy": {
        "haproxy": """
            acl_files backend conf_template default_server_params defaults_errorfile defaults_log defaults_mode
            defaults_option defaults_timeout dependencies frontend global_ca_base global_crt_base global_daemon
            global_group global_log global_nbproc global_option global_ssl_default_bind_ciphers
            global_ssl_default_bind_options global_ssl_default_server_ciphers global_ssl_default_server_options
            global_stats global_user install listen restart_handler_state ssl_map userlists version
        """,
    },
    "evrardjp.keepalived": {
        "keepalived": """
            bind_on_non_local daemon_default_options_overrides daemon_options_file_path global_defs
            install_from_source instances package_state scripts scripts_packages selinux_compile_rules
            show_ansible_managed source_configure_options source_repository source_tag sync_groups
            sysctl_tcp_retries systemd_override_service_restart systemd_overrides use_latest_stable
        """,
    },
    "kolla's loadbalancer": {
        "haproxy": """
            check_timeout client_timeout connect_timeout default_volumes defaults_balance defaults_max_connections
            dimensions enable_healthchecks external_single_frontend_default_backend external_single_frontend_options
            extra_volumes glance_api_client_timeout healthcheck healthcheck_interval healthcheck_retries
            healthcheck_start_period healthcheck_test healthcheck_timeout host_ipv4_tcp_retries2
            http_keep_alive_timeout http_request_timeout image image_full max_connections monitor_port queue_timeout
            server_timeout single_external_frontend_public_port socket_level_admin ssh_default_volumes ssh_dimensions
            ssh_enable_healthchecks ssh_healthcheck ssh_healthcheck_interval ssh_healthcheck_retries
            ssh_healthcheck_start_period ssh_healthcheck_test ssh_healthcheck_timeout ssh_image ssh_image_full ssh_port
            ssh_tag tag thread_cpu_map threads
        """,
        "keepalived": """
            default_volumes dimensions extra_volumes image image_full tag track_script_enabled traffic_mode
            virtual_router_id
        """,
    },
}
NAMES = [
    pytest.param(prefix, [f"{prefix}_{key}" for key in keys.split()], id=f"{owner}, {prefix}")
    for owner, lists in OTHERS.items()
    for prefix, keys in lists.items()
]


@pytest.mark.parametrize("prefix, names", NAMES)
def test_the_variables_of_other_roles_pass_without_a_word(prefix, names):
    assert variables.unknown_variables(names, list(options(prefix)), shared=True) == ([], [])


@pytest.mark.parametrize("name", ["pair_vipz", "pair_vip", "pair_vipss", "pair_vpis", "pairvips", "pair_ivps"], ids=str)
def test_one_edit_of_a_layouts_own_name_is_a_fault(name):
    sentence = f"{name} is not a variable of the role: did you mean pair_vips?"
    assert variables.unknown_variables([name], ["pair_vips", "pair_vrid"]) == ([sentence], [])
    assert variables.unknown_variables([name], ["pair_vips", "pair_vrid"], shared=True) == ([], [sentence])


@pytest.mark.parametrize("word, ours", variables.ELSEWHERE.items())
def test_what_others_call_otherwise_is_told_its_name_here(word, ours):
    known = list(options("pair"))
    sentence = f"pair_{word} is not a variable of the role: did you mean pair_{ours}?"
    assert variables.unknown_variables([f"pair_{word}"], known) == ([], [sentence])
    assert variables.unknown_variables([f"pair_{word}"], known, shared=True) == ([], [])


def test_two_edits_are_a_warning_and_three_are_another_name():
    known = ["pair_vips", "pair_vrid"]
    assert variables.unknown_variables(["pair_vipsss"], known) == (
        [],
        ["pair_vipsss is not a variable of the role: did you mean pair_vips?"],
    )
    assert variables.unknown_variables(["pair_vips", "pair_of_shoes", "pair_vip_sss"], known) == ([], [])


@pytest.mark.parametrize("name", ["pair_of_shoes", "pair_vipsss", "pair_x"])
def test_an_extra_variable_is_meant_for_this_run_and_refused_with_the_nearest_name(name):
    known = ["pair_vips", "pair_vrid"]
    found = variables.unknown_variables([name], known, extra=[name])
    assert found.warnings == [] and len(found.faults) == 1
    assert found.faults[0].startswith(f"{name} is not a variable of the role: did you mean pair_v")
    assert variables.unknown_variables([name, *known], known, extra=known).faults == []


@pytest.mark.parametrize("name, given", [("pairing", {}), ("pair", {}), ("pair_of_shoes", {"shared": True})])
def test_an_extra_variable_of_others_passes(name, given):
    assert variables.unknown_variables([name], ["pair_vips"], extra=[name], **given) == ([], [])


@pytest.mark.parametrize("names, wanted", [(("", ""), 0), (("ab", "ba"), 1), (("abc", "ca"), 3), (("a", "abcd"), 3)])
def test_edits_are_counted(names, wanted):
    assert variables.edits(*names) == variables.edits(*reversed(names)) == wanted


def test_a_key_of_the_settings_is_shown_as_the_roles_variable_and_a_nested_key_as_it_is():
    assert variables.as_role_variables("pair.vrid is 0: ...", "pair") == "pair_vrid is 0: ..."
    assert variables.as_role_variables("pair_vips[0].vrid is 0: ...", "pair") == "pair_vips[0].vrid is 0: ..."


def test_a_file_that_is_not_fit_for_use_is_named_with_its_variable():
    unfit = [{"key": "services[0] (web).check.ca", "value": "/etc/ca.pem", "wrong": "it cannot be read."}]
    assert variables.unfit_faults(unfit, "haproxy") == [
        "haproxy_services[0] (web).check.ca is '/etc/ca.pem': it cannot be read."
    ]
