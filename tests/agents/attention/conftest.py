"""What the tests of the attention agents share: one file of VGG16's weights."""

from pathlib import Path

import pytest

from tests.helpers import tiny_vgg


@pytest.fixture(scope="session")
def vgg_weights(tmp_path_factory: pytest.TempPathFactory, narrow_vgg: None) -> Path:
    return tiny_vgg.weights(tmp_path_factory.mktemp("vgg"))
