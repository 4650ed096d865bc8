"""Importing again: what did not change keeps its id, what changed is named, and nothing else happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.corpus.documents import ReadingOptions
from kbgym.corpus.importing import Made, load_old, make, replace_world
from kbgym.corpus.update import changes, keep_ids
from kbgym.errors import BadInput
from kbgym.worlds.world import Document, Source, World

BOATS = """# Boats

## Kestrel

The Kestrel was built by Dunmore Yard. She is old and slow. Ingrid Falk owns her.

## Petrel

The Petrel was built by Finn Hallow. She is green. Amos Teller owns her.
"""


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "boats.md").write_text(BOATS)
    (folder / "crews.md").write_text("# Crews\n\nJonas Vael sails the Kestrel. Petra Lind cooks.\n")
    return folder


def again(folder, old: World, questions=None, **options) -> Made:
    return make([folder], questions, ReadingOptions(unit="sentence", **options), old=old)


def by_text(world: World) -> dict[str, str]:
    return {document.text: document.id for document in world.documents}


def test_nothing_changed(notes, tmp_path):
    old = make([notes], None, ReadingOptions(unit="sentence")).world
    old.save(tmp_path / "w")
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / "w").iterdir()}
    made = again(notes, load_old(tmp_path / "w"))
    assert made.world.hash == old.hash and not made.changed
    assert not replace_world(old, made.world, tmp_path / "w")
    assert {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in (tmp_path / "w").iterdir()} == before


def test_a_copy_elsewhere_is_the_same_world(notes, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    for path in notes.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    assert (
        make([other], None, ReadingOptions(unit="sentence")).world.hash
        == make([notes], None, ReadingOptions(unit="sentence")).world.hash
    )


def test_only_what_changed_changes(notes):
    old = make([notes], None, ReadingOptions(unit="sentence")).world
    text = BOATS.replace("She is old and slow.", "She is old and fast.").replace(" She is green.", "")
    (notes / "boats.md").write_text(text + "\nRuth Calloway sails the Whimbrel.\n")
    made = again(notes, old)
    before, after = by_text(old), by_text(made.world)
    slow, fast = (f"Boats > Kestrel: She is old and {how}." for how in ("slow", "fast"))
    assert [d.text for d in made.changed.edited] == [fast]
    assert [d.text for d in made.changed.added] == ["Boats > Petrel: Ruth Calloway sails the Whimbrel."]
    green = "Boats > Petrel: She is green."
    assert made.changed.removed == (before[green],)
    assert after[fast] == before[slow]
    assert all(after[text] == id for text, id in before.items() if text in after)


def test_an_update_of_an_update_changes_nothing(notes, tmp_path):
    first = make([notes], None, ReadingOptions(unit="sentence")).world
    first.save(tmp_path / "w")
    (notes / "boats.md").write_text(BOATS.replace("old and slow", "new and slow"))
    second = again(notes, first).world
    assert replace_world(first, second, tmp_path / "w")
    third = again(notes, load_old(tmp_path / "w"))
    assert third.world.hash == second.hash and not third.changed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "w"]


def test_the_old_sentence_comes_back_under_the_same_id(notes):
    first = make([notes], None, ReadingOptions(unit="sentence")).world
    (notes / "boats.md").write_text(BOATS.replace("old and slow", "new and slow"))
    second = again(notes, first).world
    (notes / "boats.md").write_text(BOATS)
    assert again(notes, second).world.hash == first.hash


def test_moved_renamed_and_reheaded_sentences_keep_their_ids(notes):
    old = make([notes], None, ReadingOptions(unit="sentence")).world
    head, kestrel, petrel = BOATS.partition("\n## Kestrel")[0], *BOATS.split("## ")[1:]
    (notes / "boats.md").write_text(f"{head}\n## {petrel}\n## {kestrel.replace('Kestrel', 'The Kestrel', 1)}")
    (notes / "crews.md").rename(notes / "people.md")
    made = again(notes, old)
    assert {d.id for d in made.world.documents} == {d.id for d in old.documents}
    assert {d.text.partition(": ")[0] for d in made.changed.edited} == {"Boats > The Kestrel"}
    assert len(made.changed.moved) >= 4 and not made.changed.added and not made.changed.removed
    assert made.renamed == {"crews.md": "people.md"}


def test_a_new_sentence_in_an_old_place_is_not_an_edit(notes):
    old = make([notes], None, ReadingOptions(unit="sentence")).world
    (notes / "crews.md").write_text("# Crews\n\nJonas Vael sails the Kestrel. Nobody knows where Sam Okoro went.\n")
    changed = again(notes, old).changed
    assert (len(changed.added), len(changed.edited), len(changed.removed)) == (1, 0, 1)


def test_questions_follow(notes, tmp_path):
    qa = tmp_path / "qa.csv"
    qa.write_text(
        "question,answer,support\nWho owns the Petrel?,Amos Teller,Amos Teller owns her\nWho cooks?,Petra,cooks\n"
    )
    old = make([notes], qa, ReadingOptions(unit="sentence")).world
    (notes / "crews.md").write_text("# Crews\n\nJonas Vael sails the Kestrel.\n")
    made = again(notes, old)
    assert made.lost_supports == 1 and [len(q.support) for q in made.world.questions] == [1, 0]
    assert [q.split for q in made.world.questions] == [q.split for q in old.questions]
    with pytest.raises(BadInput, match="'cooks'"):
        again(notes, old, qa)


def test_an_interrupted_replacement_is_put_back(notes, tmp_path):
    make([notes], None, ReadingOptions(unit="sentence")).world.save(tmp_path / "w")
    (tmp_path / "w").rename(tmp_path / ".w.old")
    assert load_old(tmp_path / "w").documents
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "w"]


def test_only_a_corpus_is_updated(tmp_path):
    World((Document("a", "Ruth is here."),), facts={"kind": "people"}).save(tmp_path / "w")
    with pytest.raises(BadInput, match="not made by `kbgym import corpus`"):
        load_old(tmp_path / "w")


def test_other_files_in_the_folder_are_not_lost(notes, tmp_path):
    old = make([notes], None, ReadingOptions(unit="sentence")).world
    old.save(tmp_path / "w")
    (tmp_path / "w" / "precious.txt").write_text("mine")
    (notes / "crews.md").unlink()
    with pytest.raises(BadInput, match="precious"):
        replace_world(old, again(notes, old).world, tmp_path / "w")
    assert (tmp_path / "w" / "precious.txt").read_text() == "mine" and World.load(tmp_path / "w").hash == old.hash


def test_a_renamed_file_keeps_its_ids_whatever_its_title_becomes(tmp_path):
    """Without a heading the file's name is the title, so every text changes; and something was edited as well."""
    folder = tmp_path / "notes"
    folder.mkdir()
    text = "Jonas Vael sails. Petra Lind cooks for the crew. No.\n\nThe third is Sam Okoro, deckhand."
    (folder / "crews.md").write_text(text)
    (folder / "a.md").write_text("# A\n\nSee [the crews](crews.md) for Ruth.\n")
    old = make([folder], None, ReadingOptions(unit="sentence", links=True)).world
    (folder / "crews.md").unlink()
    (folder / "people.md").write_text(text.replace("for the crew", "for the whole crew"))
    made = again(folder, old, links=True)
    assert made.renamed == {"crews.md": "people.md"}
    assert {d.id for d in made.world.documents} == {d.id for d in old.documents}
    assert not made.changed.added and not made.changed.removed
    assert all(d.text.startswith("people: ") for d in made.world.documents if d.source.file == "people.md")
    assert made.corpus.dead_links == 1, "a.md still says crews.md"
    third = again(folder, made.world, links=True)
    assert third.world.hash == made.world.hash and not third.renamed


def test_a_field_with_another_value_is_the_same_field(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    page = "---\nkeeper: Marit Olsrud\nbuilt: 1987\ncrew: [Jonas, Petra]\n---\nIt is old.\n"
    (notes / "a.md").write_text(page)
    old = make([notes], None, ReadingOptions(unit="sentence")).world
    (notes / "a.md").unlink()
    (notes / "b.md").write_text(page.replace("Marit Olsrud", "Saoirse Kell").replace("Petra", "Sam"))
    made = again(notes, old)
    assert not made.changed.added and not made.changed.removed
    assert [d.id for d in made.world.documents] == [d.id for d in old.documents]
    assert made.changed.edited[0].text == "b: keeper: Saoirse Kell"


def test_questions_whose_support_changed_are_named(notes, tmp_path):
    qa = tmp_path / "qa.csv"
    qa.write_text(
        "question,answer,support\nWho owns the Petrel?,Amos Teller,Amos Teller owns her\n"
        "Who cooks?,Petra Lind,Petra Lind cooks\nWho built the Kestrel?,Dunmore Yard,by Dunmore Yard\n"
        "Who owns the Kestrel?,Ingrid Falk,Ingrid Falk owns\n"
    )
    old = make([notes], qa, ReadingOptions(unit="sentence")).world
    (notes / "boats.md").write_text(
        BOATS.replace("Amos Teller owns her", "Nell Osgood owns her").replace(
            "by Dunmore Yard.", "by Dunmore Yard in May."
        )
    )
    (notes / "crews.md").write_text("# Crews\n\nJonas Vael sails the Kestrel.\n")
    doubts = {one.text: one for one in again(notes, old).doubtful}
    assert set(doubts) == {"Who owns the Petrel?", "Who cooks?", "Who built the Kestrel?"}
    assert not doubts["Who owns the Petrel?"].said and len(doubts["Who owns the Petrel?"].edited) == 1
    assert not doubts["Who cooks?"].said and len(doubts["Who cooks?"].removed) == 1
    assert doubts["Who built the Kestrel?"].said, "the answer is still there"


SENTENCES = st.lists(st.sampled_from(["a b c.", "a b d.", "x y z.", "x y w.", "p.", "q.", "r."]), max_size=12)


def drafted(sentences: list[str], file: str) -> list[Document]:
    seen: dict[str, int] = {}
    documents = []
    for sentence in sentences:
        seen[sentence] = seen.get(sentence, 0) + 1
        documents.append(Document(f"{file}:{sentence}:{seen[sentence]}", sentence, source=Source(file, 0, 1)))
    return documents


@given(SENTENCES, SENTENCES, SENTENCES)
def test_ids_are_unique_and_changes_lead_from_old_to_new(one, other, third):
    old = drafted(one, "f")
    new = keep_ids(old, drafted(other, "f"), {})[0]
    assert [d.text for d in new] == other and len({d.id for d in new}) == len(new)
    newer = keep_ids(new, drafted(third, "f"), {})[0]
    found = changes(new, newer)
    state = {d.id: d.text for d in new if d.id not in found.removed}
    state |= {d.id: d.text for d in (*found.edited, *found.added)}
    assert state == {d.id: d.text for d in newer}
    assert keep_ids(newer, drafted(third, "f"), {})[0] == newer
    kept = {d.text for d in new} & {d.text for d in newer}
    assert not any(d.text in kept and one.count(d.text) == 1 for d in found.added if third.count(d.text) == 1)
