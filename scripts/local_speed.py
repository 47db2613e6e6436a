#!/usr/bin/env python3
"""Compares the speed of the local model with llama.cpp's server, on the same file and machine, in alternation.

    scripts/local_speed.py --bin target/release/querymend [--model qwen2.5-coder-0.5b] [--rounds 3]

Starts the server of scripts/model_server.sh with one thread per core. Prints a line of JSON per round: prompt tokens and
generated tokens per second of both, and the ratio of ours to theirs.
"""
import argparse
import json
import os
import subprocess
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))


def server(command):
    settings = {**os.environ, "THREADS": str(os.cpu_count()), "CONTEXT": "4096"}
    return subprocess.run([os.path.join(HERE, "model_server.sh"), command], env=settings, capture_output=True, text=True, check=True).stdout


def theirs(url):
    prompt = " ".join(f"word{i}" for i in range(155))
    body = {"prompt": prompt, "n_predict": 64, "temperature": 0, "cache_prompt": False, "ignore_eos": True}
    request = urllib.request.Request(url + "/completion", data=json.dumps(body).encode(), headers={"content-type": "application/json"})
    timings = json.load(urllib.request.urlopen(request))["timings"]
    return timings["prompt_per_second"], timings["predicted_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for _ in range(given.rounds):
        address = dict(part.split("=", 1) for part in server("up").split())["url"]
        try:
            theirs(address.removesuffix("/v1"))
            read, write = theirs(address.removesuffix("/v1"))
        finally:
            server("down")
        ours = json.loads(subprocess.run([given.bin, "model", "bench", given.model, "--format", "json"], capture_output=True, text=True, check=True).stdout)
        print(json.dumps({
            "llama.cpp reads": round(read, 1), "reads": round(ours["read_per_s"], 1), "share read": round(ours["read_per_s"] / read, 2),
            "llama.cpp writes": round(write, 1), "writes": round(ours["write_per_s"], 1), "share written": round(ours["write_per_s"] / write, 2),
            "writes four at once": round(ours["write_four_per_s"], 1), "loaded in": round(ours["load_s"], 2),
        }), flush=True)


if __name__ == "__main__":
    main()
