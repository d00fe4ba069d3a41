# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module static_pod: it waits for the program's end, removes what that has left, and disables nothing in vain."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.modules import static_pod
from support.modules import refusal, run
from support.vrrp import fakes

VIP = "192.0.2.10"


class Kubelet:
    """Ends the program some looks after its manifest has gone, or never."""

    def __init__(self, manifest, looks):
        self.manifest, self.looks = manifest, looks

    def runs(self, program):
        assert program == "kube-vip"
        if not self.manifest.exists() and self.looks is not None:
            self.looks -= 1
        return self.looks is None or self.looks >= 0


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "vip.yaml"
    path.write_text("kind: Pod\n")
    return path


@pytest.fixture
def kept(manifest):
    return manifest.with_name(".vip.yaml.before-onprem-lb")


@pytest.fixture
def kernel(monkeypatch):
    network = fakes.Network([])
    network.netlink.link("eth0", 1)
    monkeypatch.setattr(static_pod.static_pods.netlink, "Netlink", lambda: network.netlink)
    return network


def disable(monkeypatch, manifest, looks=3, **parameters):
    monkeypatch.setattr(static_pod.static_pods, "runs", Kubelet(manifest, looks).runs)
    return {"manifest": str(manifest), "program": "kube-vip", "addresses": [VIP], **parameters}


def test_the_manifest_is_kept_by_another_name_and_what_is_left_is_removed(monkeypatch, manifest, kept, kernel):
    for address in ("192.0.2.1/24", f"{VIP}/32"):
        kernel.netlink.put(address, "eth0")
    given = disable(monkeypatch, manifest)
    dry = run(static_pod, given, check=True)
    assert dry["changed"] and manifest.exists()
    done = run(static_pod, given)
    assert (done["changed"], done["kept"], done["removed"]) == (True, str(kept), [f"{VIP}/32"])
    assert dry["diff"] == done["diff"] == {"before": f"{manifest}\n", "after": f"{kept}\n"}
    assert kept.read_text() == "kind: Pod\n" and kernel.journal == [f"delete {VIP}/32 from eth0"]
    assert not run(static_pod, given)["changed"]


def test_a_manifest_whose_program_does_not_end_is_back(monkeypatch, manifest, kept, kernel):
    given = disable(monkeypatch, manifest, looks=None, wait=0.1)
    assert refusal(static_pod, given) == (
        f"kube-vip has not ended within 0.1 s after {manifest} was disabled, so the manifest is back: see whether the "
        "kubelet runs, and repeat the run."
    )
    assert manifest.exists() and not kept.exists() and kernel.journal == []


def test_a_second_program_of_a_manifest_that_is_disabled_already_is_waited_for(monkeypatch, manifest, kept, kernel):
    manifest.rename(kept)
    assert not run(static_pod, disable(monkeypatch, manifest))["changed"]
    assert refusal(static_pod, disable(monkeypatch, manifest, looks=None, wait=0.1)) == (
        f"kube-vip has not ended within 0.1 s after {manifest} was disabled: see whether the kubelet runs, and repeat "
        "the run."
    )
    assert kept.exists()


def test_a_manifest_that_cannot_be_moved_is_a_sentence(monkeypatch, manifest, kept, kernel):
    kept.mkdir()
    (kept / "a file").touch()
    assert refusal(static_pod, disable(monkeypatch, manifest)).startswith(f"{manifest} was not disabled: ")
