"""A folder of awkward tables: the same rows, written in the ways people write them.

Each either reads as the rows it was made from, or is doubted or refused in a sentence.
`python tests/awkward.py FOLDER` makes the folder, to be looked at.
"""

import csv
import gzip
import io
import json
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

TAGS = ["graphics", "gtk", "cli", "editor", "network", "games", "sound", "mail", "café", "science"]
WORDS = ["paint", "edit", "draw", "sort", "view", "send", "play", "hear", "image", "photo", "map"]


def _rows():
    """Sixty rows with up to four tags, one of them without any."""
    draw = random.Random(0)
    rows = []
    for i in range(60):
        tags = sorted(draw.sample(TAGS, draw.choice([1, 2, 2, 3, 4])))
        about = f"{' '.join(draw.sample(WORDS, 5))} für {i}"
        rows.append({"name": f"p{i}", "about": about, "tags": tags})
    rows[7]["tags"] = []
    return rows


ROWS = _rows()


@dataclass(frozen=True)
class Awkward:
    """A table: its bytes, the options it is read with, and the sentence where it is not read."""

    content: bytes
    options: dict = field(default_factory=dict)
    doubt: str = ""  # said, and the rows are not those it was made from
    refused: str = ""
    note: str = ""  # said, and the rows are


def _csv(rows, delimiter=",", encoding="utf-8", header=True, **how):
    text = io.StringIO()
    write = csv.writer(text, delimiter=delimiter, lineterminator="\n", **how)
    lines = [list(rows[0])] if header else []
    write.writerows(lines + [list(row.values()) for row in rows])
    return text.getvalue().encode(encoding)


def _tagged(written, rows=None, **how):
    """A CSV whose cells of tags are what `written` makes of a list."""
    return _csv([row | {"tags": written(row["tags"])} for row in rows or ROWS], **how)


def _bars(tags):
    return "|".join(tags)


def _wide(yes, no, blank=None):
    """A column each; of the noes each third is blank, where a blank is given."""
    said = lambda i, tag, row: (
        yes if tag in row["tags"] else no if blank is None or (i % 3) else blank
    )
    return [
        {"name": row["name"], "about": row["about"]}
        | {tag: said(i, tag, row) for i, tag in enumerate(TAGS, start=k)}
        for k, row in enumerate(ROWS)
    ]


def _long():
    lines = [row | {"tags": tag} for row in ROWS for tag in row["tags"] or [""]]
    random.Random(1).shuffle(lines)
    return sorted(lines, key=lambda line: int(line["name"][1:]))


def _objects(written=lambda tags: tags):
    return [row | {"tags": written(row["tags"])} for row in ROWS]


def _json(value, **how):
    return json.dumps(value, ensure_ascii=False, **how).encode()


def _lines(rows):
    return b"".join(_json(row) + b"\n" for row in rows)


def _excel(*sheets):
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for title, lines in sheets:
        sheet = book.create_sheet(title)
        for line in lines:
            sheet.append(line)
    kept = io.BytesIO()
    book.save(kept)
    return kept.getvalue()


def _sheet():
    return [list(ROWS[0]), *([row["name"], row["about"], _bars(row["tags"])] for row in ROWS)]


def _parquet(rows):
    import pyarrow as pa
    from pyarrow import parquet

    kept = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), kept)
    return kept.getvalue()


def _shouted(tags):
    return _bars(tag.upper() if i % 2 else tag for i, tag in enumerate(tags))


def _numpy(tags):
    return "[" + " ".join(map(repr, tags)) + "]"


def tables():
    """Every table by the name of its file."""
    comma, plain = {"separator": ","}, _tagged(_bars)
    titles = [["Export of 20 November"], [], ["name", "about", "tags"]]
    three = [
        {"name": r["name"], "about": r["about"]}
        | {f"tag {j}": r["tags"][j] if len(r["tags"]) > j else "" for j in range(4)}
        for r in ROWS
    ]
    sentence = lambda about: "The {} and {}: to {} a {} is for the {}".format(*about.split())
    swapped = lambda row: {"about": _bars(row["tags"]), "tags": sentence(row["about"])}
    sentences = [{"name": row["name"], **swapped(row)} for row in ROWS]
    return {
        # Separators
        "bars.csv": Awkward(plain),
        "semicolons in commas.csv": Awkward(_tagged("; ".join)),
        "commas.csv": Awkward(_tagged(", ".join)),
        "slashes.csv": Awkward(_tagged("/".join), note="tags are cut at slashes"),
        "blanks.csv": Awkward(_tagged(" ".join), note="tags are cut at blanks"),
        "lines in a cell.csv": Awkward(_tagged("\n".join)),
        "angles.csv": Awkward(_tagged(lambda tags: "".join(f"<{tag}>" for tag in tags))),
        # Lists in a cell
        "json in a cell.csv": Awkward(_tagged(json.dumps)),
        "python in a cell.csv": Awkward(_tagged(repr)),
        "set in a cell.csv": Awkward(_tagged(lambda tags: repr(set(tags)) if tags else "")),
        "numpy in a cell.csv": Awkward(_tagged(_numpy)),
        "no quotes.csv": Awkward(_tagged(lambda tags: f"[{', '.join(tags)}]")),
        "records in a cell.csv": Awkward(
            _tagged(lambda tags: json.dumps([{"id": i, "name": tag} for i, tag in enumerate(tags)]))
        ),
        # Delimiters, encodings, headers
        "semicolons.csv": Awkward(_tagged(",".join, delimiter=";")),
        "commas in a column.csv": Awkward(
            _csv(
                [
                    {"name": r["name"], "a, b, c, d": "1,5,2,5", "about": r["about"]}
                    | {"tags": _bars(r["tags"])}
                    for r in ROWS
                ],
                delimiter=";",
            )
        ),
        "tabs.csv": Awkward(_tagged(_bars, delimiter="\t")),
        "declared.csv": Awkward(b"sep=;\n" + _tagged(_bars, delimiter=";")),
        "cp1252.csv": Awkward(
            _tagged(",".join, delimiter=";", encoding="cp1252"), note="read as cp1252"
        ),
        "mark.csv": Awkward(_tagged(_bars, encoding="utf-8-sig")),
        "utf16.csv": Awkward(_tagged(_bars, delimiter="\t", encoding="utf-16")),
        "utf16 without a mark.tsv": Awkward(_tagged(_bars, delimiter="\t", encoding="utf-16-le")),
        "latin2.csv": Awkward(_tagged(_bars, encoding="iso8859_2"), {"encoding": "iso8859_2"}),
        "titles first.csv": Awkward(
            "\n".join(";".join(line) for line in titles).encode()
            + b"\n"
            + _tagged(_bars, delimiter=";", header=False)
        ),
        "no names.csv": Awkward(
            _tagged(_bars, header=False), {"text": "2", "labels": "3", "id": "1"}
        ),
        "carriage returns.csv": Awkward(plain.replace(b"\n", b"\r")),
        "empty columns behind.csv": Awkward(
            b"\n".join(line + b",," * (i > 9) for i, line in enumerate(plain.split(b"\n")))
        ),
        "zipped.csv": Awkward(gzip.compress(plain)),
        # A column each, several columns, a line each
        "wide.csv": Awkward(_csv(_wide(1, 0)), {"labels": ["*"]}),
        "wide and more.csv": Awkward(
            _csv([{"colour": "red", **row} for row in _wide(1, 0)]),
            {"labels": ["[cegmn]*", "s*"]},
            note="matches 'colour', 'name' too",
        ),
        "wide in words.csv": Awkward(_csv(_wide("Yes", "No", "")), {"labels": TAGS}),
        "wide crosses.csv": Awkward(_csv(_wide("x", "")), {"labels": TAGS}),
        "four columns of tags.csv": Awkward(_csv(three), {"labels": "tag *"}),
        "a line each.csv": Awkward(_csv(_long()), {"id": "name"}),
        # Other formats
        "array.json": Awkward(_json(_objects(), indent=1)),
        "answer.json": Awkward(_json({"total": 60, "data": _objects()})),
        "columns.json": Awkward(_json({k: [row[k] for row in ROWS] for k in ROWS[0]})),
        "lines by another name.json": Awkward(_lines(_objects(_bars))),
        "nothing said.jsonl": Awkward(
            _lines({k: v for k, v in row.items() if v} for row in _objects())
        ),
        "book.xlsx": Awkward(
            _excel(
                ("Notes", [["read", "me", "before", "all"]]), ("Data", [["Export"], [], *_sheet()])
            ),
            note="'Data' is read",
        ),
        "lists.parquet": Awkward(_parquet(_objects())),
        # Likely misreadings
        "a line each, no id.csv": Awkward(_csv(_long()), doubt="one tag a line"),
        "the wrong column.csv": Awkward(plain, {"labels": "name"}, doubt="label of its own"),
        "sentences.csv": Awkward(_csv(sentences), doubt="sentences rather than tags"),
        "pairs.csv": Awkward(
            _csv([row | {"tags": f"t{i} t{i + 1}"} for i, row in enumerate(ROWS)]),
            doubt="they may be several tags",
        ),
        "shouted.csv": Awkward(_tagged(_shouted), doubt="in several spellings"),
        "one of many.csv": Awkward(
            _csv(_wide(1, 0)), {"labels": "gtk"}, doubt="holds only yes and no"
        ),
        "lists cut.csv": Awkward(_tagged(repr), comma, doubt="keep brackets or quotes"),
        # Refused
        "damaged.csv": Awkward(plain + b"\xff\xfe,\n", refused="UTF-8 up to the bytes b'\\xff'"),
        "short.csv": Awkward(plain + b"p61,ever\n", refused="line 62: expected 3 cells; got 2"),
        "open quote.csv": Awkward(plain + b'p61,"ever,\n', refused="begins in line 62"),
        "other name.csv": Awkward(plain, {"labels": "Tags"}, refused="did you mean 'tags'?"),
        "spelt wrongly.csv": Awkward(plain, {"text": "abuot"}, refused="did you mean 'about'?"),
        "wide, not said.csv": Awkward(
            _csv(_wide(1, 0)), refused="10 columns hold only yes and no; if each is a tag, '*'"
        ),
        "text for tags.csv": Awkward(
            _tagged(lambda tags: "".join(tags) * 99), refused="letters in 'tags', such as"
        ),
        "only numbers.csv": Awkward(
            _csv([{"1": i, "2": 2 * i} for i in range(1, 9)], header=False),
            {"text": "2"},
            refused="no column 'tags'; it has 1, 2: no line names the columns",
        ),
        "really a book.csv": Awkward(_excel(("Data", _sheet())), refused="is Excel by its"),
        "page.csv": Awkward(b"<html><table></table></html>", refused="is a web page"),
        "old.csv": Awkward(b"\xd0\xcf\x11\xe0\xa1\xb1", refused="of the old format"),
        "cut.json": Awkward(_json(_objects())[:-9], refused="is not whole JSON"),
        "no rows.json": Awkward(b'{"a": 1}', refused="is not an array of objects"),
        "cut list.csv": Awkward(
            plain + b"p61,about 'it,\"['a', 'b\"\n", {"separator": "list"}, refused="expected tags"
        ),
        "not yes or no.csv": Awkward(
            _csv(_wide(1, 0)).replace(b",0\n", b",maybe\n", 1),
            {"labels": TAGS},
            refused="expected 1, 0, yes, no or nothing; got 'maybe'",
        ),
    }


def make(folder):
    """Write them all."""
    for name, table in tables().items():
        (Path(folder) / name).write_bytes(table.content)


if __name__ == "__main__":
    make(sys.argv[1])
