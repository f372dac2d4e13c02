"""A hook of mkdocs: the report on all boards is a page of the site, made from bench/results."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from tacit_bench.report import report

RESULTS = Path(__file__).parent.parent / "bench" / "results"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add report.html, so that pages can link to it and the check of links knows it."""
    files.append(File.generated(config, "report.html", content=report(RESULTS)))
    return files
