"""The package, built once for all tests of a process, and an environment that has only its wheel."""

import shutil
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from support.built import BESIDE, PACKAGES, Built, run
from support.data import REPOSITORY
from support.outage import outage, small_tables  # noqa: F401  fixtures of the tests of dashboards


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist, and the wheel that comes out of it, of a copy whose path has a space."""
    folder = tmp_path_factory.mktemp("packaging")
    checkout, build = folder / "a checkout", folder / "made here"
    for name in PACKAGES + BESIDE:
        if (REPOSITORY / name).is_dir():
            without = shutil.ignore_patterns("__pycache__", "out")
            shutil.copytree(REPOSITORY / name, checkout / name, symlinks=True, ignore=without)
        else:
            shutil.copy(REPOSITORY / name, checkout / name)
    # Without isolation, as Beam does it: with isolation, build would download setuptools.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", build, checkout, cwd=folder)
    (sdist_file,), (wheel_file,) = build.glob("*.tar.gz"), build.glob("*.whl")
    with tarfile.open(sdist_file) as archive:
        members = {member.name: archive.extractfile(member) for member in archive.getmembers() if member.isfile()}
        sdist = {name.partition("/")[2]: file.read() for name, file in members.items() if file is not None}
    with zipfile.ZipFile(wheel_file) as archive:
        wheel = {name: archive.read(name) for name in archive.namelist()}
    return Built(checkout, sdist, wheel, wheel_file)


@pytest.fixture(scope="session")
def worker(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has our dependencies, and rankbeam from the wheel alone."""
    folder = tmp_path_factory.mktemp("a worker")
    venv.EnvBuilder(symlinks=True).create(folder)
    python = folder / "bin" / "python"
    install = ("install", "--quiet", "--no-deps", "--no-index", built.wheel_file)
    run(sys.executable, "-m", "pip", "--isolated", "--python", python, *install, cwd=folder)
    # A path that stands in a .pth file is searched, but its own .pth files, such as that of an editable
    # rankbeam, are not read.
    site_packages = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    )
    dependencies = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (site_packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in dependencies))
    return folder / "bin"
