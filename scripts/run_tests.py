#!/usr/bin/env python3
"""Runs everything that must hold before a change lands; `./test` is the command for it.

    ./test                    every test; of the largest suites a representative part
    ./test --full             every test, the largest suites whole
    ./test --crates sql,core  only the tests of these crates, and only the servers that those need

The work is a graph of jobs: downloads, servers, builds, and the test binaries. A job starts when those that it needs are done and a
processor is free; downloads and servers go on beside the compiler. The output of a job is shown when it fails, and lies in
target/test-logs in any case; the time of every job is printed at the end. Where CI is set, a missing server is a failure, except those
that this machine may be unable to run (OPTIONAL).
"""
import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import Pool
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
LOGS = TARGET / "test-logs"
#: Jobs that run at once: one more than a small machine has processors, since tests of servers wait half of the time.
SLOTS = 3
#: Seconds that `calibrate` takes on a quiet machine with two cores.
REFERENCE = 0.14
#: Seconds after which a job has hung, on a machine that is not slow.
JOB_TIMEOUT = 1800
#: The servers of the tests of each crate.
SERVERS = {
    "core": ["postgres"], "engine": ["postgres", "mysql", "spark", "trino"], "memory": ["stores"], "model": ["model"],
    "server": ["stores"], "cli": ["model"],
}
#: What else the tests of a crate use, as a script with the verb `fetch`.
TOOLS = {
    "engine": ["datafusion_check"], "model": ["minilm"], "server": ["grpc_client", "mcp_client", "telemetry", "schemathesis"],
    "cli": ["faketime", "mcp_client"],
}
#: Trino takes a Maven repository, and the packaged model server a processor with AMX.
OPTIONAL = {"trino", "model"}
#: Test binaries that stop servers which others use: they run after all others, one at a time.
ALONE = ["restart"]
#: What the compiler waits for; other downloads begin when it has begun.
BEFORE_BUILD = ["crates", "page"]
#: States in which a job will not run any more.
ENDED = ("ok", "failed", "left out")
#: Crates in the order of their tests: pure ones first, so that a simple mistake is told early, then those that take longest.
ORDER = ["testing", "sql", "net", "eval", "core", "engine", "cli", "memory", "server", "model"]


def work(_):
    state = 1
    for _ in range(1_000_000):
        state = (state * 6364136223846793005 + 1) & 0xFFFFFFFFFFFFFFFF
    return state


def calibrate():
    """How many times slower two processes are here than on a quiet machine with two cores, at least 1."""
    with Pool(2) as pool:
        pool.map(abs, [1, 1])
        begun = time.monotonic()
        pool.map(work, [0, 0], chunksize=1)
        return max(1.0, (time.monotonic() - begun) / REFERENCE)


class Job:
    """One command. It starts when the jobs that it `needs` succeeded and those that it comes `after` ended. `slots` is how many
    processors it is counted for; `found` is called with its standard output."""

    def __init__(self, name, command, needs=(), after=(), slots=1, cwd=ROOT, optional=False, found=None, env=None):
        self.name, self.command, self.needs, self.after, self.slots, self.cwd = name, command, set(needs), set(after), slots, cwd
        self.optional, self.found, self.env = optional, found, env or {}
        self.state, self.seconds, self.processor, self.process = "waiting", 0.0, 0.0, None
        self.log = LOGS / f"{name.replace(' ', '-').replace('/', '-')}.log"

    def run(self, timeout):
        begun = time.monotonic()
        out = self.log.with_suffix(".out")
        with open(out, "w+") as stdout, open(self.log, "w") as log:
            both = stdout if self.found else log
            self.process = subprocess.Popen(
                self.command, cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=both, stderr=log, start_new_session=True,
                env={**os.environ, **self.env})
            hung = threading.Timer(timeout, stop, [self.process])
            hung.daemon = True
            hung.start()
            _, status, used = os.wait4(self.process.pid, 0)
            self.process.returncode = code = os.waitstatus_to_exitcode(status)
            if time.monotonic() - begun >= timeout:
                log.write(f"\nerror: it did not end within {timeout:.0f} s and was stopped\n")
            hung.cancel()
            stdout.seek(0)
            if self.found and code == 0:
                self.found(stdout.read())
        out.unlink()
        self.seconds, self.processor = time.monotonic() - begun, used.ru_utime + used.ru_stime
        self.state = "ok" if code == 0 else "failed"

    def output(self):
        return self.log.read_text(errors="replace")


def stop(process):
    """Ends a job with everything that it started."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
        except ProcessLookupError:
            return
        for _ in range(100):
            if process.returncode is not None:
                break
            time.sleep(0.1)


class Graph:
    def __init__(self, timeout):
        self.jobs, self.timeout, self.ended, self.begun = [], timeout, queue.Queue(), time.monotonic()

    def add(self, *args, **options):
        job = Job(*args, **options)
        self.jobs.append(job)
        return job.name

    def run(self):
        """Runs all jobs, in the order in which they were added where there is a choice."""
        by_name = lambda name: next(job for job in self.jobs if job.name == name)
        while True:
            free = SLOTS - sum(job.slots for job in self.jobs if job.state == "running")
            for job in self.jobs:
                if job.state != "waiting":
                    continue
                needed = [by_name(name) for name in job.needs]
                broken = [one.name for one in needed if one.state in ("failed", "left out") and not one.optional]
                if broken:
                    job.state = "left out"
                    print(f"== {job.name}: left out without {', '.join(broken)}", flush=True)
                elif all(one.state in ENDED for one in needed + [by_name(name) for name in job.after]) and job.slots <= max(free, 0):
                    job.state, free = "running", free - job.slots
                    threading.Thread(target=self.start, args=(job,), daemon=True).start()
            if not any(job.state == "running" for job in self.jobs):
                if not any(job.state == "waiting" for job in self.jobs):
                    return
                continue
            self.report(self.ended.get())

    def start(self, job):
        try:
            job.run(self.timeout)
        except Exception as error:  # a job that cannot be started has failed
            job.log.write_text(f"error: {error}\n")
            job.state = "failed"
        self.ended.put(job)

    def report(self, job):
        at = time.monotonic() - self.begun
        print(f"== {job.name}: {job.state} in {job.seconds:.1f} s (at {at:.0f} s)", flush=True)
        for line in job.output().splitlines() if job.state == "ok" else ():
            if re.match(r"test result: |(?:#|ℹ) (pass|fail|cancelled) |error: |hint: |left out: ", line):
                print(f"   {line}", flush=True)
        if job.state == "failed":
            print(job.output(), flush=True)

    def stop(self):
        for job in self.jobs:
            if job.state == "running" and job.process:
                stop(job.process)


def exported(text):
    """Takes over the address of a database server, which a script prints as `export QUERYMEND_TEST_NAME='address'`."""
    for name, value in re.findall(r"^export QUERYMEND_TEST_(\w+)='(.*)'$", text, re.M):
        os.environ[f"QUERYMEND_TEST_{name}"] = value
        os.environ["QUERYMEND_TEST_ENGINES"] += f",{name.lower()}"


def stores_up(text):
    for name, variable in {"chroma": "QUERYMEND_TEST_CHROMA", "postgres": "QUERYMEND_TEST_STORE", "password": "QUERYMEND_STORE_PASSWORD"}.items():
        os.environ[variable] = re.search(rf"{name}=(\S+)", text)[1]


def variable(name, pattern=r"(\S+)\s*\Z"):
    def found(text):
        os.environ[name] = re.search(pattern, text)[1]
    return found


def script(name, *arguments):
    return [str(ROOT / "scripts" / f"{name}.sh"), *arguments]


def tool_jobs(graph, crates):
    """Downloads of what tests use beside servers; gives the job of each."""
    found = {"minilm": variable("QUERYMEND_MINILM"), "faketime": variable("QUERYMEND_FAKETIME")}
    wanted = sorted({name for crate in crates for name in TOOLS.get(crate, ())})
    return {
        name: graph.add(f"fetch {name}", script(name, "fetch"), after=BEFORE_BUILD, slots=0, optional=True, found=found.get(name))
        for name in wanted
    }


def server_jobs(graph, crates):
    """Servers, fetched and started; gives the job of each."""
    engines = [name for name in os.environ.get("QUERYMEND_TEST_ENGINES", "postgres,mysql,spark,trino").split(",") if name not in ("sqlite", "files")]
    wanted = {name for crate in crates for name in SERVERS.get(crate, ())}
    up = {
        "stores": (script("stores", "up"), stores_up),
        "model": (script("model_server", "up"), variable("QUERYMEND_MODEL_URL", r"url=(\S+)")),
        **{name: (script("engines", "up", name), exported) for name in engines},
    }
    # Grows with each server that is there: tests leave out the others.
    os.environ["QUERYMEND_TEST_ENGINES"] = "sqlite,files"
    optional = lambda name: name in OPTIONAL or "CI" not in os.environ
    return {
        name: graph.add(f"server {name}", command, after=BEFORE_BUILD, slots=0, optional=optional(name), found=found)
        for name, (command, found) in up.items() if name in wanted
    }


def built_with_lints():
    """The environment in which cargo compiles with Clippy's own driver, which lints and compiles in one go: `cargo clippy` would
    first check all dependencies again without making code of them."""
    return {
        "RUSTC_WORKSPACE_WRAPPER": shutil.which("clippy-driver"), "CLIPPY_ARGS": "-Dwarnings__CLIPPY_HACKERY__",
        # Documentation and tests of examples go the same way.
        "RUSTDOC": str(ROOT / "scripts/rustdoc.sh"),
    }


def test_jobs(graph, crates, servers, tools, whole):
    """Adds a job for each test binary, once they are built, and for what else needs them."""
    def found(text):
        binaries = []
        for line in text.splitlines():
            built = json.loads(line) if line.startswith("{") else {}
            if built.get("executable") and built["profile"]["test"] and built["target"]["kind"][0] in ("lib", "bin", "test"):
                crate = Path(built["manifest_path"]).parent
                kind = "unit" if built["target"]["kind"][0] in ("lib", "bin") else built["target"]["name"]
                binaries.append((crate, kind, built["executable"]))
        binaries.sort(key=lambda one: (one[1] in ALONE, ORDER.index(one[0].name), one[1] != "unit"))
        before = []
        for crate, kind, program in binaries:
            if crate.name not in crates:
                continue
            needs = [servers[name] for name in SERVERS.get(crate.name, ()) if name in servers]
            needs += [tools[name] for name in TOOLS.get(crate.name, ())]
            if kind == "unit" and crate.name != "engine":
                needs = []
            before.append(graph.add(f"{crate.name} {kind}", [program], ["tests built", *needs], before if kind in ALONE else (), cwd=crate))
        if whole:
            count = "python3 scripts/instructions.py --profile debug || [ $? = 3 ]"
            graph.add("instructions", ["bash", "-c", count], ["tests built", "fetch valgrind"])
            graph.add("documentation", ["cargo", "test", "--workspace", "--doc", "--locked"], ["tests built"], env=built_with_lints())
    return found


def main():
    asked = argparse.ArgumentParser(prog="./test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--full", action="store_true", help="run the largest suites whole")
    asked.add_argument("--crates", metavar="NAMES", help=f"only these, with commas between them: {', '.join(ORDER)}")
    asked = asked.parse_args()
    crates = asked.crates.split(",") if asked.crates else ORDER
    for name in crates:
        if name not in ORDER:
            sys.exit(f"error: there is no crate `{name}`; hint: they are {', '.join(ORDER)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    slowdown = calibrate()
    os.environ["QUERYMEND_TEST_SLOWDOWN"] = f"{slowdown:.2f}"
    # Most tests of servers wait.
    os.environ.setdefault("RUST_TEST_THREADS", "4")
    if asked.full:
        os.environ["QUERYMEND_TEST_FULL"] = "1"
    # What is compiled once needs nothing kept for the next time; a cache of compiled crates is used where it is installed.
    if "CI" in os.environ:
        os.environ.setdefault("CARGO_INCREMENTAL", "0")
    if shutil.which("sccache") and "RUSTC_WRAPPER" not in os.environ:
        os.environ |= {"RUSTC_WRAPPER": "sccache", "CARGO_INCREMENTAL": "0"}
    print(f"this machine is {slowdown:.1f} times slower than a quiet one with two cores", flush=True)

    graph = Graph(JOB_TIMEOUT * slowdown * (4 if asked.full else 1))
    whole = asked.crates is None
    graph.add("crates", ["timeout", "--kill-after=10", os.environ.get("QUERYMEND_FETCH_TIMEOUT", "900"), "cargo", "fetch", "--locked"], slots=0)
    graph.add("page", script("page"), slots=0)
    graph.add("format", ["cargo", "fmt", "--all", "--check"], after=BEFORE_BUILD, slots=0)
    graph.add("licences", ["python3", str(ROOT / "scripts/supply_chain.py")], ["crates"], slots=0)
    servers, tools = server_jobs(graph, crates), tool_jobs(graph, crates)
    build = ["cargo", "test", "--workspace", "--all-targets", "--locked", "--no-run", "--message-format=json-render-diagnostics"]
    graph.add("tests built", build, BEFORE_BUILD, slots=SLOTS, env=built_with_lints(), found=test_jobs(graph, crates, servers, tools, whole))
    if whole:
        graph.add("fetch valgrind", ["python3", str(ROOT / "scripts/instructions.py"), "--fetch"], after=BEFORE_BUILD, slots=0, optional=True)
        graph.add("fetch browser", script("page_tests", "fetch"), after=BEFORE_BUILD, slots=0, optional="CI" not in os.environ)
        graph.add("page check", script("page_tests", "check"), ["page"], slots=0)
        graph.add("browser", script("page_tests", "run"), ["tests built", "fetch browser"], env={"QUERYMEND_BIN": str(TARGET / "debug/querymend")})
    try:
        graph.run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        graph.stop()
        for name in ("engines", "stores", "model_server"):
            subprocess.run(script(name, "down"), stdout=subprocess.DEVNULL, check=False)
    sys.exit(summary(graph))


def summary(graph):
    """Prints what each job took and what was left out; gives the exit code."""
    passed = sum(int(count) for job in graph.jobs if job.log.exists() for count in re.findall(r"^test result: .* (\d+) passed", job.output(), re.M))
    failed = [job for job in graph.jobs if job.state != "ok" and not job.optional]
    table = "".join(f"| {job.name} | {job.seconds:.1f} | {job.processor:.1f} | {job.state} |\n" for job in graph.jobs)
    total = f"| all, side by side | {time.monotonic() - graph.begun:.1f} | {sum(job.processor for job in graph.jobs):.1f} | |\n"
    table = f"| job | seconds | seconds of processor | |\n|---|---:|---:|---|\n{table}{total}"
    (LOGS / "times.md").write_text(table)
    print(f"\n{table}")
    for job in graph.jobs:
        if job.optional and job.state != "ok":
            why = re.findall(r"^error: .*", job.output(), re.M) if job.log.exists() else []
            print(f"left out: {job.name}: {why[-1] if why else job.state}")
    print(f"{passed} passed, {len(failed)} failed" + "".join(f"\nfailed: {job.name}" for job in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    main()
