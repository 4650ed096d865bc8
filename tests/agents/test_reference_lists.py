"""The reference agents on stores whose sentences list ("The sons of X are A, B."): PhantomWiki's eight templates."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.derived import derived_keys, far_side, first_step
from kbgym.agents.reference.language import Fact, index_text, is_index
from kbgym.agents.reference.memory import Memory
from kbgym.agents.reference.questions import Having, NamedPerson, named_keys, parse_question
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api.factory import embedder_named
from kbgym.gym.actions import Add, LinkMany, Read, Search
from kbgym.gym.environment import Environment
from kbgym.gym.episode import Transcript, play
from kbgym.gym.grading import set_f1
from kbgym.gym.policy import Backward, Forward
from kbgym.index_keys import IndexKey, worded_key
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.worlds.people import Sizes
from kbgym.worlds.phantomwiki import TEMPLATES, build, pool
from kbgym.worlds.world import Question, World

SAMPLE = Path(__file__).parents[1] / "worlds" / "phantomwiki" / "sample"


@pytest.fixture(scope="module")
def world() -> World:
    return build(SAMPLE, Sizes(12, 6, 4, 2, 2))[0]


def environment(texts: dict[str, str]) -> Environment:
    store = Store(source(id, text) for id, text in texts.items())
    return Environment(store, engine_for(store, embedder_named("hash")))


@pytest.fixture
def flat(world) -> Environment:
    return environment({document.id: document.text for document in world.documents})


def ask(env: Environment, question: str, budget: int = 15) -> Transcript:
    return asyncio.run(play(ReferenceReader(), env, "reader", Forward(question), budget))


def curate(env: Environment, question: str, golds: tuple[str, ...]) -> Transcript:
    """A forward pass, then a backward pass that was told whether it was right."""
    forward = ask(env, question)
    right = forward.answer in golds
    task = Backward(question, forward.turns, golds, float(right), "right" if right else "wrong")
    return asyncio.run(play(ReferenceCurator(), env, "curator", task, 30))


def some(world: World, template: str, n: int) -> list[Question]:
    questions = list(pool(world, template))
    return Random(template).sample(questions, min(n, len(questions)))


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_is_understood_and_its_key_found(world, template):
    kinds = {"birth": "born"}
    for question in some(world, template, 40):
        query = parse_question(question.text)
        assert query is not None, question.text
        wanted = [(kinds.get(key.kind, key.kind), key.value) for key in question.keys]
        assert [(key.kind, key.value) for key in named_keys(query)] == wanted, question.text


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_reader_answers_it_from_the_flat_store(world, flat, template):
    asked = some(world, template, 25)
    scores = []
    for question in asked:
        transcript = ask(flat, question.text, budget=40)
        assert transcript.outcome == "answered"
        scores.append(set_f1(transcript.answer or "", question.golds[0]))
    assert sum(scores) / len(scores) > 0.9


def lists(**more: str) -> dict[str, str]:
    """A store in which Ann has a mother with two sisters and a father with none."""
    return {
        "m": "The mother of Ann Ash is Bea Ash.",
        "f": "The father of Ann Ash is Col Ash.",
        "s": "The sisters of Bea Ash are Dee Elm, Eve Fir.",
        "x": "The sisters of Gus Oak are Hal Yew, Ivy Yew.",
        "h": "The hobby of Ann Ash is chess.",
        "g": "The gender of Ann Ash is female.",
        "w": "The occupation of Ann Ash is weaver.",
        "p": "The friend of Ann Ash is Gus Oak.",
        "q": "The friend of Gus Oak is Ann Ash.",
        "b": "The date of birth of Ann Ash is 0123-04-05.",
        **{f"d{n}": f"The date of birth of Pal {n} is 02{n:02d}-01-02." for n in range(30)},
        **more,
    }


def test_a_sentence_that_lists_needs_no_second_page():
    transcript = ask(environment(lists()), "Who is the sister of Bea Ash?")
    assert transcript.answer == "Dee Elm, Eve Fir"
    assert len(transcript.steps) == 2


def test_a_nested_relation_is_walked_and_several_answers_are_joined():
    env = environment(lists(j="The occupation of Dee Elm is cook.", k="The occupation of Eve Fir is abbot."))
    assert ask(env, "Who is the aunt of Ann Ash?").answer == "Dee Elm, Eve Fir"
    assert ask(env, "How many aunts does the person whose hobby is chess have?").answer == "2"
    assert ask(env, "What is the occupation of the aunt of Ann Ash?").answer == "abbot, cook"


def test_a_count_of_several_people_gives_every_count():
    env = environment(lists(h2="The hobby of Gus Oak is chess."))
    assert ask(env, "How many sisters does the person whose hobby is chess have?").answer == "0, 2"


def test_the_answer_follows_the_documents():
    changed = lists(s="The sister of Bea Ash is Zoe Elm.")
    assert ask(environment(changed), "Who is the aunt of Ann Ash?").answer == "Zoe Elm"


def test_somebody_no_list_names_sends_the_reader_to_the_next_page():
    """A child known from its own sentence only means that a list is still to be found."""
    memory = Memory()
    memory.learn("The mother of Ann Ash is Bea Ash.")
    assert memory.unlisted("child", "Bea Ash") == ["Ann Ash"]
    memory.learn("The daughter of Bea Ash is Ann Ash.")
    assert memory.unlisted("child", "Bea Ash") == []
    assert memory.is_listed("daughter", "Bea Ash") and not memory.is_listed("child", "Bea Ash")
    memory.learn("The sons of Bea Ash are Abe Ash, Art Ash.")
    assert memory.is_listed("child", "Bea Ash")


# -- indexes of derived relations -------------------------------------------------------------------------------------


def test_a_right_answer_leaves_an_index_of_the_last_step_and_the_next_reader_uses_it():
    env = environment(lists())
    question = "Who is the aunt of Ann Ash?"
    before = ask(env, question)
    transcript = curate(env, question, ("Dee Elm, Eve Fir",))
    index = next(record for record in env.store if record.text == "Aunts of Ann Ash")
    assert index.links == ("s",)
    assert Add("Aunts of Ann Ash") in [step.action for step in transcript.steps]
    after = ask(env, question)
    assert after.answer == "Dee Elm, Eve Fir" and len(after.steps) == 3 < len(before.steps)
    assert ask(env, "How many aunts does Ann Ash have?").answer == "2"
    fingerprint = env.store.fingerprint
    curate(env, question, ("Dee Elm, Eve Fir",))
    assert env.store.fingerprint == fingerprint


def test_a_wrong_answer_leaves_none():
    env = environment(lists())
    curate(env, "Who is the aunt of Ann Ash?", ("Somebody Else",))
    assert not any(record.text == "Aunts of Ann Ash" for record in env.store)


def test_no_index_is_made_where_the_lists_do_not_name_everybody():
    """That Cy is a cousin is known from his own sentence only; a promise without him would be a false one."""
    env = environment(
        {
            "m": "The mother of Ann Ash is Bea Ash.",
            "s": "The sister of Bea Ash is Dee Elm.",
            "c": "The mother of Cy Elm is Dee Elm.",
            "d": "The daughter of Dee Elm is Eve Elm.",
        }
    )
    forward = ask(env, "Who is the cousin of Ann Ash?")
    assert forward.answer == "Cy Elm, Eve Elm"
    assert derived_keys(Backward("Who is the cousin of Ann Ash?", forward.turns, (), 1.0, "right")) == []


def test_stores_that_do_not_list_get_no_such_index():
    env = environment({"a": "Bo Fir is a child of Ann Ash.", "b": "Cy Fir is a child of Bo Fir."})
    forward = ask(env, "How many grandchildren does Ann Ash have?")
    task = Backward("How many grandchildren does Ann Ash have?", forward.turns, ("1",), 1.0, "right")
    assert forward.answer == "1" and derived_keys(task) == []


def test_where_a_question_starts():
    def start(text):
        query = parse_question(text)
        return first_step(query) if query is not None else None

    assert start("How many sons does the aunt of Ann Ash have?") == ("aunt", NamedPerson("Ann Ash"))
    assert start("Who is the niece of the person whose hobby is chess?") == ("niece", Having("hobby", "chess"))
    assert start("What is the hobby of the person whose hobby is chess?") is None


@pytest.mark.parametrize(
    ("fact", "relation", "whom"),
    [
        (Fact("sister", "Bea", "Dee", "Bea"), "aunt", "Dee"),
        (Fact("son", "Dee", "Cy", "Dee"), "cousin", "Cy"),
        (Fact("mother", "Cy", "Dee", "Cy"), "cousin", "Cy"),
        (Fact("mother", "Bea", "Old", "Bea"), "grandparent", "Old"),
        (Fact("parent", "Cy", "Dee", "Cy"), "grandchild", "Cy"),
        (Fact("parent", "Bea", "Old", "Bea"), "grandmother", "Old"),
        (Fact("husband", "Dee", "Rob", "Dee"), "son-in-law", "Rob"),
    ],
)
def test_the_far_side_of_a_last_step(fact, relation, whom):
    assert far_side(fact, relation) == whom


# -- dates ------------------------------------------------------------------------------------------------------------


def test_a_date_is_filed_under_itself_and_found_at_once():
    key = IndexKey("born", "0123-04-05")
    assert index_text(key) == "0123-04-05" and is_index("0123-04-05", key) and worded_key("0123-04-05") == key
    env = environment(lists())
    question = "Who is the person whose date of birth is 0123-04-05?"
    curate(env, question, ("Ann Ash",))
    index = next(record for record in env.store if is_index(record.text, key))
    assert index.links == ("b",)
    after = ask(env, question)
    assert [type(step.action) for step in after.steps[:2]] == [Search, Read]
    assert after.answer == "Ann Ash" and len(after.steps) == 3


def test_whom_the_gold_names_is_asked_for_the_date():
    env = environment(lists())
    question = "Who is the person whose date of birth is 0123-04-05?"
    task = Backward(question, (), ("Ann Ash",), 0.0, "out of budget")
    transcript = asyncio.run(play(ReferenceCurator(), env, "curator", task, 30))
    actions = [step.action for step in transcript.steps]
    assert isinstance(actions[0], Search) and "Ann Ash" in actions[0].query
    assert [type(action) for action in actions[1:3]] == [Add, LinkMany]


def test_a_date_nobody_has_is_given_up_without_an_index():
    env = environment(lists())
    task = Backward("Who is the person whose date of birth is 0999-09-09?", (), ("No One",), 0.0, "wrong")
    transcript = asyncio.run(play(ReferenceCurator(), env, "curator", task, 30))
    assert len(transcript.steps) <= 30 and not any(record.flag == "authored" for record in env.store)
