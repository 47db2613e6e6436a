#!/usr/bin/env python3
"""Measures the memory of a server: idle, per conversation, and per event stream.

    scripts/server_memory.py           requires target/release/querymend (or QUERYMEND, its path)

Uses the demo database and the model of scripts/soak.py. Each conversation has one question with its rows. Streams run
concurrently, and the peak memory is divided by their number.
"""
import asyncio
import json
import multiprocessing
import os
import subprocess
import tempfile
import time
from pathlib import Path

import soak

SESSIONS, STREAMS = 8_000, 1_000
soak.RIGHT = "SELECT name, price FROM products WHERE category = 'Electronics'"
soak.BROKEN = "SELECT id, price FROM products WHERE category = 'Electronics'"


async def post(port, path, body, accept="application/json"):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    text = json.dumps(body)
    writer.write(f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: {accept}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode())
    data = await reader.read()
    writer.close()
    return data.decode().split("\r\n\r\n", 1)[1]


async def conversations(port, count):
    async def one():
        session = json.loads(await post(port, "/v1/sessions", {}))["session_id"]
        answer = json.loads(await post(port, "/v1/ask", {"question": "Which electronics are there?", "session_id": session}))
        assert answer["status"] == "answered", answer

    for _ in range(count // 16):
        await asyncio.gather(*(one() for _ in range(16)))


async def streams(port, pid, count):
    most = 0

    async def watch():
        nonlocal most
        while True:
            most = max(most, soak.memory(pid))
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    all_of_them = (post(port, "/v1/ask", {"question": "Which electronics are there?"}, "text/event-stream") for _ in range(count))
    ended = sum("event: finished" in text for text in await asyncio.gather(*all_of_them))
    watching.cancel()
    return ended, most


def main():
    fails, port_of_model = multiprocessing.Value("b", 0), multiprocessing.Value("i", 0)
    model = multiprocessing.Process(target=soak.model, args=(fails, port_of_model), daemon=True)
    model.start()
    while not port_of_model.value:
        time.sleep(0.01)
    binary = os.environ.get("QUERYMEND") or soak.ROOT / "target/release/querymend"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([binary, "demo", folder / "shop.db"], check=True, capture_output=True)
        server, port, _ = soak.start(folder, folder / "shop.db", port_of_model.value)
        try:
            print(f"at rest: {soak.memory(server.pid):.0f} MB")
            asyncio.run(conversations(port, 1_600))
            before = soak.memory(server.pid)
            asyncio.run(conversations(port, SESSIONS))
            print(f"each conversation of one question: {(soak.memory(server.pid) - before) * 1024 / SESSIONS:.1f} kB")
            asyncio.run(streams(port, server.pid, 100))
            before = soak.memory(server.pid)
            ended, most = asyncio.run(streams(port, server.pid, STREAMS))
            print(f"each of {STREAMS} streams at once: {max(0, most - before) * 1024 / STREAMS:.1f} kB at most; {ended} ended with their answer")
        finally:
            server.terminate()
            server.wait(60)
            model.terminate()


if __name__ == "__main__":
    main()
