#!/usr/bin/env python3
"""Trains the LoRA adapter in two phases. Requires one GPU, torch, transformers, accelerate and gguf; about ten minutes on a
large card.

    train.py DIR OUT [ADAPTER]

DIR contains model.gguf, train.json and eval.json (written by prepare.py), db/NAME.sqlite and, for a faster start, a saved
tokenizer. Phase one is supervised fine-tuning on the queries of train.json. Phase two is reinforcement learning: it samples
eight queries per question, executes them, and raises the probability of those that score better than the others. It starts
from ADAPTER if given, and phase one is skipped then. OUT receives adapter_a after phase one, adapter_b after phase two, and
adapter_b1 and so on in between, quantized to bytes with a scale per row; and for each a scored_*.json: every question of
eval.json, answered with the quantized adapter and executed.

One run, on 507 questions of ten databases not used for training, first attempt, without the rest of Querymend:

    after phase one (345 steps, some 145 s)      64.3 % right, 18.5 % fail
    in phase two, after some 60 steps (200 s)    69.2 % right, 12.0 % fail
    at its end, 87 steps (300 s)                 68.6 % right, 12.8 % fail

An earlier version of phase one gave 66.7 %. It used every database three times, where this one uses a quarter of them only
once, to leave them for phase two; and it had sample values in some prompts, but no examples or dialects. The cause of the
difference is not known. On the training questions of that quarter, phase two raised the share of right answers from 65 to
86 % (eight samples each) and was still improving at the end, while other databases did not improve after 60 steps. Tried
without gain: sample values in the prompt, and preference pairs of a right and a wrong query. One run each, so differences
of a point or two may be noise.

The phases ran separately: phase two started from the file that phase one had written. The published adapter is the final
one, not the best of the three, and was reduced to 10 MB with trim.py.
"""
import collections
import contextlib
import json
import math
import multiprocessing
import os
import random
import sqlite3
import sys
import time
import zlib

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

RANK = int(os.environ.get("RANK", "16"))
RATE = float(os.environ.get("RATE", "2e-4"))
PASSES = int(os.environ.get("PASSES", "1"))
TOKENS = int(os.environ.get("TOKENS", "24000"))
SECONDS = float(os.environ.get("SECONDS_B", "300"))
RATE_B = float(os.environ.get("RATE_B", "8e-5"))
ASKED, SAMPLES, MOST = 128, 8, 100
DEVICE = os.environ.get("DEVICE", "cuda")
PARTS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
START = time.time()


def say(*words):
    print(round(time.time() - START), *words, flush=True)


class Added(torch.nn.Module):
    """Linear layer with a low-rank update (LoRA)."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.down = torch.nn.Parameter(torch.randn(rank, base.in_features, device=DEVICE) / math.sqrt(base.in_features))
        self.up = torch.nn.Parameter(torch.zeros(base.out_features, rank, device=DEVICE))

        self.inside = None

    def forward(self, rows):
        if self.inside is not None:
            return self.base(rows)
        return self.base(rows) + 2.0 * ((rows @ self.down.to(rows.dtype).T) @ self.up.to(rows.dtype).T)


    def merge(self):
        """Merges the update into the matrix, which makes generation twice as fast."""
        self.inside = self.base.weight.data
        self.base.weight.data = (self.inside.float() + 2.0 * (self.up @ self.down)).to(self.inside.dtype)

    def part(self):
        self.base.weight.data, self.inside = self.inside, None


class Learner:
    def __init__(self, folder):
        self.folder = folder
        # Reading the tokenizer from the GGUF file takes a minute; a saved tokenizer.json takes a
        # second.
        source = {} if os.path.exists(f"{folder}/tokenizer.json") else {"gguf_file": "model.gguf"}
        self.tokens = AutoTokenizer.from_pretrained(folder, **source)
        config = GgufConfig(dequantize=True)
        model = AutoModelForCausalLM.from_pretrained(folder, gguf_file="model.gguf", dtype=torch.bfloat16, quantization_config=config)
        if not model.config.tie_word_embeddings:
            model.get_input_embeddings().weight.data.copy_(model.lm_head.weight.data)
            model.config.tie_word_embeddings = True
            model.tie_weights()
        model.hf_quantizer = None
        self.model = model.to(DEVICE)
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
        """Returns the tokens of a chat and the mask of those that are trained on."""
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
        """Returns the sum of the log probabilities of the trained tokens per row, and their count."""
        width = max(len(ids) for ids, _ in rows)
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        learned = torch.zeros((len(rows), width), dtype=torch.bool)
        seen = torch.zeros((len(rows), width), dtype=torch.long)
        for i, (tokens, mask) in enumerate(rows):
            ids[i, :len(tokens)] = torch.tensor(tokens)
            learned[i, :len(tokens)] = torch.tensor(mask, dtype=torch.bool)
            seen[i, :len(tokens)] = 1
        ids, learned, seen = ids.to(DEVICE), learned.to(DEVICE), seen.to(DEVICE)
        hidden = self.model.model(input_ids=ids, attention_mask=seen, use_cache=False).last_hidden_state
        keep = learned[:, 1:]
        scores = self.model.lm_head(hidden[:, :-1][keep]).float()
        each = -torch.nn.functional.cross_entropy(scores, ids[:, 1:][keep], reduction="none")
        owner = keep.nonzero()[:, 0]
        total = torch.zeros(len(rows), device=DEVICE).index_add(0, owner, each)
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

    def asked(self, messages):
        """Returns the tokens of a chat up to the start of the answer."""
        return self.encode(messages)[0] + self.tokens("<|im_start|>assistant\n", add_special_tokens=False).input_ids

    @contextlib.contextmanager
    def merged(self):
        self.model.eval()
        with torch.no_grad():
            for layer in self.added.values():
                layer.merge()
            yield
            for layer in self.added.values():
                layer.part()

    def write(self, prompts, samples=1, most=MOST, chance=False):
        """Samples several answers per prompt, as lists of tokens, with the updates merged. Each prompt
        is prefilled once.
        """
        width = max(len(p) for p in prompts)
        ids = torch.tensor([[self.end] * (width - len(p)) + p for p in prompts], device=DEVICE)
        seen = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=DEVICE)
        place = (seen.cumsum(1) - 1).clamp(min=0)
        made = self.model.model(input_ids=ids, attention_mask=seen, position_ids=place, use_cache=True)
        scores = self.model.lm_head(made.last_hidden_state[:, -1]).repeat_interleave(samples, 0)

        def room(read):
            read = read.repeat_interleave(samples, 0)
            return torch.cat([read, read.new_zeros((*read.shape[:2], most, read.shape[3]))], 2)

        memory = [(room(layer.keys), room(layer.values)) for layer in made.past_key_values.layers]
        hidden = torch.zeros_like(seen, dtype=scores.dtype).masked_fill(seen == 0, -1e9).repeat_interleave(samples, 0)
        hidden = torch.cat([hidden, hidden.new_zeros((len(hidden), most))], 1)
        place = place[:, -1:].repeat_interleave(samples, 0)
        written = torch.full((len(hidden), most), self.end, device=DEVICE)
        rows = torch.arange(len(hidden), device=DEVICE)
        going = torch.ones_like(rows, dtype=torch.bool)
        for step in range(most):
            token = torch.multinomial(scores.float().softmax(-1), 1)[:, 0] if chance else scores.argmax(-1)
            written[rows, step] = token
            going = going & (token != self.end)
            left = int(going.sum())
            if not left:
                break
            # Drop finished rows once there are many; until then their output is ignored.
            if left < 0.6 * len(rows):
                keep = going.nonzero()[:, 0]
                rows, token, hidden, place, going = rows[keep], token[keep], hidden[keep], place[keep], going[keep]
                memory = [(keys[keep], values[keep]) for keys, values in memory]
            place = place + 1
            scores = self.next(token, place, width + step, memory, hidden)
        return [row[:row.index(self.end) + 1] if self.end in row else row for row in written.tolist()]

    def next(self, token, place, at, memory, hidden):
        """Returns the logits after a token at a position. Equivalent to the model's forward pass, with
        a tenth of its overhead.
        """
        model, linear = self.model.model, torch.nn.functional.linear
        heads, shared = self.model.config.num_attention_heads, self.model.config.num_key_value_heads
        state = model.embed_tokens(token)
        cos, sin = model.rotary_emb(state[:, None], place)
        count, size = len(token), cos.shape[-1]
        unseen = hidden[:, None, None, :at + 1]
        norm = lambda rows, by: torch.nn.functional.rms_norm(rows, by.weight.shape, by.weight, by.variance_epsilon)
        for layer, (keys, values) in zip(model.layers, memory):
            own, mlp = layer.self_attn, layer.mlp
            rows = norm(state, layer.input_layernorm)
            q, k, v = (linear(rows, part.base.weight, part.base.bias) for part in (own.q_proj, own.k_proj, own.v_proj))
            turned = torch.cat([q, k], 1).view(count, heads + shared, size)
            half = torch.cat([-turned[..., size // 2:], turned[..., :size // 2]], -1)
            turned = turned * cos + half * sin
            keys[:, :, at] = turned[:, heads:]
            values[:, :, at] = v.view(count, shared, size)
            q = turned[:, :heads].reshape(count, shared, heads // shared, size) * own.scaling
            share = (q @ keys[:, :, :at + 1].transpose(2, 3) + unseen).softmax(-1, dtype=torch.float32).to(q.dtype)
            state = state + linear((share @ values[:, :, :at + 1]).reshape(count, -1), own.o_proj.base.weight)
            rows = norm(state, layer.post_attention_layernorm)
            inner = torch.nn.functional.silu(linear(rows, mlp.gate_proj.base.weight)) * linear(rows, mlp.up_proj.base.weight)
            state = state + linear(inner, mlp.down_proj.base.weight)
        return self.model.lm_head(norm(state, model.norm))

    def text(self, tokens):
        return self.tokens.decode(tokens, skip_special_tokens=True).strip()

    def answer(self, chats, size=128):
        prompts = [self.asked(chat) for chat in chats]
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        out = [None] * len(prompts)
        with self.merged():
            for start in range(0, len(order), size):
                picked = order[start:start + size]
                for i, tokens in zip(picked, self.write([prompts[i] for i in picked], most=120)):
                    out[i] = self.text(tokens)
        return out

    def weighed(self, groups):
        """Sum of weight times log probability over answers: [(prompt, [(answer, weight)])].

        Each prompt is processed once, followed by its answers; the attention mask lets an answer see the prompt and itself.
        """
        width = max(len(p) + sum(len(a) for a, _ in answers) for p, answers in groups)
        width += -width % 8
        ids = torch.full((len(groups), width), self.end)
        place = torch.zeros((len(groups), width), dtype=torch.long)
        part = torch.full((len(groups), width), -1)
        owner, before, target, weight = [], [], [], []
        for i, (prompt, answers) in enumerate(groups):
            ids[i, :len(prompt)] = torch.tensor(prompt)
            place[i, :len(prompt)] = torch.arange(len(prompt))
            part[i, :len(prompt)] = 0
            start = len(prompt)
            for number, (answer, worth) in enumerate(answers):
                end = start + len(answer)
                ids[i, start:end] = torch.tensor(answer)
                place[i, start:end] = len(prompt) + torch.arange(len(answer))
                part[i, start:end] = number + 1
                owner += [i] * len(answer)
                before += [len(prompt) - 1] + list(range(start, end - 1))
                target += answer
                weight += [worth] * len(answer)
                start = end
        ids, place, part = ids.to(DEVICE), place.to(DEVICE), part.to(DEVICE)
        earlier = torch.ones((width, width), dtype=torch.bool, device=DEVICE).tril()
        sees = (((part[:, None, :] == 0) & (part[:, :, None] >= 0)) | (part[:, None, :] == part[:, :, None])) & earlier
        hidden = self.model.model(input_ids=ids, attention_mask=sees[:, None], position_ids=place, use_cache=False).last_hidden_state
        scores = self.model.lm_head(hidden[owner, before]).float()
        each = -torch.nn.functional.cross_entropy(scores, torch.tensor(target, device=DEVICE), reduction="none")
        return (each * torch.tensor(weight, device=DEVICE)).sum()

    def reinforce(self, chats, golds, pool, seconds, moments):
        """Reinforcement learning: rewards queries that score better than other samples for the same question.

        `moments` is called at regular intervals. Half of the questions are about databases that phase one used only once.
        """
        ready = [c for c in chats if golds.get((c["db"], c["gold"])) and len(c["messages"]) == 3 and "SQLite" in c["messages"][0]["content"]]
        ready = [c for c in ready if len(c["messages"][1]["content"]) < 4000]
        piles = [[c for c in ready if spared(c["db"])], [c for c in ready if not spared(c["db"])]]
        say("to reinforce on", [len(pile) for pile in piles])
        rng = random.Random(11)
        optimiser = torch.optim.AdamW(self.parameters, lr=RATE_B, weight_decay=0.0, betas=(0.9, 0.99))
        begun, reports, step, seen = time.time(), 0, 0, []
        while (passed := time.time() - begun) < seconds:
            for group in optimiser.param_groups:
                group["lr"] = RATE_B * min(1, (step + 1) / 5) * min(1, max(0.1, (1 - passed / seconds) / 0.4))
            picked = [c for pile in piles for c in rng.sample(pile, min(len(pile), ASKED // 2))]
            prompts = [self.asked(c["messages"][:-1]) for c in picked]
            clock = time.time()
            with self.merged():
                answers = self.write(prompts, SAMPLES, chance=True)
            wrote = time.time() - clock
            owners = [c for c in picked for _ in range(SAMPLES)]
            jobs = list(dict.fromkeys((self.folder, c["db"], self.text(a), 1) for c, a in zip(owners, answers)))
            found = dict(zip(jobs, pool.starmap(rows_of, jobs, chunksize=4)))
            ran = time.time() - clock - wrote
            groups = []
            for i, chat in enumerate(picked):
                mine = answers[i * SAMPLES:(i + 1) * SAMPLES]
                rows = [found[(self.folder, chat["db"], self.text(a), 1)] for a in mine]
                rewards = [0.0 if r is None else 1.0 if r == golds[(chat["db"], chat["gold"])] else 0.1 for r in rows]
                mean = sum(rewards) / SAMPLES
                seen.append((spared(chat["db"]), mean, sum(r is None for r in rows) / SAMPLES, sum(r == 1.0 for r in rewards) / SAMPLES))
                if max(rewards) > min(rewards):
                    worth = collections.Counter()
                    for a, reward in zip(mine, rewards):
                        worth[tuple(a)] += reward - mean
                    groups.append((prompts[i], [(list(a), w) for a, w in worth.items()]))
            groups.sort(key=lambda g: len(g[0]) + sum(len(a) for a, _ in g[1]))
            batch, lost, sums = [], 0, [torch.zeros_like(p) for p in self.parameters]
            self.model.train()
            for number, group in enumerate(groups):
                batch.append(group)
                following = groups[number + 1] if number + 1 < len(groups) else None
                size = len(following[0]) + sum(len(a) for a, _ in following[1]) if following else 0
                if not following or (len(batch) + 1) * size > TOKENS:
                    (-self.weighed(batch) / (64 * ASKED * SAMPLES)).backward()
                    # Gradients in bf16 are occasionally not finite; skip the batch then.
                    fine = bool(torch.isfinite(torch.stack([p.grad.norm() for p in self.parameters])).all())
                    for total, p in zip(sums, self.parameters):
                        if fine:
                            total += p.grad
                        p.grad = None
                    batch, lost = [], lost + (not fine)
            for total, p in zip(sums, self.parameters):
                p.grad = total
            norm = torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            optimiser.step()
            optimiser.zero_grad()
            step += 1
            if step % 10 == 0 or step < 4:
                mean = lambda place, of: round(sum(s[place] for s in seen if s[0] == of) / max(1, sum(s[0] == of for s in seen)), 3)
                say("reinforce", step, "reward", mean(1, True), mean(1, False), "right", mean(3, True), mean(3, False), "fails", mean(2, True), mean(2, False),
                    "groups", len(groups), "lost", lost, "norm", round(float(norm), 3), "seconds", [round(x, 1) for x in (wrote, ran, time.time() - clock - wrote - ran)])
                seen = []
            if passed > (reports + 1) * 200:
                reports += 1
                moments(f"b{reports}")
        say("steps", step)

    def load(self, path):
        tensors = load_file(path, device=DEVICE)
        with torch.no_grad():
            for name, layer in self.added.items():
                for part, matrix, factor in (("lora_A", layer.down, 1.0), ("lora_B", layer.up, 2.0)):
                    scale = tensors[f"{name}.{part}.weight.scale"] / factor
                    matrix.copy_(tensors[f"{name}.{part}.weight"].float() * scale[:, None])

    def save(self, path):
        """Quantizes to bytes with a scale per row. The model continues with the quantized weights, so
        the scores match the published file.
        """
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


def spared(db):
    """Uses a quarter of the databases only once in phase one, so that phase two has questions with
    errors left.
    """
    return zlib.crc32(db.encode()) % 4 == 0


def rows_of(folder, db, sql, seconds=3):
    connection = sqlite3.connect(f"file:{folder}/db/{db}.sqlite?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    end = time.monotonic() + seconds
    connection.set_progress_handler(lambda: 1 if time.monotonic() > end else 0, 20000)
    try:
        rows = connection.execute(sql).fetchmany(8000)
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return None
    finally:
        connection.close()
    number = lambda v: round(float(v), 6) if isinstance(v, (int, float)) else v
    return collections.Counter(tuple(number(v) for v in row) for row in rows)


def score(learner, path):
    chats = json.load(open(f"{learner.folder}/eval.json"))
    answers = learner.answer([c["messages"] for c in chats])
    right = failed = 0
    kept = []
    for chat, sql in zip(chats, answers):
        gold, got = rows_of(learner.folder, chat["db"], chat["gold"]), rows_of(learner.folder, chat["db"], sql)
        right += got is not None and got == gold
        failed += got is None
        kept.append({"db": chat["db"], "gold": chat["gold"], "sql": sql, "right": got is not None and got == gold, "fails": got is None})
    json.dump(kept, open(path, "w"))
    say("n", len(chats), "right", round(100 * right / len(chats), 1), "fail", round(100 * failed / len(chats), 1))


def main(folder, out, begun=None):
    os.makedirs(out, exist_ok=True)
    # Create the pool before using the GPU: a process that has initialized CUDA cannot be forked.
    pool = multiprocessing.get_context("fork").Pool(int(os.environ.get("POOL", "4")))
    chats = json.load(open(f"{folder}/train.json"))
    asked = list(dict.fromkeys((c["db"], c["gold"]) for c in chats))
    golds = pool.starmap_async(rows_of, [(folder, db, gold, 1) for db, gold in asked], chunksize=16)
    learner = Learner(folder)

    def keep(name):
        learner.save(f"{out}/adapter_{name}.part")
        os.replace(f"{out}/adapter_{name}.part", f"{out}/adapter_{name}.safetensors")
        score(learner, f"{out}/scored_{name}.json")

    if begun:
        learner.load(begun)
    else:
        learner.learn_right([c for c in chats if c["take"] == 0 or not spared(c["db"])], PASSES)
        keep("a")
    learner.reinforce(chats, dict(zip(asked, golds.get())), pool, SECONDS, keep)
    keep("b")
    say("done")


if __name__ == "__main__":
    main(*sys.argv[1:4])
