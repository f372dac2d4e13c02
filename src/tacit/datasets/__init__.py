"""Data sets: ready-made ones by name, and readers and writers for the formats people have."""

from tacit.datasets.arff import read_arff, write_arff
from tacit.datasets.dataset import Dataset
from tacit.datasets.denied import tags_of
from tacit.datasets.npz import read_npz, write_npz
from tacit.datasets.store import download, downloadable, load, names
from tacit.datasets.svmlight import read_svmlight, write_svmlight
from tacit.datasets.tables import Doubt, Reading, ReadingWarning, Table, read_table, write_table
from tacit.datasets.xmlrepo import read_xmlrepo, write_xmlrepo

__all__ = [
    "Dataset",
    "Doubt",
    "Reading",
    "ReadingWarning",
    "Table",
    "download",
    "downloadable",
    "load",
    "names",
    "read_arff",
    "read_npz",
    "read_svmlight",
    "read_table",
    "read_xmlrepo",
    "tags_of",
    "write_arff",
    "write_npz",
    "write_svmlight",
    "write_table",
    "write_xmlrepo",
]
