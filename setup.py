"""Settings that pyproject.toml cannot express: on the package's page, the README's links lead to the repository.

Beam's `--setup_file` wants a setup.py, too.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

FOLDER = Path(__file__).parent
PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = f"{PROJECT['urls']['Source']}/raw/v{PROJECT['version']}"
PAGES = f"{PROJECT['urls']['Source']}/blob/v{PROJECT['version']}"

README = (FOLDER / "README.md").read_text(encoding="utf-8")
README = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\1{FILES}/", README)
README = re.sub(r"(?<!!)(\[[^\]]*\]\()(?!https?:|#)", rf"\1{PAGES}/", README)

setup(long_description=README, long_description_content_type="text/markdown")
