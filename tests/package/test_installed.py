"""The wheel and the sdist hold all that they need, and work in environments that have nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.package.test_rooms import FOLDERS, MODULES

IGNORED = shutil.ignore_patterns(
    *("__pycache__", ".git", ".venv", ".hypothesis", ".*_cache", ".coverage"),
    *("build", "dist", "node_modules", "*.egg-info"),
)
"""What .gitignore names."""

SUBSET = ("tests/command", "tests/conformance", "tests/directory", "tests/rules/test_overlap.py")
"""Those of the sdist's tests that run in its environment; the others are only collected there."""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment | {"KILN_EXAMPLES": "5"},
    )


def python_with(folder: Path, *requirements: str, cwd: Path) -> Path:
    """Make an environment and install into it; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = run(python, "-m", "pip", "install", "-q", *requirements, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture(scope="session")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout through a zip, as a browser downloads it: what zipfile unpacks has no symlinks."""
    folder = tmp_path_factory.mktemp("zip")
    shutil.copytree(root, folder / "copy", symlinks=True, ignore=IGNORED)
    links = [path for path in (folder / "copy").rglob("*") if path.is_symlink()]
    assert links == []
    archive = shutil.make_archive(str(folder / "checkout"), "zip", folder / "copy")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder / "checkout")
    return folder / "checkout"


@pytest.fixture(scope="session")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist made of the checkout, and the wheel made of the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "build", "-o", folder, checkout, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="session")
def unpacked(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built[0]) as archive:
        archive.extractall(folder, filter="data")
    (inner,) = folder.iterdir()
    return inner


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_sdist_is_the_whole_checkout(checkout: Path, unpacked: Path) -> None:
    made = {name for name in files_in(unpacked) if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    wanted = {name for name in files_in(checkout) if ".egg-info/" not in name}
    assert files_in(unpacked) - made == wanted


def test_the_wheel_has_every_module_and_the_data(root: Path, built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = {"kiln_check/py.typed"}
    for package, folder in FOLDERS.items():
        inside = package.replace(".", "/")
        paths = [*(path for path in MODULES.values() if path.is_relative_to(folder))]
        if package.rpartition(".")[2] in ("corpus", "docs", "ksy"):
            paths += [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        wanted |= {f"{inside}/{path.relative_to(folder).as_posix()}" for path in paths}
    assert names == wanted


def test_the_wheel_works_in_a_clean_environment(built: tuple[Path, Path], root: Path, tmp_path: Path) -> None:
    python = python_with(tmp_path / "venv", str(built[1]), cwd=tmp_path)
    kiln = python.with_name("kiln")
    done = run(kiln, "check", root / "tests" / "corpus", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "needs 1 scale" in done.stdout
    for option, file in (
        ("--page", root / "docs" / "kiln-v2-layout.md"),
        ("--ksy", root / "ksy" / "kiln_v2.ksy"),
    ):
        path = Path(run(kiln, "rules", option, cwd=tmp_path).stdout.rstrip("\n"))
        assert path.is_relative_to(tmp_path / "venv")
        assert path.read_bytes() == file.read_bytes()
    reader = [str(kiln), "check", "--format", "json", "{file}"]
    done = run(kiln, "conformance", "--json", "--rule", "scale-count", "--", *reader, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sdist_installs_and_its_tests_pass(unpacked: Path, tmp_path: Path) -> None:
    python = python_with(tmp_path / "venv", "-e", ".[test]", cwd=unpacked)
    done = run(python.with_name("kiln"), "check", "tests/corpus", cwd=unpacked)
    assert done.returncode == 1, done.stderr
    done = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", cwd=unpacked)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *SUBSET, cwd=unpacked)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_checkout_that_is_not_installed_says_what_to_do(checkout: Path) -> None:
    code = "import importlib.util as u; assert u.find_spec('numpy') is None; import kiln_check.constants"
    done = run(sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.'); {code}", cwd=checkout)
    assert done.stderr.splitlines()[-1].endswith(
        "run pip install -e . in the checkout, or start Python in another folder"
    )
