"""The program on the page of concepts runs as it stands."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "concepts.md"


def test_the_reference_player_plays_an_episode(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(program, {})
    earned, usual, success = re.fullmatch(
        r"(.+) of about (.+), success: (.+)\n", capsys.readouterr().out
    ).groups()
    assert float(earned) > 0.9 * float(usual)
    assert success == "True"
