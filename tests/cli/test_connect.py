"""`kbgym connect`: one entry in a file that is somebody else's, and nothing else of it touched."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.errors import BadInput
from kbgym.serving.connect.agents import AGENTS
from kbgym.serving.connect.jsonc import read, with_member, without_member
from kbgym.serving.connect.rules import rules_with

Kbgym = Callable[..., tuple[int, str, str]]
GOLDEN = Path(__file__).parent / "connect"
SERVING = ["kbgym", "serve", "/stores/first", "--mcp", "--role", "reader"]
OTHER = ["kbgym", "serve", "/stores/other", "--mcp", "--role", "curator"]


def golden(agent: str) -> tuple[str, str]:
    before, after = (GOLDEN / f"{agent}.{when}" for when in ("before", "after"))
    return before.read_bytes().decode(), after.read_bytes().decode()


@pytest.mark.parametrize("agent", AGENTS)
def test_an_entry_is_put_in_changed_and_taken_out(agent: str) -> None:
    kind, (before, after) = AGENTS[agent], golden(agent)
    assert kind.written(before, "kbgym", kind.entry(SERVING)) == after
    assert kind.written(after, "kbgym", kind.entry(SERVING)) == after, "a second time changes nothing"
    other = kind.written(after, "kbgym", kind.entry(OTHER))
    assert other != after and kind.written(other, "kbgym", kind.entry(SERVING)) == after
    both = kind.written(after, "second", kind.entry(OTHER))
    assert kind.written(both, "second", None) == after
    back = kind.written(after, "kbgym", None)
    if agent == "zed":  # an object that was empty is not kept empty
        before = before.replace('  "context_servers": {},\n', "")
    assert back.strip("{}\n") == before.strip("{}\n")


@pytest.mark.parametrize("agent", AGENTS)
def test_windows_line_ends_stay(agent: str) -> None:
    kind, (before, after) = AGENTS[agent], golden(agent)
    made = kind.written(before.replace("\n", "\r\n"), "kbgym", kind.entry(SERVING))
    assert made.replace("\r\n", "\n") == after
    assert before == "" or "\n" not in made.replace("\r\n", "")


@pytest.mark.parametrize("before", ["", "# Mine\n", "# Mine", "# Mine\n\nno end\n", "# Mine\r\n"])
def test_rules_stand_between_marks_in_a_file_of_somebody_elses(before: str) -> None:
    after, line_end = rules_with(before, "kbgym", "curator"), "\r\n" if "\r" in before else "\n"
    assert after.startswith(before) and "`teach`" in after and after.endswith(f"end -->{line_end}")
    assert rules_with(after, "kbgym", "curator") == after, "a second time changes nothing"
    reader = rules_with(after, "kbgym", "reader")
    assert "`teach`" not in reader and rules_with(reader, "kbgym", "curator") == after
    both = rules_with(after, "second", "reader") + "More of mine.\n"
    assert rules_with(both, "second", None) == after + line_end + "More of mine.\n"
    assert rules_with(after, "kbgym", None).rstrip() == before.rstrip()
    for broken in (after + after, after.replace("begin", "x", 1), after.replace("end -->", "x", 1)):
        with pytest.raises(BadInput, match="not one pair"):
            rules_with(broken, "kbgym", "reader")


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), plain, max_size=4), st.sampled_from([None, 2, "\t"]), plain)
def test_any_json_keeps_its_values(values: dict[str, Any], indent: Any, value: Any) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    assert read(text).value == values
    if not isinstance(values.get("a", {}), dict):
        with pytest.raises(BadInput):
            with_member(text, ("a", "b"), value)
        return
    made = with_member(text, ("a", "b"), value)
    assert json.loads(made) == {**values, "a": {**values.get("a", {}), "b": value}}
    assert with_member(made, ("a", "b"), value) == made
    left = {name: item for name, item in values.get("a", {}).items() if name != "b"}
    assert json.loads(without_member(made, ("a", "b"))) == {
        **{name: item for name, item in values.items() if name != "a"},
        **({"a": left} if left else {}),
    }


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("cursor", "{"),
        ("cursor", '{"mcpServers": 7}'),
        ("cursor", "[1]"),
        ("cursor", "[" * 100_000),
        ("cursor", '{"a": 1} /*'),
        ("codex", "[x"),
        ("codex", 'mcp_servers = { kbgym = { command = "x" } }'),
        ("goose", "extensions: {a: {b: 1}}"),
        ("goose", "a: [1"),
    ],
)
def test_what_cannot_be_changed_is_left_alone(kbgym: Kbgym, tmp_path: Path, agent: str, text: str) -> None:
    file = tmp_path / "theirs"
    file.write_text(text)
    code, _, err = kbgym("connect", agent, tmp_path, "--file", file, "--write")
    assert code == 2 and str(file) in err and "Traceback" not in err
    assert file.read_text() == text


def test_the_verb_shows_then_writes_then_takes_back(
    kbgym: Kbgym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    file = tmp_path / "config.toml"
    shutil.copy(GOLDEN / "codex.before", file)
    file.chmod(0o600)
    before = file.read_bytes()
    code, out, _ = kbgym("connect", "codex", tmp_path)
    assert code == 0 and "+[mcp_servers.kbgym]" in out and "say --write" in out and file.read_bytes() == before
    more = ("--skill", tmp_path / "skills", "--rules", tmp_path / "AGENTS.md")
    code, out, _ = kbgym("connect", "codex", tmp_path, "--write", *more, "--role", "curator")
    assert code == 0 and "Written" in out and file.stat().st_mode & 0o777 == 0o600
    assert "`teach`" in (tmp_path / "AGENTS.md").read_text()
    skill = (tmp_path / "skills" / "kbgym" / "SKILL.md").read_text()
    assert skill.startswith("---\nname: kbgym\ndescription: ") and "# Keeping a store in order" in skill
    code, out, _ = kbgym("connect", "codex", tmp_path, "--write", *more, "--role", "curator")
    assert code == 0 and "nothing is changed" in out
    code, _, _ = kbgym("connect", "codex", tmp_path, "--remove", "--write", *more)
    assert code == 0 and file.read_bytes() == before and not (tmp_path / "skills" / "kbgym" / "SKILL.md").exists()
    assert not (tmp_path / "AGENTS.md").exists()
    assert kbgym("connect", "codex", tmp_path, "--name", "a b")[0] == 2


def test_a_linked_file_stays_a_link_and_a_new_one_goes_again(kbgym: Kbgym, tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text('{"x": 1}')
    os.symlink(real, link)
    assert kbgym("connect", "cursor", tmp_path, "--file", link, "--write")[0] == 0
    assert link.is_symlink() and "kbgym" in real.read_text()
    new = tmp_path / "deep" / "new.json"
    assert kbgym("connect", "cursor", tmp_path, "--file", new, "--write")[0] == 0 and new.exists()
    assert kbgym("connect", "cursor", tmp_path, "--file", new, "--remove", "--write")[0] == 0 and not new.exists()
