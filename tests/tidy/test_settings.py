"""Every setting of the cluster has a test that is marked with it and shows that it does something."""

from tenure.base.settings import DEFINITIONS
from tests.tidy.source import texts_of_tests
from tests.tidy.test_invariants import marked


def test_every_setting_has_a_test_of_its_effect() -> None:
    shown = {name for text in texts_of_tests().values() for name in marked(text, "setting")}
    assert shown == {each.name for each in DEFINITIONS}
