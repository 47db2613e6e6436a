#!/usr/bin/env python3
"""Trains the adapter. One GPU, torch, transformers and gguf; about seven minutes on a large card.

    train.py DIR OUT

DIR holds model.gguf, train.json and eval.json (made by prepare.py) and db/NAME.sqlite. OUT gets adapter.safetensors, with
bytes and a scale for each row instead of floating-point numbers, and scored.json: every question of eval.json, answered with
those bytes and executed.

This form of the script has not been run yet. The one before it learned from prompts of which some also held samples of values
beside the columns, or a line of the values that the question names, and saved floating-point numbers. Scored once, on 507
questions of ten databases that were not trained on, at the first attempt: plain prompts 66.7 % right. After learning from pairs
of a right and a wrong query besides: plain 65.5 %, with samples 63.1 %, with values 65.5 %, with both 64.3 %. One run each, so
differences of a point or two may be chance; none of it was a gain, and it is gone.
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
PASSES = int(os.environ.get("PASSES", "1"))
TOKENS = int(os.environ.get("TOKENS", "24000"))
GREEDY = dict(do_sample=False, temperature=None, top_p=None, top_k=None)
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

    def forward(self, rows):
        return self.base(rows) + 2.0 * ((rows @ self.down.to(rows.dtype).T) @ self.up.to(rows.dtype).T)


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
        """As bytes with a scale for each row. The model goes on with what was written, so that it is scored as it will be used."""
        tensors = {}
        with torch.no_grad():
            for name, layer in self.added.items():
                for part, matrix, factor in (("lora_A", layer.down, 1.0), ("lora_B", layer.up, 2.0)):
                    scale = (matrix.abs().amax(1, keepdim=True) / 127).clamp(min=1e-12)
                    rounded = (matrix / scale).round().clamp(-127, 127)
                    matrix.copy_(rounded * scale)
                    tensors[f"{name}.{part}.weight"] = rounded.to(torch.int8).cpu().contiguous()
                    tensors[f"{name}.{part}.weight.scale"] = (scale[:, 0] * factor).float().cpu().contiguous()
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


def score(learner, path):
    chats = json.load(open(f"{learner.folder}/eval.json"))
    answers = learner.answer([c["messages"] for c in chats], **GREEDY)
    right = failed = 0
    kept = []
    for chat, sql in zip(chats, answers):
        gold, got = rows_of(learner.folder, chat["db"], chat["gold"]), rows_of(learner.folder, chat["db"], sql)
        right += got is not None and got == gold
        failed += got is None
        kept.append({"db": chat["db"], "gold": chat["gold"], "sql": sql, "right": got is not None and got == gold, "fails": got is None})
    json.dump(kept, open(path, "w"))
    say("n", len(chats), "right", round(100 * right / len(chats), 1), "fail", round(100 * failed / len(chats), 1))


def main(folder, out):
    os.makedirs(out, exist_ok=True)
    learner = Learner(folder)
    learner.learn_right(json.load(open(f"{folder}/train.json")), PASSES)
    learner.save(f"{out}/adapter.safetensors")
    score(learner, f"{out}/scored.json")


if __name__ == "__main__":
    main(*sys.argv[1:3])
