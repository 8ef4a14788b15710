"""The wheel and the sdist hold all that they need, and work in environments that have nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.package.test_rooms import FOLDERS, MODULES

IGNORED = ("__pycache__", ".hypothesis", ".*_cache", "build", "dist", "node_modules", "*.egg-info")
"""What .gitignore names, as far as it may lie in a folder of TOP."""

TOP = (
    *(".ci", "docs", "generated", "kiln_check", "ksy", "tests", "tools"),
    *(".gitattributes", ".gitignore", "*.md", "LICENSE", "MANIFEST.in", "pyproject.toml"),
)
"""What lies at the top of the checkout."""

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


def tracked(folder: Path) -> list[Path]:
    """The files below a folder that git tracks and that are there; none where it is no checkout of git."""
    git = shutil.which("git")
    done = run(git, "ls-files", "-z", cwd=folder) if git is not None else None
    names = done.stdout.split("\0")[:-1] if done is not None and done.returncode == 0 else []
    return [folder / name for name in names if (folder / name).exists()]


def files_of_the_checkout(folder: Path) -> list[Path]:
    """The files that git tracks; in a checkout without git, all below TOP that .gitignore does not name."""
    by_git = tracked(folder)
    if by_git:
        return by_git
    paths = (path for top in TOP for at in folder.glob(top) for path in (at, *at.rglob("*")))
    return [path for path in paths if path.is_file() and not is_ignored(path.relative_to(folder))]


def is_ignored(path: Path) -> bool:
    return any(fnmatchcase(part, pattern) for part in path.parts for pattern in IGNORED)


@pytest.fixture(scope="session")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout through a zip, as a browser downloads it: what zipfile unpacks has no symlinks."""
    folder = tmp_path_factory.mktemp("zip")
    paths = files_of_the_checkout(root)
    assert [path for path in paths if path.is_symlink()] == []
    with zipfile.ZipFile(folder / "checkout.zip", "w") as archive:
        for path in paths:
            archive.write(path, path.relative_to(root))
    with zipfile.ZipFile(folder / "checkout.zip") as archive:
        archive.extractall(folder / "checkout")
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


def test_the_top_of_the_checkout_is_known(root: Path) -> None:
    tops = {path.relative_to(root).parts[0] for path in files_of_the_checkout(root)}
    assert [top for top in tops if not any(fnmatchcase(top, pattern) for pattern in TOP)] == []


def test_what_lies_about_is_no_file_of_the_checkout(root: Path, checkout: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    shutil.copytree(checkout, folder)
    for name in ("pip.log", "download/config.json", "kiln_check/__pycache__/cli.pyc"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    assert not tracked(folder)
    assert {path.relative_to(folder) for path in files_of_the_checkout(folder)} == {
        path.relative_to(root) for path in files_of_the_checkout(root)
    }


def test_the_wheel_has_every_module_and_the_data(
    root: Path, checkout: Path, built: tuple[Path, Path]
) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = {"kiln_check/py.typed"}
    for package, folder in FOLDERS.items():
        inside = package.replace(".", "/")
        paths = [*(path for path in MODULES.values() if path.is_relative_to(folder))]
        if package.rpartition(".")[2] in ("corpus", "docs", "ksy"):
            paths += [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        of_checkout = [path for path in paths if (checkout / path.relative_to(root)).exists()]
        wanted |= {f"{inside}/{path.relative_to(folder).as_posix()}" for path in of_checkout}
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
