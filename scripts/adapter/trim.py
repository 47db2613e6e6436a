#!/usr/bin/env python3
"""Reduces the size of an adapter: drops its weakest singular directions, at most one per matrix. Requires torch, no GPU.

    trim.py IN OUT BYTES
"""
import os
import sys

import torch
from safetensors.torch import load_file, save_file


def main(source, target, limit):
    tensors = load_file(source)
    names = sorted({name.rsplit(".lora_", 1)[0] for name in tensors})
    matrix = lambda name: (tensors[name].float() * tensors[f"{name}.scale"][:, None]).double()
    parts = {}
    for name in names:
        # Singular value decomposition of the low-rank product, without computing the full matrix.
        tall, first = torch.linalg.qr(matrix(f"{name}.lora_B.weight"))
        flat, second = torch.linalg.qr(matrix(f"{name}.lora_A.weight").T)
        left, strength, right = torch.linalg.svd(first @ second.T)
        parts[name] = (tall @ left, strength, right @ flat.T)
    excess, dropped = os.path.getsize(source) - limit, []
    for name in sorted(names, key=lambda name: float(parts[name][1][-1])):
        if excess <= 0:
            break
        dropped.append(name)
        excess -= parts[name][0].shape[0] + parts[name][2].shape[1] + 4
    for name in dropped:
        tall, strength, flat = parts[name]
        root = strength[:-1].sqrt()
        for part, made in (("lora_A", root[:, None] * flat[:-1]), ("lora_B", tall[:, :-1] * root)):
            scale = (made.abs().amax(1, keepdim=True) / 127).clamp(min=1e-12)
            tensors[f"{name}.{part}.weight"] = (made / scale).round().clamp(-127, 127).to(torch.int8).contiguous()
            tensors[f"{name}.{part}.weight.scale"] = scale[:, 0].float().contiguous()
    save_file(tensors, target)
    lost = sum(float(parts[name][1][-1] ** 2) for name in dropped) / sum(float((strength ** 2).sum()) for _, strength, _ in parts.values())
    print(f"{len(dropped)} of {len(names)} matrices have one direction less, {100 * lost:.2f} % of all change; {os.path.getsize(target)} bytes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
