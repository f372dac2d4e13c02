"""Tables of rows with tags: CSV, JSON, Parquet, Excel, and data frames.

`files` opens a table and finds its cells and the names of its columns; `tags` finds how tags are
written in them; `read` makes text, numbers and labels of them, and `reading` says what was
understood and what seems wrong with it.
"""

from tacit.datasets.tables.read import Table, read_table
from tacit.datasets.tables.reading import Doubt, Reading, ReadingWarning
from tacit.datasets.tables.write import write_table

__all__ = ["Doubt", "Reading", "ReadingWarning", "Table", "read_table", "write_table"]
