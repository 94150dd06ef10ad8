"""Puts a built site into the folder of all versions, which the workflow `docs.yml` publishes.

python tests/support/site_versions.py SITE PAGES VERSION

PAGES gets VERSION/, `versions.json` (latest first, then releases, newest first) and an index that leads to a version:
the newest release, or `latest` as long as there is none.
"""

import json
import re
import shutil
import sys
from pathlib import Path

LATEST = "latest"
_RELEASE = re.compile(r"v(\d+)\.(\d+)(?:\.(\d+))?")


def add(site: Path, pages: Path, version: str) -> list[str]:
    """Replace one version, and list all of them."""
    if version != LATEST and not _RELEASE.fullmatch(version):
        raise SystemExit(f"{version} is neither {LATEST} nor a release such as v1.2.0")
    target = pages / version
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(site, target)
    releases = [path.name for path in pages.iterdir() if path.is_dir() and _RELEASE.fullmatch(path.name)]
    releases.sort(key=lambda name: [int(part or 0) for part in _RELEASE.fullmatch(name).groups()], reverse=True)  # type: ignore[union-attr]
    versions = [*([LATEST] if (pages / LATEST).is_dir() else []), *releases]
    (pages / "versions.json").write_text(json.dumps(versions) + "\n", encoding="utf-8")
    first = releases[0] if releases else versions[0]
    page = (
        f'<title>rankbeam</title><meta http-equiv="refresh" content="0; url={first}/"><a href="{first}/">rankbeam</a>'
    )
    (pages / "index.html").write_text(f'<!doctype html><meta charset="utf-8">{page}\n', encoding="utf-8")
    (pages / ".nojekyll").touch()
    return versions


if __name__ == "__main__":
    print(*add(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))  # noqa: T201
