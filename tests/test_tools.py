"""The tools as agents meet them: schemas, roles, validation of anything that may be sent, and how results read."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fixtures import ACTIONS

from kbgym.canonical import encode, is_text
from kbgym.gym import actions, tools
from kbgym.gym.actions import (
    Action,
    Add,
    Added,
    Answer,
    Answered,
    Correct,
    Deleted,
    Edit,
    Edited,
    Error,
    Finished,
    Found,
    Invalid,
    Link,
    Linked,
    LinkMany,
    Merged,
    Opened,
    Read,
    Result,
    Search,
    Unlinked,
)
from kbgym.gym.observations import render
from kbgym.gym.tools import MOST_TARGETS, MOST_TEXT, ROLES, TOOLS, check, parse

ROLE_TOOLS = {
    "reader": ["search", "read", "answer"],
    "curator": ["search", "read", "add", "edit", "delete", "link", "link_many", "unlink", "done"],
}


class TestSchemas:
    def test_there_are_ten_tools_and_two_roles(self) -> None:
        assert len(TOOLS) == 10
        assert {role: list(names) for role, names in ROLES.items()} == ROLE_TOOLS
        assert set(TOOLS) == {name for names in ROLE_TOOLS.values() for name in names}

    @pytest.mark.parametrize("role", ["reader", "curator"])
    def test_models_are_told_of_the_tools_of_their_role(self, role: Any) -> None:
        told = tools.openai_tools(role)
        assert [tool["function"]["name"] for tool in told] == ROLE_TOOLS[role]
        assert [tool["function"]["parameters"] for tool in told] == [tool.schema for tool in tools.tools_of(role)]
        assert json.loads(json.dumps(told)) == told

    @pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
    def test_a_schema_names_the_fields_of_its_action(self, tool: tools.Tool) -> None:
        assert tool.action.__struct_config__.tag == tool.name
        assert set(tool.schema["properties"]) == set(tool.action.__struct_fields__)
        required = [f.name for f in msgspec.structs.fields(tool.action) if f.required]
        assert tool.schema["required"] == required
        assert tool.schema["additionalProperties"] is False

    def test_every_action_of_an_agent_is_a_tool(self) -> None:
        assert set(get_args(Action)) - {Invalid, Correct} == {tool.action for tool in TOOLS.values()}


class TestParse:
    @pytest.mark.parametrize(
        ("name", "arguments", "role", "action"),
        [
            ("search", {"query": " who  lives\n in Lund "}, "reader", Search("who lives in Lund")),
            ("search", {"query": "x", "page": 3}, "curator", Search("x", 3)),
            ("read", {"id": "a/b c"}, "reader", Read("a/b c")),
            ("answer", {"text": "Lund"}, "reader", Answer("Lund")),
            ("edit", {"id": "d1", "text": "T."}, "curator", Edit("d1", "T.")),
            ("link_many", {"source": "a", "targets": ["b", "c"]}, "curator", LinkMany("a", ("b", "c"))),
            ("add", {"text": "Ünïcödé 日本語 😀 עברית."}, "curator", Add("Ünïcödé 日本語 😀 עברית.")),
        ],
    )
    def test_valid_calls(self, name: str, arguments: dict[str, Any], role: Any, action: Action) -> None:
        assert parse(name, arguments, role) == action

    @pytest.mark.parametrize("name", ["add", "edit", "delete", "link", "link_many", "unlink", "done", "", "Search"])
    def test_a_reader_has_no_editing_tool(self, name: str) -> None:
        refused = parse(name, {}, "reader")
        assert isinstance(refused, Invalid) and "there is no tool" in refused.reason
        assert "search, read, answer" in refused.reason

    def test_a_curator_does_not_answer(self) -> None:
        assert isinstance(parse("answer", {"text": "x"}, "curator"), Invalid)
        assert isinstance(check(Answer("x"), "curator"), Invalid)
        assert isinstance(check(Add("x"), "reader"), Invalid)


DEEP: Any = []
for _ in range(2000):
    DEEP = [DEEP]

# name, arguments, a piece of the observation
HOSTILE: list[tuple[str, Any, str]] = [
    ("add", {"text": "x" * 1_000_000}, "1,000,000 characters"),
    ("add", {"text": "x" * (MOST_TEXT + 1)}, "4,001 characters"),
    ("add", {"text": "bell \x07"}, "control characters"),
    ("add", {"text": "null \x00 byte"}, "control characters"),
    ("add", {"text": "\x9bescape"}, "control characters"),
    ("add", {"text": "half \ud83d a pair"}, "broken Unicode"),
    ("add", {"text": "\udc00\ud800"}, "broken Unicode"),
    ("add", {"text": "right \u202eto left"}, "direction marks"),
    ("add", {"text": "isolate \u2067x\u2069"}, "direction marks"),
    ("add", {"text": ""}, "text is empty"),
    ("add", {"text": " \n\t\u2003\u2028 "}, "text is empty"),
    ("add", {"text": "\u200b\u200d\ufeff"}, "text is empty"),
    ("add", {"text": None}, "Expected 'str'"),
    ("add", {"text": ["a"]}, "Expected 'str'"),
    ("add", {"text": {"a": 1}}, "Expected 'str'"),
    ("add", {"text": DEEP}, "Expected 'str'"),
    ("add", {"text": b"bytes"}, "Expected 'str'"),
    ("add", {}, "missing required field 'text'"),
    ("add", {"text": "x", "extra": 1}, "unknown field 'extra'"),
    ("add", {"text": "x", "\ud800": 1}, "broken Unicode"),
    ("add", {"text": "x", 5: 1}, "Expected 'str'"),
    ("add", {"text": "x", "tool": "delete"}, "Invalid value"),
    ("add", [], "Expected 'object'"),
    ("add", None, "Expected 'object'"),
    ("add", DEEP, "Expected 'object'"),
    ("add", "text", "Expected 'object'"),
    ("add\x00\u202e", {"text": "x"}, "there is no tool 'add'"),
    ("x" * 10_000, {}, "there is no tool"),
    ("\ud800", {}, "there is no tool"),
    ("search", {"query": "x", "page": 0}, "no page 0"),
    ("search", {"query": "x", "page": -1}, "no page -1"),
    ("search", {"query": "x", "page": 10**9 + 1}, "no page 1000000001"),
    ("search", {"query": "x", "page": 10**5000}, "no page so large"),
    ("search", {"query": "x", "page": -(10**40)}, "no page so large"),
    ("search", {"query": "x", "page": "1"}, "Expected 'int', got 'str'"),
    ("search", {"query": "x", "page": True}, "Expected 'int', got 'bool'"),
    ("search", {"query": "x", "page": 1.5}, "Expected 'int', got 'float'"),
    ("search", {"query": "x", "page": float("nan")}, "Expected 'int'"),
    ("search", {"query": "x", "page": float("inf")}, "Expected 'int'"),
    ("search", {"query": "x", "page": None}, "Expected 'int'"),
    ("search", {"query": "x" * 1_000_000}, "1,000,000 characters"),
    ("read", {"id": ""}, "not a document's id"),
    ("read", {"id": "x" * 201}, "not a document's id"),
    ("read", {"id": "d1\n"}, "not a document's id"),
    ("read", {"id": "\u202ed1"}, "not a document's id"),
    ("read", {"id": "\ud800"}, "not a document's id"),
    ("read", {"id": 5}, "Expected 'str', got 'int'"),
    ("link", {"source": "a", "target": "\x00"}, "not a document's id"),
    ("link_many", {"source": "a", "targets": [f"d{n}" for n in range(10_000)]}, "10000 targets are too many"),
    ("link_many", {"source": "a", "targets": ["b"] * (MOST_TARGETS + 1)}, "41 targets are too many"),
    ("link_many", {"source": "a", "targets": []}, "targets is empty"),
    ("link_many", {"source": "a", "targets": "b"}, "Expected 'array'"),
    ("link_many", {"source": "a", "targets": ["b", None]}, "Expected 'str'"),
    ("link_many", {"source": "a", "targets": ["b", "\ud800"]}, "not a document's id"),
    ("link_many", {"source": "a", "targets": [DEEP]}, "Expected 'str'"),
]


@pytest.mark.parametrize(
    ("name", "arguments", "said"), HOSTILE, ids=[f"{n}-{s}" for n, (_, _, s) in enumerate(HOSTILE)]
)
def test_whatever_is_sent_becomes_a_short_clear_observation(name: str, arguments: Any, said: str) -> None:
    invalid = parse(name, arguments, "curator")
    assert isinstance(invalid, Invalid)
    assert said in invalid.reason
    assert invalid.reason.isprintable() and len(invalid.reason) <= 220
    assert invalid.name.isprintable() and len(invalid.name) <= 40
    assert check(invalid, "curator") == invalid
    assert msgspec.json.decode(encode(invalid), type=Action) == invalid


AT_THE_LIMIT: list[tuple[str, dict[str, Any]]] = [
    ("add", {"text": "x" * 4_000}),
    ("add", {"text": "ö" * 4_000}),
    ("read", {"id": "x" * 200}),
    ("search", {"query": "x", "page": 10**9}),
    ("link_many", {"source": "a", "targets": ["b"] * 40}),
]


@pytest.mark.parametrize(("name", "arguments"), AT_THE_LIMIT, ids=lambda value: str(value)[:30])
def test_what_just_fits_is_taken(name: str, arguments: dict[str, Any]) -> None:
    """The numbers stand here again: traces and prompts are made with them."""
    assert json.loads(encode(parse(name, arguments, "curator"))) == {"tool": name, **arguments}
    assert (tools.PAGE_SIZE, tools.MOST_TARGETS, tools.MOST_TEXT, tools.MOST_PAGE) == (5, 40, 4_000, 10**9)


def test_what_does_not_fit_is_shown_as_far_as_a_line_goes() -> None:
    for page, shown in ((10**12 - 1, "999999999999"), (10**12, "so large"), (1 - 10**12, "-999999999999")):
        assert check(Search("x", page), "reader") == Invalid("search", f"there is no page {shown}; pages start at 1.")
    named = parse("x" * 41, {}, "reader")
    assert isinstance(named, Invalid) and named.name == "x" * 40
    said = check(Invalid("x", "\x00" * 399 + "yz"), "reader")
    assert said == Invalid("x", "y"), "of a long message the first four hundred characters, what can be shown of them"
    assert check(Invalid("x", "y" * 300), "reader") == Invalid("x", "y" * 200)


def test_schemas_say_the_limits() -> None:
    assert TOOLS["search"].description.startswith("The 5 documents most similar")
    assert TOOLS["search"].parameters["page"]["minimum"] == 1
    assert "up to 40 others" in TOOLS["link_many"].description
    assert TOOLS["link_many"].parameters["targets"]["maxItems"] == 40


def test_what_counts_as_an_edit() -> None:
    editing = {name for name, tool in TOOLS.items() if tools.is_editing(tool.action(*["a"] * len(tool.parameters)))}
    assert editing == {"add", "edit", "delete", "link", "link_many", "unlink"}


@given(ACTIONS, st.sampled_from(["reader", "curator"]))
def test_checking_twice_changes_nothing_and_the_trace_can_hold_it(action: Action, role: Any) -> None:
    once = check(action, role)
    assert check(once, role) == once
    assert msgspec.json.decode(encode(once), type=Action) == once
    assert isinstance(once, Invalid) or type(once) is type(action)


NAMES = st.sampled_from(["query", "page", "source", "targets", "tool", "", "\ud800"])
VALUES = st.recursive(st.none() | st.text(max_size=5) | st.integers() | st.floats(), st.lists, max_leaves=3)


@settings(max_examples=60)
@given(st.text(max_size=8), st.dictionaries(NAMES, VALUES, max_size=3))
def test_parse_never_fails(name: str, arguments: dict[str, Any]) -> None:
    for known in (name, "search", "link_many"):
        assert is_text(str(parse(known, arguments, "curator")))


@pytest.mark.parametrize(
    "action",
    [Search("x", True), Search("x", "2"), Search(5), Read(None), Link("a", 5), LinkMany("a", "abc"), Add(DEEP)],  # type: ignore[arg-type]
)
def test_a_policy_that_puts_the_wrong_type_into_a_field_is_told(action: Action) -> None:
    invalid = check(action, "curator")
    assert isinstance(invalid, Invalid)
    assert "Expected" in invalid.reason or "recursion" in invalid.reason


def test_an_agents_own_invalid_is_cut_to_size() -> None:
    said = check(Invalid("x" * 1000, "no \ud800 reply\n" * 1000), "reader")
    assert isinstance(said, Invalid) and len(said.name) == 40 and len(said.reason) <= 200 and is_text(said.reason)


RENDERED: list[tuple[Result, str]] = [
    (Found(("a", "b"), 1), "[a] Text of a.\n[b] Text of b."),
    (Found((), 1), "Nothing found."),
    (Opened("a", ("b", "c")), "[a] Text of a.\nIt links to 2:\n[b] Text of b.\n[c] Text of c."),
    (Opened("a", ()), "[a] Text of a.\nIt links to nothing."),
    (Answered(), "Answer submitted."),
    (Added("n1"), "Added.\n[n1] Text of n1."),
    (actions.Corrected("n1", ("d1",)), "Added.\n[n1] Text of n1."),
    (Merged("a"), "The store already says this.\n[a] Text of a."),
    (Merged("a", "b"), "The store already says this, and [b] was folded into it.\n[a] Text of a."),
    (Edited("a"), "Edited.\n[a] Text of a."),
    (Deleted("a"), "Deleted [a] and every link to it."),
    (Linked("a", ("b",)), "Linked [a] to 1 document."),
    (
        Linked("a", ("b", "c"), ("x", "y"), ("d",), True),
        "Linked [a] to 2 documents. Already linked: d. No such document, skipped: x, y. "
        "A document cannot link to itself: skipped.",
    ),
    (Unlinked("a", "b"), "Removed the link from [a] to [b]."),
    (Finished(), "Done."),
    (Error("there is no document x."), "Error: there is no document x."),
]


@pytest.mark.parametrize(("result", "text"), RENDERED, ids=[type(result).__name__ for result, _ in RENDERED])
def test_rendering(result: Result, text: str) -> None:
    assert render(result, lambda id: f"Text of {id}.") == text


def test_every_result_is_rendered_above() -> None:
    assert {type(result) for result, _ in RENDERED} == set(get_args(actions.Result))
