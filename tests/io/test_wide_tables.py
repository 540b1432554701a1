"""Tables with many columns: names are looked up, not searched for."""

from kernelmill.io import open_table
from kernelmill.io.table_file import make_unique


class CountingName(str):
    """A name that counts how often it is compared with others."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountingName.compared += 1
        return str.__eq__(self, other)


def test_names_are_made_unique_without_a_search():
    names = [CountingName(f"c{i}") for i in range(2000)]
    CountingName.compared = 0
    assert make_unique(names)[0] == tuple(f"c{i}" for i in range(2000))
    assert CountingName.compared < 10 * len(names)


def test_names_that_come_again():
    names, notes = make_unique(["a", "a", "", "a_1", "a"])
    assert names == ("a", "a_1_", "2", "a_1", "a_4")
    assert len(notes) == 3


def test_kinds_of_all_columns_can_be_given(tmp_path):
    path = tmp_path / "rows.csv"
    names = [f"c{i}" for i in range(1500)]
    path.write_text(",".join(names) + "\n" + ",".join("7" * 1500) + "\n")
    table = open_table(path, numeric=names[:700], categorical=names[700:])
    (block,) = table.blocks()
    assert [column.kind for column in table.columns] == ["numeric"] * 700 + ["category"] * 800
    assert [table.column_index(name) for name in names] == list(range(1500))
    assert block.data["c1499"].to_pylist() == ["7"]
