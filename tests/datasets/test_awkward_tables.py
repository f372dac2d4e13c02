"""The folder of awkward tables: each is read right, or doubted or refused in the right sentence."""

import re
import warnings

import pytest
from awkward import ROWS, tables

from tacit import Labels
from tacit.datasets import read_table

TABLES = tables()


def read(name, folder):
    table = TABLES[name]
    path = folder / name
    path.write_bytes(table.content)
    with warnings.catch_warnings(action="ignore"):
        return read_table(path, **({"text": "about"} | table.options))


def that(said):
    return [name for name, table in TABLES.items() if said(table)]


@pytest.mark.parametrize("name", that(lambda t: not t.refused and not t.doubt))
def test_an_awkward_table_is_read_as_the_rows_it_was_made_from(name, tmp_path):
    table = read(name, tmp_path)
    assert table.text == [row["about"] for row in ROWS]
    assert Labels.from_sets([row["tags"] for row in ROWS]) == table.Y
    assert not table.reading.doubts
    assert TABLES[name].note in " ".join(table.reading.notes)
    if not TABLES[name].note:
        assert not table.reading.notes


@pytest.mark.parametrize("name", that(lambda t: t.doubt))
def test_a_likely_misreading_is_one_doubt_that_names_an_option(name, tmp_path):
    (doubt,) = read(name, tmp_path).reading.doubts
    assert TABLES[name].doubt in doubt.what
    assert len(doubt.options) == 1


@pytest.mark.parametrize("name", that(lambda t: t.refused))
def test_what_cannot_be_read_is_refused_in_one_sentence(name, tmp_path):
    with pytest.raises(ValueError, match=re.escape(TABLES[name].refused)) as error:
        read(name, tmp_path)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith((name, "the "))


def test_there_are_forty_of_them_and_more():
    assert len(TABLES) >= 40
