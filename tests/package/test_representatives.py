"""`make check` runs some tests of every layer."""

from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_folder_has_representative_tests():
    folders = {path.parent for path in TESTS.rglob("test_*.py")}
    represented = {
        path.parent
        for path in TESTS.rglob("test_*.py")
        if "mark.representative" in path.read_text()
    }
    assert represented == folders, "mark a few quick tests with @pytest.mark.representative"
