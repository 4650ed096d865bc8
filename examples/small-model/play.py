"""Let the small model play many passes at once, in PyTorch: what the agent `small` does in llama.cpp, by the thousand.

    python play.py --base SmolLM2-135M-Instruct.Q4_1.gguf --adapter small.gguf --out rows worlds-out/w201 runs/c201
    python play.py --base SmolLM2-135M-Instruct.Q4_1.gguf --adapter small.gguf --experiment exp/small

Every pass is a real one: kbgym's own policy renders and reads it, kbgym's own environment answers. Only the model is
here instead of behind a server. Every store has a process of its own, which sends what its passes ask and waits for
the replies; the model writes the replies to all of them together, and remembers what it has read of each pass.

With --experiment the rows go where `kbgym experiment run --set readers=reference,small` would have put them, for every
arm whose store is there: the world is the flat one, trainings are run folders, other arms lie in seed-N/stores/ARM.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Hashable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.nn.functional as F
from gguf import Model, tokenizer
from small import SmallPolicy, rendered
from train import Player, norm, padded, turned

from kbgym.agents.llm.values import Call, ModelSettings, Reply, Request
from kbgym.api.workspace import Workspace
from kbgym.canonical import write_lines
from kbgym.experiments.experiment import exams_of, read_plan, seed_folder
from kbgym.gym.environment import Environment
from kbgym.gym.episode import play
from kbgym.gym.policy import Forward
from kbgym.training.exam import Row, row_of
from kbgym.worlds.world import Question

END = 2  # <|im_end|>
AT_ONCE, WIDEST = 32_768, 2**27  # of what is read together: tokens, and pairs of a token and one before it


class Writer:
    """Writes replies, those of all passes together. What it has read of a pass it keeps, as keys and values."""

    def __init__(self, player: Player, rows: int, length: int, temperature: float = 0.0, longest: int = 512) -> None:
        self.player, self.rows, self.length = player, rows, length
        self.temperature, self.longest = temperature, longest
        self.words = player.frozen["token_embd.weight"]
        shape, like = (rows, player.pairs, length, player.width), {"device": self.words.device, "dtype": player.kind}
        self.keys = [torch.zeros(shape, **like) for _ in range(player.layers)]
        self.values = [torch.zeros(shape, **like) for _ in range(player.layers)]
        self.cos, self.sin = player.turns(length, self.words.device)
        self.fold()

    @torch.no_grad()
    def fold(self) -> None:
        """Take the adapters as they are now, and forget what was read with others."""
        self.layers = []
        for layer in range(self.player.layers):
            before, between, *matrices = self.player.weights(layer)
            adapted = zip(matrices[0::3], matrices[1::3], matrices[2::3], strict=True)
            q, k, v, out, gate, up, down = (w + (self.player.scale * b @ a).to(w.dtype) for w, a, b in adapted)
            self.layers.append((before, between, torch.cat((q, k, v)), out, torch.cat((gate, up)), down))
        self.seated: list[Hashable] = []  # the pass in each row
        self.known: dict[Hashable, list[int]] = {}
        self.begun: dict[Hashable, list[int]] = {}  # replies that are not at their end yet

    @torch.no_grad()
    def write(self, prompts: dict[Hashable, list[int]]) -> dict[Hashable, list[int]]:
        """Replies to the prompts of all passes that go on. Those without one, for want of room or because theirs is
        long, are asked again together with the next ones of the others."""
        too_long = [one for one, text in prompts.items() if len(text) + self.longest > self.length]
        replies = {one: [END] for one in too_long}
        self._seat({one: text for one, text in prompts.items() if one not in replies})
        if not self.seated:
            return replies
        wanted = [prompts[one] + self.begun.get(one, []) for one in self.seated]
        first = self._read_new(wanted)
        tokens, alive = first, first != END
        places = torch.tensor([len(text) for text in wanted], device=first.device)
        written, longest = [first], max(map(len, wanted))
        while len(written) < self.longest:
            if len(written) % 8 == 0 and alive.sum() <= (len(wanted) // 4 if len(written) > 31 else 0):
                break
            hidden = self._read(slice(len(wanted)), tokens[:, None], places[:, None], longest + len(written))
            places = (places + alive).clamp(max=self.length - 1)
            tokens = torch.where(alive, self._pick(hidden[:, -1]), END)
            alive = alive & (tokens != END)
            written.append(tokens)
        columns = torch.stack(written, 1).tolist()
        for one, new in zip(self.seated, columns, strict=True):
            reply = self.begun.pop(one, []) + (new[: new.index(END) + 1] if END in new else new)
            self.known[one] = prompts[one] + reply[:-1]
            if reply[-1] == END or len(reply) >= self.longest:
                replies[one] = reply
            else:
                self.begun[one] = reply
        return replies

    def _seat(self, prompts: dict[Hashable, list[int]]) -> None:
        """Passes that ask no more leave, the others move up, new ones take what rows are left."""
        stay = [row for row, one in enumerate(self.seated) if one in prompts]
        if len(stay) < len(self.seated) and stay:
            span = max(len(self.known[self.seated[row]]) for row in stay)
            for kept in (*self.keys, *self.values):
                kept[: len(stay), :, :span] = kept[stay, :, :span]
        here = [self.seated[row] for row in stay]
        new = [one for one in prompts if one not in set(here)][: self.rows - len(here)]
        self.seated = here + new
        self.known = {one: self.known.get(one, []) for one in self.seated}

    def _read_new(self, wanted: list[list[int]]) -> torch.Tensor:
        """Read of each text what was not read yet; the token that follows each."""
        starts = []
        for one, text in zip(self.seated, wanted, strict=True):
            same = (place for place, pair in enumerate(zip(self.known[one], text, strict=False)) if pair[0] != pair[1])
            starts.append(min(next(same, len(self.known[one])), len(text) - 1))
        order = sorted(range(len(wanted)), key=lambda row: len(wanted[row]) - starts[row])
        device, at = self.words.device, 0
        following = torch.zeros(len(wanted), dtype=torch.long, device=device)
        while at < len(order):
            group = order[at : at + 1]
            while at + len(group) < len(order):
                row = order[at + len(group)]
                tokens = (len(group) + 1) * padded(len(wanted[row]) - starts[row], 8)
                span = max(len(wanted[one]) for one in (*group, row))
                if tokens > AT_ONCE or tokens * span > WIDEST:
                    break
                group.append(row)
            at += len(group)
            new = [wanted[row][starts[row] :] for row in group]
            size = padded(max(map(len, new)), 8)
            shown = torch.tensor([text + [END] * (size - len(text)) for text in new], device=device)
            places = torch.tensor([starts[row] for row in group], device=device)[:, None]
            places = (places + torch.arange(size, device=device)).clamp(max=self.length - 1)
            rows = torch.tensor(group, device=device)
            hidden = self._read(rows, shown, places, max(starts[row] for row in group) + size)
            last = torch.tensor([len(text) - 1 for text in new], device=device)
            following[rows] = self._pick(hidden[torch.arange(len(group), device=device), last])
        return following

    def _read(self, rows: torch.Tensor | slice, tokens: torch.Tensor, places: torch.Tensor, until: int) -> torch.Tensor:
        """The last hidden states of tokens at their places, each seeing all before it in its row."""
        player, (count, length) = self.player, tokens.shape
        groups, span = player.heads // player.pairs, min(self.length, padded(until, 64))
        into = (torch.arange(count, device=tokens.device) if isinstance(rows, slice) else rows)[:, None]
        cos, sin = self.cos[places][:, None], self.sin[places][:, None]
        seen = torch.arange(span, device=tokens.device) <= places[:, :, None]
        mask = seen[:, None, None].expand(-1, 1, groups, -1, -1).reshape(count, 1, groups * length, span)
        mask = mask.expand(-1, player.pairs, -1, -1)
        x = self.words[tokens]
        for (before, between, qkv, out, gates, down), keys, values in zip(
            self.layers, self.keys, self.values, strict=True
        ):
            h = norm(x, before, player.epsilon) @ qkv.T
            h = h.view(count, length, player.heads + 2 * player.pairs, player.width).transpose(1, 2)
            q, k, v = h.split((player.heads, player.pairs, player.pairs), 1)
            keys[into, :, places] = turned(k, cos, sin).transpose(1, 2)
            values[into, :, places] = v.transpose(1, 2)
            q = turned(q, cos, sin).reshape(count, player.pairs, groups * length, player.width)
            a = F.scaled_dot_product_attention(q, keys[rows, :, :span], values[rows, :, :span], attn_mask=mask)
            a = a.reshape(count, player.heads, length, player.width).transpose(1, 2).reshape(count, length, -1)
            x = x + a @ out.T
            gate, up = (norm(x, between, player.epsilon) @ gates.T).chunk(2, -1)
            x = x + (F.silu(gate) * up) @ down.T
        return norm(x, player.frozen["output_norm.weight"], player.epsilon)

    def _pick(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = (hidden @ self.words.T).float()
        if not self.temperature:
            return logits.argmax(-1)
        return torch.multinomial((logits / self.temperature).softmax(-1), 1)[:, 0]


class QueuedModel:
    """What a policy has for its model: it leaves the prompt and waits for the text."""

    name = "small"

    def __init__(self, id: str, waiting: dict[str, tuple[str, asyncio.Future[str]]]) -> None:
        self.id, self.waiting = id, waiting

    async def ask(self, request: Request) -> Reply:
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.waiting[self.id] = "".join(rendered(request.messages, request.system)), reply
        text = await reply
        name, _, rest = text.partition("\n")
        return Reply(calls=(Call(name, rest[:-1]),)) if rest.endswith(";") else Reply(text=text)

    def count_malformed(self) -> None: ...


async def passes(opened: Workspace, questions: Sequence[Question], line: Connection) -> list[Row]:
    """One pass a question, all at once: what they ask goes out together when all of them are waiting."""
    how = opened.settings
    acting = opened.store.as_frozen(), opened.engine, None, how.ranking, how.observations
    environment = Environment(*acting)
    waiting: dict[str, tuple[str, asyncio.Future[str]]] = {}

    async def one(question: Question) -> Row:
        policy = SmallPolicy(QueuedModel(question.id, waiting), ModelSettings("small", 0.0, None, 1))
        task = Forward(question.text)
        passed = await play(policy, environment, "reader", task, how.forward_budget, how.memory)
        return row_of(question, passed, how.ranking, how.observations)

    playing = [asyncio.create_task(one(question)) for question in questions]
    while live := sum(not one.done() for one in playing):
        await asyncio.sleep(0)
        if live == len(waiting):
            line.send({id: prompt for id, (prompt, _) in waiting.items()})
            for id, text in line.recv().items():
                waiting.pop(id)[1].set_result(text)
    return [one.result() for one in playing]


def work(line: Connection, place: str) -> None:
    """The process of a store: plays the questions it is sent until it is sent none."""
    with Workspace(place) as opened:
        while questions := line.recv():
            line.send(asyncio.run(passes(opened, questions, line)))


class PlayedStores:
    """Stores, each in its own process, and the model that plays on all of them."""

    def __init__(
        self, writer: Writer, made: Any, places: Sequence[str], work: Callable[[Connection, str], None] = work
    ) -> None:
        self.writer, self.made = writer, made
        self.lines, self.turns = [], {}
        for place in places:
            ours, theirs = get_context("spawn").Pipe()
            get_context("spawn").Process(target=work, args=(theirs, place), daemon=True).start()
            self.lines.append(ours)

    def play(self, asked: Sequence[Sequence[Question]]) -> list[list[Row]]:
        """The rows of each store's questions. `turns` then has what was shown and written, by store and question."""
        self.turns = {}
        rows: list[list[Row]] = [[] for _ in asked]
        for line, questions in zip(self.lines, asked, strict=True):
            if questions:
                line.send(questions)
        playing = [number for number, questions in enumerate(asked) if questions]
        while playing:
            prompts: dict[Hashable, str] = {}
            for number in playing:
                said = self.lines[number].recv()
                if isinstance(said, list):
                    rows[number] = said
                else:
                    prompts |= {(number, id): prompt for id, prompt in said.items()}
            playing = sorted({number for number, _ in prompts})
            if not prompts:
                break
            encoded = self.made.encode_batch(list(prompts.values()))
            tokens = {one: text.ids for one, text in zip(prompts, encoded, strict=True)}
            replies = self.writer.write(tokens)
            for one, reply in replies.items():
                self.turns.setdefault(one, []).append((tokens[one], reply))
            texts = self.made.decode_batch([reply[:-1] for reply in replies.values()], skip_special_tokens=False)
            said = dict(zip(replies, texts, strict=True))
            for number in playing:
                self.lines[number].send({id: text for (of, id), text in said.items() if of == number})
        return rows

    def close(self) -> None:
        for line in self.lines:
            line.send([])


def questions_of(place: str, sets: Sequence[str], most: int) -> dict[str, list[Question]]:
    with Workspace(place) as opened:
        return {Path(set).stem: list(opened.questions(set))[:most] for set in sets}


def asked_in(folder: Path, only: Sequence[str], most: int) -> dict[tuple[str, Path], dict[str, list[Question]]]:
    """The stores of an experiment, with where the rows of each go, and the questions of each set."""
    plan, found = read_plan(folder), {}
    for at in (seed_folder(folder, number) for number in plan.seeds):
        world = at / "world"
        groups = questions_of(str(world), [*map(str, sorted((at / "probe").glob("*.jsonl"))), *TESTS], most)
        places = {arm: at / "stores" / arm for arm in plan.arms} | {"flat": world}
        places |= {training.name: at / training.name for training in plan.trainings}
        for arm, place in places.items():
            if (not only or arm in only) and place.exists():
                found[str(place), exams_of(at, "small") / arm] = groups
    return found


TESTS = ("test_in", "test_out")


def play_sets(stores: PlayedStores, asked: Sequence[dict[str, list[Question]]]) -> list[dict[str, list[Row]]]:
    """The rows of each set of each store; all are played at once."""
    together = [
        [msgspec.structs.replace(one, id=f"{set}/{one.id}") for set, questions in sets.items() for one in questions]
        for sets in asked
    ]
    found = []
    for sets, rows in zip(asked, stores.play(together), strict=True):
        of = {row.id: row for row in rows}
        found.append(
            {
                set: [msgspec.structs.replace(of[f"{set}/{one.id}"], id=one.id) for one in questions]
                for set, questions in sets.items()
            }
        )
    return found


def model(base: Path, adapter: Path, kind: torch.dtype, device: str) -> tuple[Player, Any]:
    """The model as the player has it, and its tokenizer."""
    file, written = Model(base), Model(adapter)
    rank = len(written.tensor(next(name for name in written.names if name.endswith(".lora_a"))))
    player = Player(file, rank, written.about["adapter.lora.alpha"] / rank, kind)
    player.take(adapter)
    return player.on(device), tokenizer(file.about)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--adapter", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="a folder; a file of rows for each store and set")
    parser.add_argument("--experiment", type=Path, help="play an experiment's exams instead")
    parser.add_argument("--arms", nargs="+", default=[], help="of the experiment; else all")
    parser.add_argument("--sets", nargs="+", default=["test_in"])
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--rows", type=int, default=512, help="passes at once")
    parser.add_argument("--length", type=int, default=8_192)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("stores", nargs="*")
    asked = parser.parse_args()
    player, made = model(asked.base, asked.adapter, torch.float32, asked.device)
    torch.set_float32_matmul_precision("high")
    if asked.experiment:
        wanted = asked_in(asked.experiment, asked.arms, asked.questions)
    else:
        places = {place: questions_of(place, asked.sets, asked.questions) for place in asked.stores}
        wanted = {(place, asked.out / Path(place).name): sets for place, sets in places.items()}
    stores = PlayedStores(Writer(player, asked.rows, asked.length), made, [place for place, _ in wanted])
    for (place, out), sets in zip(wanted, play_sets(stores, list(wanted.values())), strict=True):
        out.parent.mkdir(parents=True, exist_ok=True)
        for name, rows in sets.items():
            write_lines(out.with_name(f"{out.name}-{name}.jsonl"), rows)
            f1, actions = ([getattr(row, part) or 0.0 for row in rows] for part in ("f1", "actions"))
            of = f"{place}, {name}: n {len(rows)}"
            print(f"{of}, F1 {sum(f1) / len(f1):.3f}, actions {sum(actions) / len(actions):.2f}", flush=True)
    stores.close()


if __name__ == "__main__":
    main()
