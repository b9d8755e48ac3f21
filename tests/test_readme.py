"""The README's session prints what the README says it prints."""

import re
import shlex
import tomllib
from pathlib import Path

from typer.testing import CliRunner

from hopmap.scenarios.cli import app
from hopmap.scenarios.scenario import Scenario

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _session():
    """Yield (command, output) of the block that starts with a prompt."""
    (block,) = re.findall(r"```\n(\$ hopmap .*?)```", README, flags=re.DOTALL)
    for part in block.split("$ hopmap ")[1:]:
        command, _, output = part.partition("\n")
        yield shlex.split(command, comments=True), output.strip("\n")


def _comparable(text):
    """Leave out how long it took this machine, and how wide that made a column."""
    text = re.sub(r"(took|, in|replayed in) +[\d.]+ \w+", r"\1", text)
    return [re.sub(r"[- ]+", " ", line).strip() for line in text.splitlines()]


def test_the_session_is_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for command, printed in _session():
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.stderr
        lines = _comparable(result.stdout)
        if printed.endswith("..."):
            lines = lines[: len(printed.splitlines()) - 1]
            printed = printed.removesuffix("...")
        if printed:
            assert lines == _comparable(printed), command


def test_the_scenario_has_known_keys_only():
    (block,) = re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL)
    given = tomllib.loads(block)
    scenario = Scenario.model_validate(given)
    assert scenario.published is not None
