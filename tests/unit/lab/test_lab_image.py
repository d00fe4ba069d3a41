"""Images have names, recipes and files of their own, and their variants are not taken for them."""

from __future__ import annotations

import pytest

from lab import image


@pytest.mark.parametrize("name", ["debian12", "debian13-names", "debian12-routers", "rpm"])
def test_ours_are_built_here(name):
    assert image.is_built_here(name)


@pytest.mark.parametrize("name", ["debian11", "debian12-other", "quay.io/almalinuxorg/9-init", "debian12-"])
def test_others_are_pulled_and_have_no_variant(name):
    assert not image.is_built_here(name)
    assert image.with_variant(name, "routers") == name


def test_a_variant_has_more_packages_than_its_image():
    plain, routers = (set(image.recipe(name)[-2].split("=")[1].split(",")) for name in ("debian13", "debian13-routers"))
    assert routers - plain == set(image.VARIANTS["routers"])
    assert image.with_variant("debian13", "") == "debian13"


def test_an_image_that_is_built_again_replaces_its_own_file_only(tmp_path):
    names = [f"rootfs-{name}-0123456789ab.tar" for name in ("debian12", "debian12-names", "debian12-routers")]
    for name in names:
        (tmp_path / name).touch()
    assert [file.name for file in image.outdated(tmp_path, "debian12")] == names[:1]
    assert [file.name for file in image.outdated(tmp_path, "debian12-names")] == names[1:2]
