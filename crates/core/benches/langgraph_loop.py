"""The loop's own cost beside LangGraph with the same five nodes, in one run on one machine.

    python3 -m venv VENV && VENV/bin/pip install langgraph
    VENV/bin/python crates/core/benches/langgraph_loop.py

Both answer the same question 2,000 times on the same small SQLite file, with a model that answers at once. The first draft
names a column that no table of the query has; the second is right.
"""

import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypedDict

HERE = Path(__file__).resolve().parent
QUESTIONS = 2_000
ASKED = "How much did each customer order in all?"
FIRST = "SELECT c.name, sum(o.total), rain FROM customers c JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.name"
SECOND = "SELECT c.name, sum(o.total) FROM customers c JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.name"


class State(TypedDict, total=False):
    question: str
    schema: str
    messages: list
    sql: str
    issues: list
    error: str | None
    rows: list | None
    attempt: int
    max_attempts: int
    previous: list


def graph_of(database, schema):
    from langgraph.graph import END, START, StateGraph

    def link(state):
        prompt = f"{schema}\n\nQuestion: {state['question']}"
        return {"schema": schema, "messages": [("user", prompt)], "attempt": 1, "previous": []}

    def generate(state):
        # The model: it has both drafts ready.
        sql = FIRST if len(state["messages"]) == 1 else SECOND
        return {"sql": sql, "previous": state["previous"] + [sql]}

    def critic(state):
        harmless = re.match(r"\s*(SELECT|WITH)\b", state["sql"], re.IGNORECASE) and ";" not in state["sql"]
        return {"issues": [] if harmless else ["only one SELECT is allowed"]}

    def execute(state):
        try:
            return {"rows": database.execute(state["sql"]).fetchall(), "error": None}
        except sqlite3.Error as error:
            return {"rows": None, "error": str(error)}

    def retry(state):
        told = state["issues"][0] if state["issues"] else state["error"]
        messages = state["messages"] + [("assistant", state["sql"]), ("user", f"The query failed: {told}.")]
        return {"attempt": state["attempt"] + 1, "messages": messages}

    def again(state):
        repeated = state["sql"] in state["previous"][:-1]
        return END if repeated or state["attempt"] >= state["max_attempts"] else "retry"

    graph = StateGraph(State)
    for node in (link, generate, critic, execute, retry):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "link")
    graph.add_edge("link", "generate")
    graph.add_edge("generate", "critic")
    graph.add_conditional_edges("critic", lambda s: again(s) if s["issues"] else "execute")
    graph.add_conditional_edges("execute", lambda s: END if s["error"] is None else again(s))
    graph.add_edge("retry", "generate")
    return graph.compile()


def langgraph_us():
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "shop.db")
        database.executescript((HERE / "shop.sql").read_text())
        schema = "\n".join(sql for (sql,) in database.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))
        graph = graph_of(database, schema)
        times = []
        for _ in range(QUESTIONS):
            began = time.perf_counter()
            state = graph.invoke({"question": ASKED, "max_attempts": 3})
            times.append(time.perf_counter() - began)
            assert len(state["rows"]) == 3 and state["attempt"] == 2, state
        database.close()
        return statistics.median(times) * 1e6


def measure(bench):
    """What the bench prints, and microseconds by name: a question (`ours`), its database calls, SQLite alone, in a runtime, LangGraph."""
    ran = subprocess.run(bench, cwd=HERE, text=True, stdout=subprocess.PIPE, check=False)
    if ran.returncode:
        sys.exit("the Rust half did not run")
    rows = {
        "ours": "Querymend, on the calling thread",
        "database": "of it: database calls",
        "sqlite": "the same query by SQLite alone",
        "in_runtime": "Querymend, in a tokio runtime",
    }
    figures = {name: float(re.search(rf"\| {row}[^|]*\| ([\d.]+)", ran.stdout)[1]) for name, row in rows.items()}
    try:
        figures["langgraph"] = langgraph_us()
    except ImportError:
        sys.exit("hint: pip install langgraph")
    return ran.stdout.strip(), figures


def main():
    from importlib.metadata import version

    told, figures = measure(["cargo", "bench", "-q", "-p", "querymend", "--bench", "loop"])
    theirs = figures["langgraph"]
    print(told)
    print(f"| LangGraph {version('langgraph')}, the same five nodes, Python {sys.version.split()[0]} | {theirs:.1f} |")
    print(f"\nLangGraph takes {theirs / figures['ours']:.0f} times as long as Querymend on the calling thread.")
    print(f"\nLangGraph takes {theirs / figures['in_runtime']:.0f} times as long as Querymend in a tokio runtime.")


if __name__ == "__main__":
    main()
