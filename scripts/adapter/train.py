#!/usr/bin/env python3
"""Trains the adapter. One GPU, torch and transformers; about twenty minutes in all.

    train.py pairs DIR    answers of half-trained models to questions of databases that they have not seen -> DIR/pairs.json
    train.py final DIR    the adapter: all questions, then the pairs -> DIR/adapter.safetensors, scored by executing

DIR holds model.gguf and the tokenizer's files, train.json and eval.json (made by prepare.py) and db/NAME.sqlite.

Learning from the right queries alone teaches what right looks like, not what the model itself gets wrong. So the databases
are parted in two halves: a model trained on one half answers the questions of the other, and what it gets wrong there, beside
the right query, is learned from as well (direct preference optimisation with a share of plain learning, so that the right
query stays likely).
"""
import collections
import json
import math
import os
import random
import sqlite3
import sys
import time

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

RANK = int(os.environ.get("RANK", "16"))
RATE = float(os.environ.get("RATE", "2e-4"))
PAIR_RATE = float(os.environ.get("PAIR_RATE", "2e-5"))
TOKENS = int(os.environ.get("TOKENS", "24000"))
BETA = 0.1
UNSEEN = 2000
GREEDY = dict(do_sample=False, temperature=None, top_p=None, top_k=None)
OUT = os.environ.get("OUT", ".")
PARTS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
START = time.time()


def say(*words):
    print(round(time.time() - START), *words, flush=True)


class Added(torch.nn.Module):
    """A matrix with a small change beside it."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.down = torch.nn.Parameter(torch.randn(rank, base.in_features, device="cuda") / math.sqrt(base.in_features))
        self.up = torch.nn.Parameter(torch.zeros(base.out_features, rank, device="cuda"))
        self.on = True

    def forward(self, rows):
        out = self.base(rows)
        if self.on:
            out = out + 2.0 * ((rows @ self.down.to(rows.dtype).T) @ self.up.to(rows.dtype).T)
        return out


class Learner:
    def __init__(self, folder):
        self.folder = folder
        self.tokens = AutoTokenizer.from_pretrained(folder, gguf_file="model.gguf")
        config = GgufConfig(dequantize=True)
        model = AutoModelForCausalLM.from_pretrained(folder, gguf_file="model.gguf", dtype=torch.bfloat16, quantization_config=config)
        if not model.config.tie_word_embeddings:
            model.get_input_embeddings().weight.data.copy_(model.lm_head.weight.data)
            model.config.tie_word_embeddings = True
            model.tie_weights()
        model.hf_quantizer = None
        self.model = model.cuda()
        for parameter in model.parameters():
            parameter.requires_grad = False
        self.added = {}
        for name, module in list(model.named_modules()):
            if isinstance(module, torch.nn.Linear) and name.split(".")[-1] in PARTS:
                layer = Added(module, RANK)
                setattr(model.get_submodule(name.rsplit(".", 1)[0]), name.split(".")[-1], layer)
                self.added[name] = layer
        self.parameters = [p for layer in self.added.values() for p in (layer.down, layer.up)]
        self.end = self.tokens.convert_tokens_to_ids("<|im_end|>")
        say("loaded", sum(p.numel() for p in self.parameters) / 1e6, "million to learn")

    def forget(self):
        with torch.no_grad():
            for layer in self.added.values():
                torch.nn.init.normal_(layer.down, std=1 / math.sqrt(layer.base.in_features))
                layer.up.zero_()

    def encode(self, messages):
        """Tokens of a chat, and which of them are learned."""
        ids, learned = [], []
        for place, message in enumerate(messages):
            head = self.tokens(f"<|im_start|>{message['role']}\n", add_special_tokens=False).input_ids
            body = self.tokens(message["content"] + "<|im_end|>", add_special_tokens=False).input_ids
            tail = self.tokens("\n", add_special_tokens=False).input_ids
            last = place == len(messages) - 1
            ids += head + body + tail
            learned += [0] * len(head) + [int(last)] * len(body) + [0] * len(tail)
        return ids, learned

    def log_probability(self, rows):
        """Of the learned tokens of each row: sum, and count."""
        width = max(len(ids) for ids, _ in rows)
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        learned = torch.zeros((len(rows), width), dtype=torch.bool)
        seen = torch.zeros((len(rows), width), dtype=torch.long)
        for i, (tokens, mask) in enumerate(rows):
            ids[i, :len(tokens)] = torch.tensor(tokens)
            learned[i, :len(tokens)] = torch.tensor(mask, dtype=torch.bool)
            seen[i, :len(tokens)] = 1
        ids, learned, seen = ids.cuda(), learned.cuda(), seen.cuda()
        hidden = self.model.model(input_ids=ids, attention_mask=seen, use_cache=False).last_hidden_state
        keep = learned[:, 1:]
        scores = self.model.lm_head(hidden[:, :-1][keep]).float()
        each = -torch.nn.functional.cross_entropy(scores, ids[:, 1:][keep], reduction="none")
        owner = keep.nonzero()[:, 0]
        total = torch.zeros(len(rows), device="cuda").index_add(0, owner, each)
        return total, keep.sum(1)

    def batches(self, rows, seed, size=lambda row: len(row[0])):
        order = list(range(len(rows)))
        rng = random.Random(seed)
        rng.shuffle(order)
        out = []
        for start in range(0, len(order), 1024):
            batch = []
            for i in sorted(order[start:start + 1024], key=lambda i: size(rows[i])):
                if batch and (len(batch) + 1) * size(rows[i]) > TOKENS:
                    out.append(batch)
                    batch = []
                batch.append(i)
            out.append(batch)
        rng.shuffle(out)
        return [[rows[i] for i in batch] for batch in out if batch]

    def learn(self, steps, rate, loss_of, until=None):
        optimiser = torch.optim.AdamW(self.parameters, lr=rate, weight_decay=0.0, betas=(0.9, 0.99))
        self.model.train()
        running = None
        for step, batch in enumerate(steps):
            for group in optimiser.param_groups:
                group["lr"] = rate * min(1, (step + 1) / 30) * max(0.05, 0.5 * (1 + math.cos(math.pi * step / len(steps))))
            loss = loss_of(batch)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            if torch.isfinite(norm) and torch.isfinite(loss):
                optimiser.step()
                running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
            optimiser.zero_grad()
            if step % 100 == 0:
                say("step", step, "of", len(steps), "loss", round(running or 0, 4))
            if until and time.time() - START > until:
                say("time is up at step", step)
                break

    def learn_right(self, chats, passes, seed=0, until=None):
        rows = [row for row in (self.encode(chat["messages"]) for chat in chats) if len(row[0]) <= 2048]
        steps = [batch for turn in range(passes) for batch in self.batches(rows, seed + turn)]

        def loss(batch):
            total, count = self.log_probability(batch)
            return -total.sum() / count.sum()

        self.learn(steps, RATE, loss, until)

    def learn_pairs(self, pairs, seed=0, until=None):
        rows = []
        for pair in pairs:
            right = self.encode(pair["messages"] + [{"role": "assistant", "content": pair["right"]}])
            wrong = self.encode(pair["messages"] + [{"role": "assistant", "content": pair["wrong"]}])
            if len(right[0]) <= 2048 and len(wrong[0]) <= 2048:
                rows.append((right, wrong))
        size = lambda row: 2 * max(len(row[0][0]), len(row[1][0]))
        steps = self.batches(rows, seed, size)
        self.model.eval()
        before = []
        with torch.no_grad():
            for batch in steps:
                before.append(self.log_probability([r for r, _ in batch] + [w for _, w in batch])[0])
        say("reference known")

        def loss(step):
            batch, old = step
            now, count = self.log_probability([r for r, _ in batch] + [w for _, w in batch])
            half = len(batch)
            gain = (now - old)[:half] - (now - old)[half:]
            plain = -now[:half].sum() / count[:half].sum()
            return -torch.nn.functional.logsigmoid(BETA * gain).mean() + 0.5 * plain

        self.learn(list(zip(steps, before)), PAIR_RATE, loss, until)

    @torch.no_grad()
    def answer(self, chats, size=128, **choice):
        self.model.eval()
        self.tokens.padding_side = "left"
        texts = ["".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in chat) + "<|im_start|>assistant\n" for chat in chats]
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        out = [None] * len(texts)
        for start in range(0, len(order), size):
            picked = order[start:start + size]
            batch = self.tokens([texts[i] for i in picked], return_tensors="pt", padding=True, add_special_tokens=False).to("cuda")
            made = self.model.generate(**batch, max_new_tokens=120, eos_token_id=self.end, pad_token_id=self.end, repetition_penalty=1.0, use_cache=True, **choice)
            for i, ids in zip(picked, made):
                out[i] = self.tokens.decode(ids[batch.input_ids.shape[1]:], skip_special_tokens=True).strip()
        return out

    def save(self, path):
        tensors = {}
        for name, layer in self.added.items():
            tensors[f"{name}.lora_A.weight"] = layer.down.detach().half().cpu().contiguous()
            tensors[f"{name}.lora_B.weight"] = (2.0 * layer.up.detach()).half().cpu().contiguous()
        save_file(tensors, path)


def rows_of(folder, db, sql, seconds=3):
    connection = sqlite3.connect(f"file:{folder}/db/{db}.sqlite?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    end = time.monotonic() + seconds
    connection.set_progress_handler(lambda: 1 if time.monotonic() > end else 0, 20000)
    try:
        rows = connection.execute(sql).fetchmany(20000)
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return None
    finally:
        connection.close()
    number = lambda v: round(float(v), 6) if isinstance(v, (int, float)) else v
    return collections.Counter(tuple(number(v) for v in row) for row in rows)


def score(learner, name, tags):
    chats = [c for c in json.load(open(f"{learner.folder}/eval.json")) if c["tag"] in tags]
    answers = learner.answer([c["messages"] for c in chats], **GREEDY)
    table = collections.defaultdict(lambda: [0, 0, 0])
    kept = []
    for chat, sql in zip(chats, answers):
        gold, got = rows_of(learner.folder, chat["db"], chat["gold"]), rows_of(learner.folder, chat["db"], sql)
        cell = table[chat["tag"]]
        cell[0] += 1
        cell[1] += got is not None and got == gold
        cell[2] += got is None
        kept.append({"tag": chat["tag"], "db": chat["db"], "gold": chat["gold"], "sql": sql, "right": got is not None and got == gold, "fails": got is None})
    json.dump(kept, open(f"{OUT}/{name}.json", "w"))
    for tag, (count, right, failed) in table.items():
        say(name, tag, "n", count, "right", round(100 * right / count, 1), "fail", round(100 * failed / count, 1))


def pairs(folder):
    learner = Learner(folder)
    chats = json.load(open(f"{folder}/train.json"))
    first = {}
    for chat in chats:
        if len(chat["messages"]) == 3:
            first.setdefault((chat["db"], chat["messages"][1]["content"].rsplit("Question: ", 1)[1]), chat)
    names = sorted({chat["db"] for chat in chats})
    random.Random(5).shuffle(names)
    halves = [set(names[::2]), set(names[1::2])]
    found = []
    for turn, half in enumerate(halves):
        learner.forget()
        learner.learn_right([c for c in chats if c["db"] in half][:], 1, seed=turn)
        unseen = [c for c in first.values() if c["db"] not in half]
        random.Random(turn).shuffle(unseen)
        unseen = unseen[:UNSEEN]
        answers = learner.answer([c["messages"][:2] for c in unseen], size=256, **GREEDY)
        for chat, sql in zip(unseen, answers):
            gold = rows_of(folder, chat["db"], chat["gold"])
            if gold and rows_of(folder, chat["db"], sql) != gold:
                found.append({"messages": chat["messages"][:2], "right": chat["gold"], "wrong": sql})
        say("half", turn, "unseen", len(unseen), "wrong so far", len(found))
        json.dump(found, open(f"{folder}/pairs.json", "w"))


def final(folder):
    learner = Learner(folder)
    chats = json.load(open(f"{folder}/train.json"))
    learner.learn_right(chats, 1)
    learner.save(f"{OUT}/adapter_plain.safetensors")
    score(learner, "scored_plain", ("plain",))
    learner.learn_pairs(json.load(open(f"{folder}/pairs.json")), until=460)
    learner.save(f"{OUT}/adapter.safetensors")
    score(learner, "scored", ("plain", "samples", "values", "both") if time.time() - START < 500 else ("plain",))


if __name__ == "__main__":
    {"pairs": pairs, "final": final}[sys.argv[1]](sys.argv[2])
