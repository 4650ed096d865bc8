"""The files of `kbgym export transcripts`, read by Hugging Face datasets and TRL."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import kbgym
from kbgym.cli.main import run

HARBOUR = Path(__file__).resolve().parent.parent / "examples" / "harbour"


def needs(*packages: str):
    missing = [name for name in packages if find_spec(name) is None]
    return [
        pytest.mark.slow,
        pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)} (make test-research has them)"),
    ]


def written(folder: Path, *words: object) -> list[dict]:
    with pytest.raises(SystemExit) as end:
        run(["export", "transcripts", *map(str, words), "--out", str(folder / "out.jsonl"), "--quiet"])
    assert end.value.code == 0
    return [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A world with two exams of readers that differ."""
    folder = tmp_path_factory.mktemp("formats")
    kbgym.generate(people=40, seed=0).save(folder / "w")
    opened = kbgym.open(folder / "w", embedder="hash")
    asked = opened.questions("test_in")[:12]
    for reader in ("reference", "general"):
        opened.examine(reader, asked, out=folder / f"{reader}.jsonl")
    return folder


class TestTrl:
    pytestmark = needs("trl", "datasets", "transformers")

    @pytest.fixture
    def tokenizer(self):
        """One that needs no download: what matters is what the template is given."""
        from tokenizers import Tokenizer, models
        from transformers import PreTrainedTokenizerFast

        made = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"?": 0}, unk_token="?")))
        made.chat_template = (
            "{% if tools %}{{ tools | length }} tools\n{% endif %}"
            "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
            "{{ c.function.name }} {{ c.function.arguments }}{% endfor %}\n{% endfor %}"
        )
        return made

    def loaded(self, file: Path):
        from datasets import load_dataset

        return load_dataset("json", data_files=str(file), split="train", cache_dir=str(file.parent / "cache"))

    def test_chats_are_conversations(self, tmp_path, tokenizer):
        from trl.data_utils import apply_chat_template, is_conversational

        chats = written(tmp_path, HARBOUR / "scripted.cassette.jsonl")
        rows = list(self.loaded(tmp_path / "out.jsonl"))
        assert len(rows) == len(chats) > 10
        for row in rows:
            assert is_conversational(row)
            text = apply_chat_template(row, tokenizer, tools=row["tools"])["text"]
            assert text.count("<assistant>") == sum(one["role"] == "assistant" for one in row["messages"])

    def test_pairs_are_conversational_preferences(self, place, tmp_path, tokenizer):
        from trl.data_utils import apply_chat_template, is_conversational, unpair_preference_dataset

        files = [place / "reference.jsonl", place / "general.jsonl"]
        pairs = written(tmp_path, *files, "--preferences", place / "w")
        found = self.loaded(tmp_path / "out.jsonl")
        assert len(found) == len(pairs) > 3
        for row in found:
            assert is_conversational(row)
            text = apply_chat_template(row, tokenizer, tools=row["tools"])
            assert text["prompt"].startswith("3 tools") and "answer" in text["chosen"] != text["rejected"]
        assert len(unpair_preference_dataset(found)) == 2 * len(pairs)

    @pytest.mark.parametrize("name", ["qwen2_5", "qwen3", "llama3_1", "glm4moe", "gptoss", "deepseekv3"])
    def test_trls_own_templates_render_every_call_and_every_budget(self, tmp_path, tokenizer, name):
        import trl

        folder = Path(trl.__file__).parent / "chat_templates"
        # What TRL trains with; a template without such a variant is used as it is.
        template = next(one for one in (folder / f"{name}_training.jinja", folder / f"{name}.jinja") if one.exists())
        tokenizer.chat_template = template.read_text(encoding="utf-8")
        chats = written(tmp_path, HARBOUR / "scripted.cassette.jsonl")
        passes = [chat for chat in chats if any(one["role"] == "tool" for one in chat["messages"])]
        for chat in passes[:5]:
            text = tokenizer.apply_chat_template(chat["messages"], tools=chat["tools"], tokenize=False)
            calls = [call for one in chat["messages"] for call in one.get("tool_calls", ())]
            assert all(str(value) in text for call in calls for value in call["function"]["arguments"].values())
            assert text.count("Actions left: ") == sum(one["role"] in ("user", "tool") for one in chat["messages"])
        assert passes
