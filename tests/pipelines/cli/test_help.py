"""Every command names its page of the documentation, and a shell completes it as the first page says."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.shell_completion import get_completion_class
from support.cli import rankbeam
from support.data import REPOSITORY
from support.documents import page

from rankbeam.pipelines.cli import main
from rankbeam.pipelines.cli.group import DOCUMENTATION, GUIDES


def test_every_command_names_a_page_that_is_there() -> None:
    assert GUIDES.keys() == main.commands.keys()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Documentation"] == f"{DOCUMENTATION}/index.md"
    assert all(page(name).path.exists() for name in GUIDES.values())
    for arguments, name in (((), "index"), (("gate",), "gates"), (("goldens", "plan"), "goldens")):
        assert rankbeam(*arguments, "--help").stdout.endswith(f"\nGuide: {DOCUMENTATION}/{name}.md\n")


def test_every_option_names_its_value() -> None:
    """Without a name, click shows the type: INTEGER RANGE."""
    commands = [*main.commands.values()]
    commands += [command for group in commands if isinstance(group, click.Group) for command in group.commands.values()]
    options = [param for command in commands for param in command.params if isinstance(param, click.Option)]
    types = ("integer", "float", "integer range", "float range")
    assert [option.opts for option in options if option.metavar is None and option.type.name in types] == []


def test_a_place_of_a_command_is_completed_with_files() -> None:
    def completed(command: click.Command) -> set[str]:
        items = [
            item
            for param in command.params
            if isinstance(param, click.Argument) or param.metavar in ("FILE", "DIR")
            for item in param.shell_complete(click.Context(command), "")
        ]
        return {item.type for item in items}

    assert [name for name, command in main.commands.items() if completed(command) - {"file"}] == []
    assert completed(main.commands["score"]) == {"file"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_after_the_line_of_the_guide(tmp_path: Path) -> None:
    lines = dict(re.findall(r"^\| (\w+) \| `(.*)` \|$", page("start").text, flags=re.MULTILINE))
    assert all(get_completion_class(shell) and f"={shell}_source " in line for shell, line in lines.items())
    (tmp_path / "helpdesk.yaml").touch()
    script = f"""{lines["bash"]}
        complete_at() {{
            COMPREPLY=(); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rankbeam_completion rankbeam
            echo "${{COMPREPLY[@]}}"
        }}
        complete_at rankbeam evalu
        complete_at rankbeam score qrels.txt a.run --format la
    """
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    command = ["bash", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["evaluate", "latex"], done.stderr
