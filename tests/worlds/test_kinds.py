"""A world's kind says what it can; a world of no known kind says that it cannot."""

import re
from pathlib import Path

import pytest
from family import family

import kbgym
from kbgym.errors import BadInput
from kbgym.worlds.kinds import description_for_prompt, description_of, kind_of
from kbgym.worlds.people import NO_QUESTIONS, generate, paper
from kbgym.worlds.world import Description, Document, Question, SentenceForm, World

SAMPLE = Path(__file__).with_name("paper-sample.json")


@pytest.fixture(scope="module")
def people() -> World:
    return generate(60, 0, NO_QUESTIONS)


@pytest.mark.parametrize("facts", [{}, {"kind": "corpus"}, {"kind": "public"}, {"kind": ["people"]}])
def test_a_world_of_no_known_kind_cannot(facts):
    world = World((Document("d1", "Water is wet."),), (), facts)
    kind = kind_of(world)
    assert kind.truth(world) is None and kind.oracle(world) is None
    assert not kind.has_pools and not kind.lists_answers
    with pytest.raises(BadInput, match="cannot list its questions"):
        kind.pool(world, "job-of")
    asked = [Question(str(n), "train", class_, "t", "?", ("a",)) for n, class_ in enumerate(("QC1", "QC9", "mine"))]
    assert {kind.difficulty(question) for question in asked} == {0}


def test_the_papers_universe_is_a_people_world(people):
    world = paper.read(SAMPLE)
    assert kind_of(world) is kind_of(people) and kind_of(world).title == "People universe"
    assert kind_of(world).has_pools and kind_of(world).truth(world) is not None
    assert any(members for _, _, members in kind_of(world).oracle(world))


def test_nobody_else_asks_which_kind_a_world_is():
    source = Path(kbgym.__file__).parent
    asks = re.compile(r"""facts(\.get\(|\[)["']kind["']""")
    found = [str(file.relative_to(source)) for file in source.rglob("*.py") if asks.search(file.read_text("utf-8"))]
    assert found == ["worlds/kinds.py"]


def fits(form: SentenceForm) -> bool:
    pattern = re.escape(form.form).replace("mother/father", "(mother|father)")
    return re.fullmatch(re.sub("[A-Z]{3,}", ".+", pattern), form.example) is not None


@pytest.mark.parametrize("make", [lambda: generate(60, 0, NO_QUESTIONS), lambda: paper.read(SAMPLE), family])
def test_a_people_world_describes_its_sentences_and_gives_none_of_them_away(make):
    world = make()
    said = description_of(world)
    words = {word for document in world.documents for word in re.findall(r"[A-Z]\w+", document.text)}
    assert len(said.forms) == len({document.kind for document in world.documents}) > 3
    assert all(map(fits, said.forms))
    assert not {"Una", "Odo", "Ida", "Max", "Sample", "Example", "Elsewhere"} & words, "an example names somebody"
    assert "fictional person" in said.about and "a hobby" in said.keys


def test_a_generated_world_keeps_its_bytes(people):
    """Its description follows from its kind, so nothing of it is written."""
    assert set(people.facts) == {"kind", "seed", "people", "version"} and people.description is None


def test_a_worlds_own_words_come_first(people):
    def told(description: object) -> Description:
        return description_of(World(people.documents, (), {**people.facts, "description": description}))

    worked_out = description_of(people)
    assert told("My people.") == Description("My people.", worked_out.forms, worked_out.keys)
    assert told({"keys": ["a surname"]}) == Description(worked_out.about, worked_out.forms, ("a surname",))
    forms = [{"form": "X is Y.", "example": "Water is wet."}]
    whole = Description("All mine.", (SentenceForm("X is Y.", "Water is wet."),), ("a thing",))
    assert told({"about": "All mine.", "forms": forms, "keys": ["a thing"]}) == whole


@pytest.mark.parametrize("description", [7, ["a"], {"about": 7}, {"forms": ["X is Y."]}, {"keys": "a thing"}])
def test_a_description_that_is_none_is_refused(description):
    with pytest.raises(BadInput, match=r"description in world\.json"):
        description_of(World((Document("d1", "Water is wet."),), (), {"description": description}))


def test_the_prompts_text():
    forms = [{"form": "X is Y.", "example": "Water is wet."}]
    facts = {"description": {"about": "Of water.", "forms": forms, "keys": ["a fluid", "a state"]}}
    assert description_for_prompt(World((Document("d1", "Water is wet."),), (), facts)) == (
        "Of water.\n\nForms its sentences have:\n- X is Y. Example: Water is wet.\n\n"
        "Keys that many documents share:\n- a fluid\n- a state"
    )


def test_a_world_whose_documents_are_elsewhere(tmp_path):
    asked = Question("q1", "train", "mine", "t", "What is wet?", ("water",), support=("d1",))
    World((), (asked,)).save(tmp_path / "world")
    (tmp_path / "world" / "documents.jsonl").unlink()
    with pytest.raises(BadInput, match=r"it has no documents\.jsonl"):
        World.load(tmp_path / "world")
    world = World.load(tmp_path / "world", elsewhere=True)
    assert (world.documents, world.questions) == ((), (asked,))
    assert description_for_prompt(world) == "", "nothing is made up of documents that were not looked at"
    told = World((), (asked,), {"description": "Of water."})
    assert description_for_prompt(told) == "Of water."
    with pytest.raises(BadInput, match="which is not a document"):
        World((Document("d2", "Ice is cold."),), (asked,))
    (tmp_path / "world" / "questions.jsonl").unlink()
    with pytest.raises(BadInput, match="not a world"):
        World.load(tmp_path / "world", elsewhere=True)
