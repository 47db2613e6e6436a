#!/usr/bin/env python3
"""Compares Querymend with other text-to-SQL tools: same model, same questions, same attacks.

    scripts/comparison.py [--querymend BIN] [--only questions|attacks] [--systems querymend,opendbpylot,vanna07,…]

Questions: the first 100 of Spider (--questions) in the shuffled order of `score_ask.py`, answered by
Qwen2.5-Coder-0.5B-Instruct on `scripts/model_server.sh` and scored with score_ask's comparison of rows. They are part of the
evaluation data (docs/measurements/README.md); --data names another folder (with score_ask.py in its ../tools). Attacks:
datasets/comparison/attacks.txt. A scripted server replaces the model and replies to every question with one of them;
afterwards the database and its folder are compared with a snapshot.

The peers are installed from PyPI into --work (target/comparison). Answers are stored there, and a second run resumes where
the first one stopped. Delete the files of a system to ask it again; model replies stay cached. Writes WORK/table.md and
prints it. docs/measurements/comparison.md discusses the results.
"""
import argparse, hashlib, json, os, random, shutil, signal, sqlite3, subprocess, sys, time, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PARTS = os.path.join(HERE, "comparison")
ATTACKS = os.path.join(ROOT, "datasets", "comparison", "attacks.txt")
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
PEERS = {"vanna07": "vanna[chromadb,openai]==0.7.9", "vanna2": "vanna[openai]==2.0.2", "opendbpylot": "opendbpylot==0.3.0"}


def fail(what, hint):
    sys.exit(f"error: {what}\nhint: {hint}")


# ---------------------------------------------------------------------------------------------------------------- the systems

def python_of(work, name):
    """Creates a virtual environment with one release of a peer."""
    folder = os.path.join(work, name)
    python = os.path.join(folder, "bin", "python3")
    if not os.path.exists(os.path.join(folder, "complete")):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PEERS[name]], check=True)
        open(os.path.join(folder, "complete"), "w").close()
    return python


def minilm():
    return subprocess.run([os.path.join(HERE, "minilm.sh"), "fetch"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def querymend(options, model):
    if not os.access(options.querymend, os.X_OK):
        fail(f"there is no program {options.querymend}", "`cargo build --release --workspace`, or name one with --querymend")
    return [options.querymend, "ask", "--batch", "-", "--root", "/", "--model", model, "--no-memory"], {}


def peer(name, program, *arguments, **environment):
    return lambda options, url: ([python_of(options.work, name), os.path.join(PARTS, program), *arguments], {k: v() for k, v in environment.items()})


SYSTEMS = {
    "querymend": ("Querymend", lambda o, url: querymend(o, url + "/v1#qwen")),
    "opendbpylot": ("opendbpylot 0.3.0", peer("opendbpylot", "ask_opendbpylot.py")),
    "vanna07": ("Vanna 0.7.9", peer("vanna07", "ask_vanna07.py", "--auto-train", MINILM=minilm)),
    "vanna07-fixed": ("Vanna 0.7.9, learning off", peer("vanna07", "ask_vanna07.py", MINILM=minilm)),
    "vanna2": ("Vanna 2.0.2", peer("vanna2", "ask_vanna2.py")),
    "querymend-local": ("Querymend with its own local model", lambda o, url: querymend(o, "local:qwen2.5-coder-0.5b")),
}


# ---------------------------------------------------------------------------------------------------------------- asking

class Proxy:
    """Runs scripts/comparison/proxy.py in its own process, so that its CPU time is not attributed to a
    system.
    """

    def __init__(self, *arguments):
        self.process = subprocess.Popen([sys.executable, os.path.join(PARTS, "proxy.py"), *arguments], text=True, stdout=subprocess.PIPE)
        self.url = self.process.stdout.readline().strip().removeprefix("url=")

    def log(self):
        with DIRECT.open(self.url + "/log") as reply:
            return json.load(reply)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def asked(system, options, proxy, items, errors):
    """Asks the questions in sequence and yields each answer with its cost."""
    command, extra = SYSTEMS[system][1](options, proxy.url)
    folder = os.path.join(options.work, "home", system)
    os.makedirs(folder, exist_ok=True)
    # Isolate the state of the system, and ignore the settings of the current user.
    env = {**os.environ, **extra, "MODEL_URL": proxy.url, "ANONYMIZED_TELEMETRY": "False", "XDG_CONFIG_HOME": folder, "XDG_STATE_HOME": folder}
    seen, start = len(proxy.log()), time.monotonic()
    with open(errors, "a") as stderr:
        process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env, cwd=folder)
        process.stdin.write("".join(json.dumps(item) + "\n" for item in items))
        process.stdin.close()
        for line in process.stdout:
            answer, log, end = json.loads(line), proxy.log(), time.monotonic()
            calls = [c for c in log[seen:] if c["path"] == "/chat/completions"]
            answer["cost"] = {"calls": len(calls), "model_seconds": sum(c["seconds"] for c in calls),
                              "own_seconds": end - start - sum(c["waited"] for c in log[seen:])}
            yield answer
            seen, start = len(log), time.monotonic()
        if process.wait():
            print(f"{system} ended with {process.returncode}; see {errors}", file=sys.stderr)


def kept(path):
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return {r["id"]: r for r in map(json.loads, f)}


# ---------------------------------------------------------------------------------------------------------------- questions

def questions(options):
    """Returns [(number, question, gold queries)] in score_ask's shuffled order, so that a prefix is a
    random sample.
    """
    tools = os.path.join(options.data, "..", "tools")
    if not os.path.exists(os.path.join(options.data, "spider")) or not os.path.exists(os.path.join(tools, "score_ask.py")):
        fail(f"there are no Spider questions at {options.data}", "--data names a folder with spider/, and ../tools/score_ask.py beside it; or --only attacks")
    sys.path.insert(0, tools)
    from score_ask import load
    items = [(q, g) for q, g in load("spider", options.data) if os.path.exists(os.path.join(options.data, q["db"]))]
    random.Random(3).shuffle(items)
    return [(i, {"id": i, **q, "db": os.path.join(options.data, q["db"])}, g) for i, (q, g) in enumerate(items[: options.questions])]


def judged(answer, question, golds):
    """Returns right, wrong, failed (the last query does not run) or none (no query), by score_ask's
    comparison of rows.
    """
    from score_repair import connect, rows_of
    if not answer.get("sql"):
        return "failed" if answer.get("attempts") or "still failing" in (answer.get("error") or "") else "none"
    con = connect(question["db"])
    gold = [rows_of(con, g)[0] for g in golds if g]
    got, error = rows_of(con, answer["sql"])
    con.close()
    if error:
        return "failed"
    return "right" if got in [g for g in gold if g is not None] else "wrong"


def ask_questions(options, systems):
    items, lines = questions(options), []
    model = options.model or subprocess.run([os.path.join(HERE, "model_server.sh"), "up"], check=True, text=True, stdout=subprocess.PIPE,
                                            env={"THREADS": "2", "CONTEXT": "16384", **os.environ}).stdout.split()[0].removeprefix("url=")
    with Proxy("--model", model, "--cache", os.path.join(options.work, "replies")) as proxy:
        for system in systems:
            path = os.path.join(options.work, f"questions-{system}.jsonl")
            done = kept(path)
            left = [q for i, q, _ in items if i not in done]
            if left:
                with open(path, "a") as out:
                    for answer in asked(system, options, proxy, left, path + ".err"):
                        out.write(json.dumps(answer) + "\n")
                        out.flush()
                done = kept(path)
            lines.append(question_line(system, items, done))
    return ["| | questions | right | wrong | failed to execute | no query | calls of the model | own time | time in the model |", "|---|---|---|---|---|---|---|---|---|", *lines]


def question_line(system, items, done):
    verdicts = [judged(done.get(i, {}), q, g) for i, q, g in items]
    cost = [done[i]["cost"] for i, _, _ in items if i in done]
    local = system == "querymend-local"
    calls = sum(done[i].get("llm_calls") or 0 for i, _, _ in items if i in done) if local else sum(c["calls"] for c in cost)
    own, model = (f"{sum(c[k] for c in cost):.1f} s" for k in ("own_seconds", "model_seconds"))
    if local:
        own, model = "–", f"{own}, in this process"
    count = " | ".join(str(verdicts.count(v)) for v in ("right", "wrong", "failed", "none"))
    return f"| {SYSTEMS[system][0]} | {len(items)} | {count} | {calls} | {own} | {model} |"


# ---------------------------------------------------------------------------------------------------------------- attacks

def read_attacks():
    attacks, current = {}, None
    with open(ATTACKS) as f:
        for line in f:
            if line.startswith("== "):
                number, rest = line[3:].split(" ", 1)
                what, title = rest.strip().split(": ", 1)
                current = attacks[int(number)] = {"what": what, "title": title, "text": "", "sql": ""}
                part = "text"
            elif current and line == "=>\n":
                part = "sql"
            elif current:
                current[part] += line
    for attack in attacks.values():
        attack["text"] = attack["text"].strip()
        attack["sql"] = attack["sql"].strip() or attack["text"]
    return attacks


def shop(path):
    con = sqlite3.connect(path)
    con.executescript("""
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT);
        CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, category TEXT);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
                             product_id INTEGER REFERENCES products(id), quantity INTEGER, ordered_on TEXT);
        INSERT INTO customers VALUES (1, 'Ada', 'GB'), (2, 'Grace', 'US'), (3, 'Emmy', 'DE');
        INSERT INTO products VALUES (1, 'Lamp', 30, 'Home'), (2, 'Pen', 2.5, 'Office'), (3, 'Desk', 240, 'Office');
        INSERT INTO orders VALUES (1, 1, 1, 2, '2026-01-03'), (2, 2, 3, 1, '2026-01-09'), (3, 3, 2, 10, '2026-02-01'), (4, 1, 2, 5, '2026-02-11');""")
    con.close()


def snapshot(folder):
    """Returns the checksum of every file and the content of the database, read from a copy to leave
    the original unchanged.
    """
    files = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            files[name] = hashlib.sha256(f.read()).hexdigest()
    copy = folder + ".copy"
    shutil.copytree(folder, copy)
    try:
        con = sqlite3.connect(os.path.join(copy, "shop.db"))
        held = list(con.iterdump())
        con.close()
    except sqlite3.Error as e:
        held = [str(e)]
    shutil.rmtree(copy)
    return files, held


def changes(folder, before):
    files, held = snapshot(folder)
    found = [f"{name} appeared" for name in files if name not in before[0]]
    found += [f"{name} changed" for name in before[0] if files.get(name) != before[0][name]]
    return found + (["other contents"] if held != before[1] else [])


def victims(folder, attacks):
    """Returns a fresh copy of the database per attack: {number: (path, snapshot, attack with its paths
    filled in)}.
    """
    shutil.rmtree(folder, ignore_errors=True)
    first = os.path.join(folder, "0")
    os.makedirs(first)
    shop(os.path.join(first, "shop.db"))
    before, out = snapshot(first), {}
    for number, attack in attacks.items():
        place = os.path.join(folder, str(number))
        shutil.copytree(first, place)
        out[number] = place, before, {k: v.replace("{dir}", place) for k, v in attack.items()}
    return out


def plain(options, attacks):
    """Runs each attack directly on SQLite, to verify that it has an effect without protection."""
    for number, (place, before, attack) in victims(os.path.join(options.work, "attacks", "plain"), attacks).items():
        con = sqlite3.connect(os.path.join(place, "shop.db"))
        try:
            con.executescript(attack["sql"])
            said = "ran"
        except sqlite3.Error as e:
            said = str(e)
        con.close()
        found = changes(place, before)
        if bool(found) != (attack["what"] == "writes"):
            fail(f"attack {number} is listed as {attack['what']}, but plain SQLite {said}: {found or 'nothing changed'}", ATTACKS)


def attack_systems(options, systems):
    attacks, lines = read_attacks(), []
    plain(options, attacks)
    writes = [n for n, a in attacks.items() if a["what"] == "writes"]
    lines.append(f"| plain SQLite, no product | {len(writes)} of {len(attacks)} | those listed as \"writes\" |")
    for system in systems:
        path = os.path.join(options.work, f"attacks-{system}.json")
        if not os.path.exists(path):
            folder = os.path.join(options.work, "attacks", system)
            made, script = victims(folder, attacks), os.path.join(options.work, f"script-{system}.json")
            with open(script, "w") as f:
                json.dump({n: attack for n, (_, _, attack) in made.items()}, f)
            items = [{"id": n, "db": os.path.join(place, "shop.db"), "question": f"How many orders are there? (attack {n})"} for n, (place, _, _) in made.items()]
            with Proxy("--script", script) as proxy:
                answers = {a["id"]: a for a in asked(system, options, proxy, items, path + ".err")}
                said = {c["attack"] for c in proxy.log()}
            missing = [n for n in made if n not in answers or n not in said]
            if missing:
                fail(f"{SYSTEMS[system][0]} did not come to attacks {missing}, or never asked the model", f"see {path}.err")
            # Compare after the process has exited: open transactions may still be committed or
            # rolled back.
            found = {n: {"changes": changes(place, before), "answer": answers[n]} for n, (place, before, _) in made.items()}
            with open(path, "w") as f:
                json.dump(found, f, indent=1)
        with open(path) as f:
            found = json.load(f)
        through = [int(n) for n, r in found.items() if r["changes"]]
        lines.append(f"| {SYSTEMS[system][0]} | {len(through)} of {len(found)} | {', '.join(map(str, through)) or '–'} |")
    return ["| | writes let through | attacks |", "|---|---|---|", *lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--querymend", default=os.path.join(ROOT, "target", "release", "querymend"))
    parser.add_argument("--data", default=os.path.join(ROOT, "..", "shared", "data"))
    parser.add_argument("--work", default=os.path.join(ROOT, "target", "comparison"))
    parser.add_argument("--model", help="URL of a running OpenAI-compatible server (…/v1) instead of scripts/model_server.sh")
    parser.add_argument("--questions", type=int, default=100, help="number of shuffled questions to ask (default 100)")
    parser.add_argument("--only", choices=["questions", "attacks"])
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    options = parser.parse_args()
    options.data, options.work, options.querymend = map(os.path.abspath, (options.data, options.work, options.querymend))
    os.makedirs(options.work, exist_ok=True)
    systems = options.systems.split(",")
    for system in systems:
        if system not in SYSTEMS:
            fail(f"there is no system {system}", f"there are {', '.join(SYSTEMS)}")
    tables = []
    if options.only != "attacks":
        tables.append(ask_questions(options, systems))
    if options.only != "questions":
        # The handling of a given reply does not depend on the model or on learning.
        tables.append(attack_systems(options, [s for s in systems if s not in ("querymend-local", "vanna07-fixed")]))
    text = "\n\n".join("\n".join(lines) for lines in tables)
    with open(os.path.join(options.work, "table.md"), "w") as f:
        f.write(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
