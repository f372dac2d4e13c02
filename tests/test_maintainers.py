"""The papers for maintainers tell the truth: what they name exists, and what must be one is one."""

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import tacit

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAPERS = [ROOT / "CONTRIBUTING.md", ROOT / "RELEASING.md", ARCHITECTURE]
PAPERS += sorted((ROOT / "docs" / "decisions").glob("*.md"))
PACKAGES = [ROOT / "src" / "tacit", ROOT / "bench" / "src" / "tacit_bench"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\s]+)`")
STEP = re.compile(r"^\| `(src/[^`]+\.py)` \| `([^`]+)` \|", re.MULTILINE)


def name_of(path):
    return str(path.relative_to(ROOT))


def prose(paper):
    """The text of a page, without its blocks of code."""
    return FENCED.sub("", paper.read_text(encoding="utf-8"))


def defined_in(path):
    """The functions, classes and methods of a module, by their qualified names."""
    names = set()

    def walk(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                names.add(prefix + child.name)
                walk(child, f"{prefix}{child.name}.")

    walk(ast.parse(path.read_text(encoding="utf-8")), "")
    return names


@pytest.mark.parametrize("paper", PAPERS, ids=name_of)
def test_every_path_that_a_paper_names_exists(paper):
    words = CODE.findall(prose(paper))
    paths = [word for word in words if "/" in word or word.endswith((".py", ".md", ".toml"))]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_step_of_a_walk_is_a_function_of_its_file():
    steps = STEP.findall(ARCHITECTURE.read_text(encoding="utf-8"))
    assert len(steps) > 20
    assert [step for step in steps if step[1] not in defined_in(ROOT / step[0])] == []


def test_the_layers_are_those_that_the_linter_checks():
    [contract] = PROJECT["tool"]["importlinter"]["contracts"]
    text = ARCHITECTURE.read_text(encoding="utf-8")
    shown = re.search(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    assert [re.split(r"\s{2,}", line)[0] for line in shown.splitlines()] == contract["layers"]


def test_the_drawing_of_the_layers_shows_the_same():
    [contract] = PROJECT["tool"]["importlinter"]["contracts"]
    drawing = (ROOT / "docs" / "images" / "layers.svg").read_text(encoding="utf-8")
    lines = defaultdict(list)
    for y, name in re.findall(r'class="name" x="\d+" y="(\d+)"[^>]*>(\w+)<', drawing):
        lines[int(y)].append(name if name == "tacit_bench" else f"tacit.{name}")
    assert [" | ".join(lines[y]) for y in sorted(lines)] == contract["layers"]


def test_every_folder_has_its_paragraph():
    folders = PACKAGES[1:] + [
        path.parent for package in PACKAGES for path in package.glob("*/__init__.py")
    ]
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert [path for path in map(name_of, folders) if f"**`{path}/`**" not in text] == []


def test_the_version_is_written_once():
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "tacit.__version__"}
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    dated = [s for s in sections if re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", s)]
    assert sections == ["Unreleased", *dated]
    assert dated[0].split()[0] == tacit.__version__


def test_no_two_public_classes_have_one_name():
    homes = defaultdict(list)
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes[node.name].append(name_of(path))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
