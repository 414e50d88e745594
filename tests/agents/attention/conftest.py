"""What the tests of the attention agents share: the modules beside this file, and one file of VGG16's weights."""

import sys
from pathlib import Path

import pytest

from tests.helpers import tiny_vgg

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def vgg_weights(tmp_path_factory, narrow_vgg):
    return tiny_vgg.weights(tmp_path_factory.mktemp("vgg"))
