"""Measures Chroma with the vectors, texts and questions of `cargo bench -p querymend-memory --bench memory`, which calls this.

    python3 -m venv VENV && VENV/bin/pip install chromadb numpy
    QUERYMEND_CHROMA=VENV/bin/python QUERYMEND_MINILM=FOLDER cargo bench --profile release -p querymend-memory --bench memory -- SPIDER

Insertion stops after five minutes; then the search runs on what was inserted, and the output states how much that is.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import chromadb
import numpy as np

folder, count = Path(sys.argv[1]), int(sys.argv[2])
rows = np.memmap(folder / "rows.f32", "<f4", "r").reshape(count, -1)
asked = np.fromfile(folder / "asked.f32", "<f4").reshape(-1, rows.shape[1])
right = json.loads((folder / "right.json").read_text())
texts = json.loads((folder / "texts.json").read_text())

with tempfile.TemporaryDirectory() as place:
    client = chromadb.PersistentClient(place, chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("examples", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    start, there = time.perf_counter(), 0
    while there < count and time.perf_counter() - start < 300:
        end = min(there + 5000, count)
        collection.add(
            ids=[str(n) for n in range(there, end)],
            embeddings=np.array(rows[there:end]),
            documents=[texts[n % len(texts)] for n in range(there, end)],
            metadatas=[{"dialect": "sqlite"}] * (end - there),
        )
        there = end
    took = time.perf_counter() - start
    for vector in asked[:20]:
        collection.query(query_embeddings=[vector], n_results=5)
    times, hits = [], 0
    for vector, five in zip(asked, right):
        start = time.perf_counter()
        got = collection.query(query_embeddings=[vector], n_results=5)
        times.append((time.perf_counter() - start) * 1e6)
        hits += len({int(i) for i in got["ids"][0]} & set(five))
    times.sort()
    one = []
    for n in range(50):
        start = time.perf_counter()
        collection.add(ids=[f"new {n}"], embeddings=[asked[n % len(asked)]], documents=["How many parcels?"])
        one.append((time.perf_counter() - start) * 1e6)
    one.sort()
    size = sum(f.stat().st_size for f in Path(place).rglob("*") if f.is_file())
    status = Path("/proc/self/status").read_text()
    memory = next(line.split(":")[1].strip() for line in status.splitlines() if line.startswith("VmRSS"))
    found = f"{hits / (5 * len(right)):.4f} found" if there == count else "not all were added, so none are counted"
    print(
        f"chromadb {chromadb.__version__}, {there} of {count}: added {there / took:.0f} a second; five nearest "
        f"{times[len(times) // 2]:.0f} µs (95 of 100: {times[int(len(times) * 0.95)]:.0f} µs), {found}; "
        f"one addition {one[25]:.0f} µs; memory of the program {memory}, files {size >> 20} MB",
        flush=True,
    )
