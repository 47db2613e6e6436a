#!/usr/bin/env python3
"""Runs all checks that must pass before a change is merged; invoked as `./test`.

    ./test                    every test; a representative part of the largest suites
    ./test --full             every test, including the full largest suites
    ./test --crates sql,core  only the tests of these crates, and only the servers that they need

The work is a graph of jobs: downloads, servers, the build, and the test binaries. A job starts when its dependencies are
done and a slot is free; downloads and servers run in parallel with the compiler. The output of a job is printed if it fails,
and stored in target/test-logs; a table at the end shows the time of every job. If CI is set, a missing server is a failure,
except for those that a machine may be unable to run (OPTIONAL).

Three jobs are deterministic functions of their input files: the checks of the page, the documentation, and the instruction
counts. They are skipped while these files have the hash of their last successful run (target/passed), except with --full or
if CI is set.

Environment: QUERYMEND_TEST_ENGINES (databases, comma-separated), QUERYMEND_FETCH_TIMEOUT (timeout of a download in seconds),
QUERYMEND_TEST_SLOWDOWN (minimum factor by which timeouts are scaled).
"""
import argparse
import fcntl
import hashlib
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
#: Fingerprints of the last successful runs, one file per job.
PASSED = TARGET / "passed"
#: Maximum number of concurrent jobs: one more than the processors of a small machine, since server
#: tests are often idle.
SLOTS = 3
#: Duration of `calibrate` in seconds on an idle machine with two cores.
REFERENCE_SECONDS = 0.14
#: Timeout of a job in seconds: less than the CI timeout of the whole run, so that the hanging job
#: is reported.
JOB_TIMEOUT, FULL_JOB_TIMEOUT = 4000, 14400
#: Scripts of the database servers.
ENGINE_SCRIPTS = {path.stem: path.read_text() for path in sorted((ROOT / "scripts/engines").glob("*.sh"))}
#: Servers that the tests of each crate need.
SERVERS = {
    "core": ["postgres"], "engine": [*ENGINE_SCRIPTS], "memory": ["stores"], "model": ["model"],
    "server": ["stores"], "cli": ["model"],
}
#: Databases tested by default (see QUERYMEND_TEST_ENGINES). The first two need no server.
ENGINES = ["sqlite", "files", *(name for name, text in ENGINE_SCRIPTS.items() if "\n# Started on request only.\n" not in text)]
#: Other programs and files that the tests of each crate need: scripts with a `fetch` command.
TOOLS = {
    "engine": ["datafusion_check"], "model": ["minilm"], "server": ["grpc_client", "mcp_client", "telemetry", "schemathesis"],
    "cli": ["faketime", "mcp_client"],
}
#: Trino requires a Maven repository, and the packaged model server a processor with AMX.
OPTIONAL = {"trino", "model"}
#: Test binaries that stop shared servers: they run last, one at a time.
ALONE = ["restart"]
#: Downloads that the build depends on; others start later.
BEFORE_BUILD = ["crates", "page"]
#: Order of the tests: pure crates first, for early feedback, then the slowest.
ORDER = ["testing", "sql", "net", "eval", "examples", "core", "engine", "cli", "model", "memory", "server"]
#: Inputs of the page checks, apart from Node.js itself. The npm lock file represents the packages.
PAGE_FILES = ["web", "web/node_modules/.package-lock.json", "scripts/page_tests.sh", "scripts/node.sh", "scripts/servers.sh"]
#: Inputs of the documentation and its examples.
DOCUMENTED_FILES = [
    "Cargo.toml", "Cargo.lock", ".cargo", "clippy.toml", "rust-toolchain.toml", "crates", "models", "docs", "README.md", "web/dist",
    "scripts/rustdoc.sh",
]
#: Inputs of the instruction counts, apart from the binary.
COUNTED_FILES = ["scripts/instructions.py", "crates/cli/benches", "crates/sql/tests/pages/shop.sql"]
#: Folders that are not inputs, unless named explicitly.
GENERATED = {"node_modules", "dist", "shots", "target", "__pycache__"}


def work(_):
    state = 1
    for _ in range(1_000_000):
        state = (state * 6364136223846793005 + 1) & 0xFFFFFFFFFFFFFFFF
    return state


def calibrate():
    """Returns the slowdown of this machine relative to a quiet one with two cores, at least 1."""
    with Pool(2) as pool:
        pool.map(abs, [1, 1])
        begun = time.monotonic()
        pool.map(work, [0, 0], chunksize=1)
        return max(1.0, (time.monotonic() - begun) / REFERENCE_SECONDS)


def files_below(path):
    """Returns a file, or all files below a folder in a fixed order, without generated ones."""
    if not path.is_dir():
        return [path] if path.exists() else []
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(set(folders) - GENERATED)
        found += [Path(folder, name) for name in sorted(names)]
    return found


def fingerprint(paths, versions):
    """Returns a function that hashes files by name and content, version output of commands, and this
    script.
    """
    def compute():
        digest = hashlib.blake2b(digest_size=32)
        for path in [Path(__file__).resolve(), *(file for path in paths for file in files_below(ROOT / path))]:
            try:
                content = hashlib.blake2b(path.read_bytes()).hexdigest()
            except OSError as error:  # a deleted temporary file, or a broken link
                content = str(error)
            digest.update(f"{os.path.relpath(path, ROOT)}\0{content}\n".encode())
        for command in versions:
            ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=True) if shutil.which(command[0]) else None
            digest.update(ran.stdout if ran else b"missing")
        for name in sorted(name for name in os.environ if name.startswith(("RUST", "CARGO", "NODE_"))):
            if name not in ("RUST_TEST_THREADS", "CARGO_TARGET_DIR"):
                digest.update(f"{name}={os.environ[name]}\n".encode())
        return digest.hexdigest()
    return compute


class Job:
    """A command. It starts after the jobs that it `needs` have succeeded and those that it comes `after` have ended.

    An `optional` job may fail; jobs that need it run anyway, unless they are `strict`. `slots` is the number of SLOTS that it
    occupies. `on_success` receives its standard output. A job with a `fingerprint` function is skipped while that returns the
    value of the last successful run.
    """

    def __init__(
        self, name, command, needs=(), after=(), slots=1, cwd=ROOT, optional=False, strict=False, on_success=None, env=None, fingerprint=None
    ):
        self.name, self.command, self.needs, self.after = name, command, list(needs), list(after)
        self.slots, self.cwd, self.optional, self.strict, self.on_success, self.env = slots, cwd, optional, strict, on_success, env or {}
        self.state, self.seconds, self.cpu_seconds, self.process = "waiting", 0.0, 0.0, None
        self.log = LOGS / f"{re.sub('[^a-z0-9_]+', '-', name)}.log"
        self.fingerprint, self.is_unchanged = fingerprint, False

    def run_if_changed(self, timeout):
        """Runs the command, unless it already passed with the same inputs."""
        if not self.fingerprint:
            return self.run(timeout)
        # Hash before the run: a file changed while the job runs causes another run.
        inputs, passed = self.fingerprint(), PASSED / self.log.stem
        self.is_unchanged = passed.exists() and passed.read_text() == inputs
        if self.is_unchanged:
            return True, ""
        passed.unlink(missing_ok=True)
        succeeded, printed = self.run(timeout)
        if succeeded:
            PASSED.mkdir(exist_ok=True)
            passed.write_text(inputs)
        return succeeded, printed

    def run(self, timeout):
        """Runs the command; returns whether it succeeded, and its output if `on_success` is set."""
        begun = time.monotonic()
        out = self.log.with_suffix(".out") if self.on_success else self.log
        with open(out, "a+") as stdout, open(self.log, "a") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=stdout, stderr=log, start_new_session=True,
                env={**os.environ, **self.env})
            watchdog = threading.Timer(timeout, stop, [[self.process.pid]])
            watchdog.daemon = True
            watchdog.start()
            _, status, usage = os.wait4(self.process.pid, 0)
            watchdog.cancel()
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds, self.cpu_seconds = time.monotonic() - begun, usage.ru_utime + usage.ru_stime
            is_late = self.seconds >= timeout
            if is_late:
                log.write(f"\nerror: it did not end within {timeout} s and was stopped\n")
            stdout.seek(0)
            return self.process.returncode == 0 and not is_late, stdout.read() if self.on_success else ""

    def output(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def members(sessions):
    """Returns the processes of sessions: each job has its own session, in which `timeout` creates
    further process groups.
    """
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields and fields[0] != "Z" and int(fields[3]) in sessions:
            found.append(int(stat.parent.name))
    return found


def stop(sessions):
    """Terminates all processes of sessions: SIGTERM, then SIGKILL after ten seconds."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        for pid in members(sessions):
            try:
                os.kill(pid, kind)
            except (ProcessLookupError, PermissionError):
                pass
        for _ in range(100):
            if not members(sessions):
                return
            time.sleep(0.1)


class Graph:
    """Job graph and its event loop. Only the thread of the loop changes states and the environment."""

    def __init__(self, timeout):
        self.jobs, self.timeout, self.ended, self.begun = {}, timeout, queue.Queue(), time.monotonic()

    def add(self, name, *args, **options):
        self.jobs[name] = Job(name, *args, **options)
        return name

    def of_state(self, *states):
        return [job for job in self.jobs.values() if job.state in states]

    def run(self):
        """Runs all jobs; ready jobs start in the order in which they were added."""
        while True:
            while self.start_ready():
                pass
            if not self.of_state("running"):
                waiting = [job.name for job in self.of_state("waiting")]
                if waiting:
                    raise RuntimeError(f"jobs wait for each other: {', '.join(waiting)}")
                return
            self.finish(*self.ended.get())

    def start_ready(self):
        """Starts or skips the first ready job; returns whether there was one."""
        free = SLOTS - sum(job.slots for job in self.of_state("running"))
        for job in self.of_state("waiting"):
            needed = [self.jobs[name] for name in job.needs]
            broken = [one for one in needed if one.state in ("failed", "skipped") and (job.strict or not one.optional)]
            if broken:
                job.state, job.optional = "skipped", all(one.optional for one in broken)
                print(f"== {job.name}: skipped without {', '.join(one.name for one in broken)}", flush=True)
                return True
            before = needed + [self.jobs[name] for name in job.after]
            if job.slots <= max(free, 0) and all(one.state in ("ok", "failed", "skipped") for one in before):
                job.state = "running"
                threading.Thread(target=self.deliver, args=(job,), daemon=True).start()
                return True
        return False

    def deliver(self, job):
        """Runs a job in its own thread and passes the result to the loop."""
        succeeded, printed, error = False, "", None
        try:
            succeeded, printed = job.run_if_changed(self.timeout)
        except Exception as raised:  # a job that cannot be started counts as failed
            error = raised
        finally:
            self.ended.put((job, succeeded, printed, error))

    def finish(self, job, succeeded, printed, error):
        if succeeded and job.on_success:
            try:
                job.on_success(printed)
            except Exception as raised:  # unexpected output
                succeeded, error = False, raised
        job.state = "ok" if succeeded else "failed"
        outcome = "unchanged since it passed" if job.is_unchanged else f"{job.state} in {job.seconds:.1f} s"
        print(f"== {job.name}: {outcome} (at {time.monotonic() - self.begun:.0f} s)", flush=True)
        if succeeded:
            for line in job.output().splitlines():
                if re.match(r"test result: |ℹ (pass|fail|cancelled) ", line):
                    print(f"   {line}", flush=True)
        else:
            print(job.output() + (f"error: {error!r}" if error else ""), flush=True)

    def stop(self):
        running = self.of_state("running")
        stop([job.process.pid for job in running if job.process])
        for job in running:
            print(f"== {job.name}: stopped\n{job.output()[-2000:]}", flush=True)


def export_engine(text):
    """Exports the URL of a database server, which a script prints as `export
    QUERYMEND_TEST_NAME='address'`.
    """
    for name, value in re.findall(r"^export QUERYMEND_TEST_(\w+)='(.*)'$", text, re.M):
        os.environ[f"QUERYMEND_TEST_{name}"] = value
        os.environ["QUERYMEND_TEST_ENGINES"] += f",{name.lower()}"


def export_stores(text):
    for name, variable in {"chroma": "QUERYMEND_TEST_CHROMA", "postgres": "QUERYMEND_TEST_STORE", "password": "QUERYMEND_STORE_PASSWORD"}.items():
        os.environ[variable] = re.search(rf"{name}=(\S+)", text)[1]


def export_match(variable, pattern=r"(?m)^(.+)$\s*\Z"):
    """Returns a function that exports the match of a pattern, by default the last line."""
    def export(text):
        os.environ[variable] = re.search(pattern, text)[1]
    return export


def script(name, *arguments):
    return [str(ROOT / "scripts" / f"{name}.sh"), *arguments]


def add_tools(graph, crates):
    """Adds downloads of test tools; returns the job of each."""
    exports = {"minilm": export_match("QUERYMEND_MINILM"), "faketime": export_match("QUERYMEND_FAKETIME")}
    wanted = sorted({name for crate in crates for name in TOOLS.get(crate, ())})
    return {
        name: graph.add(f"fetch {name}", script(name, "fetch"), after=BEFORE_BUILD, slots=0, optional=True, on_success=exports.get(name))
        for name in wanted
    }


def add_servers(graph, crates):
    """Adds servers; returns the job of each."""
    engines = [name.strip() for name in os.environ.get("QUERYMEND_TEST_ENGINES", "").split(",") if name.strip()] or ENGINES
    known = ["sqlite", "files", *ENGINE_SCRIPTS]
    for name in engines:
        if name not in known:
            sys.exit(f"error: QUERYMEND_TEST_ENGINES names `{name}`, which is no database of the tests; hint: they are {', '.join(known)}")
    # Contains the running servers only: tests skip the others. An empty list would mean all.
    os.environ["QUERYMEND_TEST_ENGINES"] = ",".join([name for name in ("sqlite", "files") if name in engines] or ["none"])
    up = {
        "stores": (script("stores", "up"), export_stores),
        "model": (script("model_server", "up"), export_match("QUERYMEND_MODEL_URL", r"url=(\S+)")),
        **{name: (script("engines", "up", name), export_engine) for name in engines if name not in ("sqlite", "files")},
    }
    wanted = {name for crate in crates for name in SERVERS.get(crate, ())}
    is_optional = lambda name: name in OPTIONAL or "CI" not in os.environ
    return {
        name: graph.add(f"start {name}", command, after=BEFORE_BUILD, slots=0, optional=is_optional(name), on_success=export)
        for name, (command, export) in up.items() if name in wanted
    }


def stop_servers(servers):
    for name in {{"stores": "stores", "model": "model_server"}.get(name, "engines") for name in servers}:
        subprocess.run(script(name, "down"), stdout=subprocess.DEVNULL, check=False)


def lint_environment():
    """Returns the environment in which cargo compiles with Clippy's driver, which lints and generates code in one pass.

    `cargo clippy` would check all dependencies again without generating code. The driver disables MIR optimizations, so
    instruction counts differ by about 1 % from those of a plain debug build. rustdoc.sh does the same for documentation.
    """
    return {
        "RUSTC_WORKSPACE_WRAPPER": shutil.which("clippy-driver"), "CLIPPY_ARGS": "-Dwarnings__CLIPPY_HACKERY__",
        "RUSTDOC": str(ROOT / "scripts/rustdoc.sh"),
    }


def add_tests(graph, crates, servers, tools, runs_everything, is_repeated):
    """Returns a function that adds a job per test binary reported by cargo, and the other jobs that
    need the build.
    """
    def add(text):
        artifacts = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        binaries, program = [], None
        for built in artifacts:
            if not built.get("executable"):
                continue
            kind = built["target"]["kind"][0]
            if kind == "bin" and not built["profile"]["test"]:
                program = built["executable"]
            elif kind in ("lib", "bin", "test") and built["profile"]["test"]:
                name = built["target"]["name"] if kind == "test" else "unit"
                binaries.append((Path(built["manifest_path"]).parent, name, built["executable"]))
        missing = set(crates) - {crate.name for crate, *_ in binaries}
        if missing:
            raise RuntimeError(f"no tests were built for {', '.join(sorted(missing))}")
        binaries.sort(key=lambda one: (one[1] in ALONE, ORDER.index(one[0].name), one[1] != "unit"))
        if runs_everything:
            # The longest job.
            graph.add("browser", script("page_tests", "run"), ["tests built", "fetch browser"], strict=True, env={"QUERYMEND_BIN": program})
        before = []
        for crate, kind, binary in binaries:
            if crate.name not in crates:
                continue
            if runs_everything and "documentation" not in graph.jobs and ORDER.index(crate.name) > ORDER.index("core"):
                add_checks(graph, program, is_repeated)
            needs = [servers[name] for name in SERVERS.get(crate.name, ()) if name in servers]
            needs += [tools[name] for name in TOOLS.get(crate.name, ())]
            if kind == "unit" and crate.name != "engine":
                needs = []
            if crate.name == "examples":
                # `cargo test --all-targets` builds examples as test programs, not as the programs that the test runs. With the
                # whole workspace and the profile of the tests, the libraries are those that are built already.
                build = ["cargo", "build", "--locked", "--workspace", "--examples", "--profile", "test"]
                needs.append(graph.add("examples built", build, ["tests built"], env=lint_environment()))
            before.append(graph.add(f"{crate.name} {kind}", [binary], ["tests built", *needs], before if kind in ALONE else (), cwd=crate))
    return add


def add_checks(graph, program, is_repeated):
    """Adds the instruction counts and the documentation: after the pure tests, but early enough not to
    delay the end.
    """
    count = "python3 scripts/instructions.py --profile debug || [ $? = 3 ]"
    counted = fingerprint([program, *COUNTED_FILES], [["valgrind", "--version"]])
    graph.add("instructions", ["bash", "-c", count], ["tests built", "fetch valgrind"], fingerprint=None if is_repeated else counted)
    document = ["cargo", "test", "--workspace", "--doc", "--locked", "--no-fail-fast"]
    documented = fingerprint(DOCUMENTED_FILES, [["rustc", "-vV"]])
    graph.add("documentation", document, ["tests built"], env=lint_environment(), fingerprint=None if is_repeated else documented)


def summarize(graph):
    """Prints the time of each job and what was skipped; returns the exit code."""
    jobs = graph.jobs.values()
    passed = sum(int(count) for job in jobs for count in re.findall(r"^(?:test result: .* |ℹ pass )(\d+)(?: passed|$)", job.output(), re.M))
    failed = [job for job in jobs if job.state != "ok" and not job.optional]
    outcome = lambda job: "unchanged" if job.is_unchanged else job.state
    rows = "".join(f"| {job.name} | {job.seconds:.1f} | {job.cpu_seconds:.1f} | {outcome(job)} |\n" for job in jobs)
    total = f"| wall clock | {time.monotonic() - graph.begun:.1f} | {sum(job.cpu_seconds for job in jobs):.1f} | |\n"
    table = f"| job | seconds | CPU seconds | |\n|---|---:|---:|---|\n{rows}{total}"
    (LOGS / "times.md").write_text(table)
    print(f"\n{table}")
    for job in jobs:
        if job.optional and job.state != "ok":
            errors = re.findall(r"^error: .*", job.output(), re.M)
            print(f"skipped: {job.name}: {'; '.join(errors) or job.state}")
        if job.is_unchanged:
            print(f"unchanged since it passed: {job.name}")
    print(f"{passed} passed, {len(failed)} failed" + "".join(f"\nfailed: {job.name}" for job in failed))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(prog="./test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="run the largest suites in full")
    parser.add_argument("--crates", metavar="NAMES", help=f"crates to test, comma-separated: {', '.join(ORDER)}")
    args = parser.parse_args()
    crates = args.crates.split(",") if args.crates else ORDER
    for name in crates:
        if name not in ORDER:
            sys.exit(f"error: there is no crate `{name}`; hint: they are {', '.join(ORDER)}")
    if unlisted := {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")} - set(ORDER):
        sys.exit(f"error: scripts/run_tests.py does not know {', '.join(unlisted)}; hint: add it to ORDER")
    TARGET.mkdir(parents=True, exist_ok=True)
    lock = open(TARGET / "test.lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("error: another ./test runs in this checkout; hint: wait for it, or use another clone")
    for kind in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(kind, lambda number, _: sys.exit(128 + number))
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir()

    slowdown = max(calibrate(), float(os.environ.get("QUERYMEND_TEST_SLOWDOWN") or 1))
    os.environ["QUERYMEND_TEST_SLOWDOWN"] = f"{slowdown:.2f}"
    # Server tests are mostly idle.
    os.environ.setdefault("RUST_TEST_THREADS", "4")
    is_full = args.full or os.environ.get("QUERYMEND_TEST_FULL", "0") not in ("", "0")
    os.environ["QUERYMEND_TEST_FULL"] = "1" if is_full else "0"
    # CI builds are not incremental. Use a compiler cache if one is installed.
    if "CI" in os.environ:
        os.environ.setdefault("CARGO_INCREMENTAL", "0")
    if shutil.which("sccache") and "RUSTC_WRAPPER" not in os.environ:
        os.environ.update(RUSTC_WRAPPER="sccache", CARGO_INCREMENTAL="0")
    print(f"slowdown {slowdown:.1f} (1: a quiet machine with two cores)", flush=True)

    runs_everything = args.crates is None
    is_repeated = is_full or "CI" in os.environ
    graph = Graph(FULL_JOB_TIMEOUT if is_full else JOB_TIMEOUT)
    fetch_timeout = os.environ.get("QUERYMEND_FETCH_TIMEOUT", "900")
    graph.add("crates", ["timeout", "--kill-after=10", fetch_timeout, "cargo", "fetch", "--locked"], slots=0)
    graph.add("page", script("page"), slots=0)
    build = ["cargo", "test", "--workspace", "--all-targets", "--locked", "--no-run", "--message-format=json-render-diagnostics"]
    graph.add("tests built", build, BEFORE_BUILD, slots=SLOTS, env=lint_environment())
    graph.add("format", ["cargo", "fmt", "--all", "--check"], after=BEFORE_BUILD, slots=0)
    for check in ("layout", "language", "links", "requirements"):
        graph.add(check, ["python3", str(ROOT / f"scripts/{check}.py")], slots=0)
    graph.add("licences", ["python3", str(ROOT / "scripts/supply_chain.py")], ["crates"], slots=0)
    servers, tools = add_servers(graph, crates), add_tools(graph, crates)
    graph.jobs["tests built"].on_success = add_tests(graph, crates, servers, tools, runs_everything, is_repeated)
    if runs_everything:
        graph.add("fetch valgrind", ["python3", str(ROOT / "scripts/instructions.py"), "--fetch"], after=BEFORE_BUILD, slots=0, optional=True)
        graph.add("fetch browser", script("page_tests", "fetch"), after=BEFORE_BUILD, slots=0, optional="CI" not in os.environ)
        checked = None if is_repeated else fingerprint(PAGE_FILES, [["node", "--version"]])
        graph.add("page check", script("page_tests", "check"), ["page"], BEFORE_BUILD, slots=0, fingerprint=checked)
    code = 130
    try:
        graph.run()
        code = summarize(graph)
    except KeyboardInterrupt:
        pass
    finally:
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(kind, signal.SIG_IGN)
        graph.stop()
        stop_servers(servers)
    sys.exit(code)


if __name__ == "__main__":
    main()
