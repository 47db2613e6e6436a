#!/usr/bin/env python3
"""Performance regression test: counts the instructions of fixed jobs and compares them with committed counts.

    scripts/instructions.py                    the release build; `cargo build --release --bin querymend` creates it
    scripts/instructions.py --profile debug    the debug build, as built by ./test
    scripts/instructions.py --bless            writes the counts to crates/cli/benches/instructions.txt
    scripts/instructions.py --fetch            only installs valgrind if it is missing
    scripts/instructions.py --runs 3           counts three times and prints the variation

Unlike times, instruction counts hardly depend on the load of the machine. They are measured with valgrind (Debian:
`valgrind`), which is installed if it is missing and permissions allow it; with cachegrind without cache simulation, which
counts the same as callgrind in half the time. A job that exceeds its committed count by more than a tenth is a failure
(exit code 1; 3 without valgrind); one more than a tenth below it should be blessed. Counts vary slightly with compiler,
C library and processor; the file names those of its counts.
"""
import argparse
import http.server
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCHES = ROOT / "crates/cli/benches"
KEPT = BENCHES / "instructions.txt"
SHARE = 0.10
QUESTION = "Show the id and the price of every product in the category Electronics."
#: Refers to an unknown column, so that review, repair and database are all involved.
DRAFT = "SELECT id, price FROM products WHERE category = 'Electronics'"


def valgrind():
    """Returns the path of valgrind; installs it if it is missing and permissions allow it."""
    if not shutil.which("valgrind"):
        install = 'STATE=; source "$1"; system_packages valgrind valgrind'
        subprocess.run(["bash", "-euc", install, "-", ROOT / "scripts/servers.sh"], stdout=subprocess.DEVNULL, check=False)
    if not shutil.which("valgrind"):
        print("error: valgrind is not installed; hint: apt install valgrind", file=sys.stderr)
        sys.exit(3)
    return shutil.which("valgrind")


class Listening(http.server.BaseHTTPRequestHandler):
    """OpenAI-compatible server that always returns the same reply and records the requests."""

    asked = []

    def do_POST(self):
        self.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        piece = {"choices": [{"index": 0, "delta": {"content": DRAFT}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(piece)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def record(binary, folder, ask):
    """Records the question now: a committed recording would be invalid after any change of the prompt."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listening)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = f"http://127.0.0.1:{server.server_port}/v1#any"
    subprocess.run([binary, *ask, "--model", model], cwd=folder, env=surroundings(folder), check=True, capture_output=True)
    server.shutdown()
    (asked,) = Listening.asked
    request = {
        "messages": [{"role": one["role"], "text": one["content"]} for one in asked["messages"]],
        "max_tokens": asked.get("max_tokens") or asked["max_completion_tokens"],
        "temperature": asked["temperature"],
        "timeout": {"secs": 60, "nanos": 0},
    }
    for name in ("seed", "stop"):
        if name in asked:
            request[name] = asked[name]
    reply = {"text": DRAFT, "usage": {"input": 0, "output": 0, "cost_usd": None}, "stopped": "end", "model": "any"}
    (folder / "recording.jsonl").write_text(json.dumps({"request": request, "reply": reply}) + "\n")


def surroundings(folder):
    """Returns an environment without the user's settings, which would affect the counts."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


def jobs(binary, folder):
    """Returns the jobs: names with command-line arguments. The files are in the folder."""
    shutil.copy(BENCHES / "queries.jsonl", folder)
    shutil.copy(ROOT / "crates/sql/tests/pages/shop.sql", folder / "shop.sql")
    # The value index is built by a background thread, which makes counts nondeterministic; and
    # valgrind is slow.
    (folder / "querymend.yaml").write_text("values: {enabled: false}\nlimits: {time: 30m}\nbudget: {time: 30m}\n")
    subprocess.run([binary, "demo", "shop.db"], cwd=folder, env=surroundings(folder), check=True, capture_output=True)
    ask = ["ask", QUESTION, "--db", "shop.db", "--config", "querymend.yaml", "--no-memory", "--format", "json"]
    record(binary, folder, ask)
    batch = ["--batch", "queries.jsonl", "--jobs", "1", "--schema", "shop.sql"]
    return {
        "start": ["check", "--sql", "SELECT 1"],
        "check": ["check", *batch],
        "fix": ["fix", *batch],
        "ask": [*ask, "--model", "replay:recording.jsonl"],
    }


def counted(binary, folder, arguments):
    """Returns the instruction count of one run over all threads, and its output."""
    command = [valgrind(), "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", binary, *arguments]
    # Disable address space randomization if permitted.
    if shutil.which("setarch") and subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0:
        command = ["setarch", "-R", *command]
    ran = subprocess.run(command, cwd=folder, env=surroundings(folder), capture_output=True, text=True)
    found = re.search(r"I +refs: +([\d,]+)", ran.stderr)
    if ran.returncode or not found:
        sys.exit(f"error: `querymend {' '.join(arguments)}` ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return int(found[1].replace(",", "")), ran.stdout


def kept():
    lines = (line.split() for line in KEPT.read_text().splitlines() if line and not line.startswith("#")) if KEPT.exists() else ()
    return {(profile, name): int(count) for profile, name, count in lines}


def bless(counts):
    rustc = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True).stdout.split()[1]
    libc = " ".join(platform.libc_ver())
    text = f"# Instructions of fixed jobs, by scripts/instructions.py --bless (rustc {rustc}, {libc}).\n"
    text += "".join(f"{profile} {name} {count}\n" for (profile, name), count in sorted(counts.items()))
    KEPT.write_text(text)


def measure(binary, profile, runs=1):
    """Returns for each job its name, the counts of all runs, and the committed count."""
    before = kept()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Without debug information valgrind starts in a tenth of the time.
        bare = folder / "querymend"
        if not shutil.which("strip") or subprocess.run(["strip", "-o", bare, binary]).returncode:
            shutil.copy(binary, bare)
        lines = (BENCHES / "queries.jsonl").read_text().count("\n")
        for job, arguments in jobs(bare, folder).items():
            counts = []
            for _ in range(runs):
                count, out = counted(bare, folder, arguments)
                counts.append(count)
                # A job that fails must not count as fast.
                done = json.loads(out)["status"] == "answered" if job == "ask" else job == "start" or out.count("\n") == lines
                if not done:
                    sys.exit(f"error: {job} did not do its work:\n{out}")
            yield job, counts, before.get((profile, job))


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--profile", choices=["release", "debug"], default="release")
    asked.add_argument("--binary", type=Path, help="binary to measure instead of the one in target/PROFILE")
    asked.add_argument("--bless", action="store_true")
    asked.add_argument("--fetch", action="store_true")
    asked.add_argument("--runs", type=int, default=1)
    asked = asked.parse_args()
    if asked.fetch:
        valgrind()
        return
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = (asked.binary or target / asked.profile / "querymend").absolute()
    if not binary.exists():
        sys.exit(f"error: there is no {asked.profile} build; hint: cargo build{' --release' * (asked.profile == 'release')} --bin querymend")
    counts, slower = kept(), []
    print(f"| {asked.profile} build | instructions | committed | change |\n|---|---:|---:|---:|")
    for job, seen, before in measure(binary, asked.profile, asked.runs):
        now = min(seen)
        change = f"{100 * (now / before - 1):+.1f} %" if before else "new"
        apart = f" (runs up to {100 * (max(seen) / now - 1):.2f} % apart)" if asked.runs > 1 else ""
        print(f"| {job} | {now:,}{apart} | {f'{before:,}' if before else ''} | {change} |", flush=True)
        counts[asked.profile, job] = now
        if not before or now > before * (1 + SHARE):
            slower.append(job)
    if asked.bless:
        bless(counts)
    elif slower:
        sys.exit(f"error: more than a tenth more instructions than committed: {', '.join(slower)}\n"
                 "hint: if that is meant, `scripts/instructions.py --bless` writes the new counts")


if __name__ == "__main__":
    main()
