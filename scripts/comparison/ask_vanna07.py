"""Asks Vanna 0.7.x as its documentation recommends to a new user: ChromaDB and an OpenAI-compatible model, trained on the DDL
of the database, then `ask`. Reads lines of `{"id", "db", "question"}` and writes `{"id", "sql", "error"}`.

`--auto-train` keeps the default of storing every successful query as an example for later questions. Charts are disabled,
because they would cost additional model calls that do not affect the answer.
"""
import contextlib, json, os, sqlite3, sys, tempfile

import chromadb
from openai import OpenAI
from vanna.chromadb import ChromaDB_VectorStore
from vanna.openai import OpenAI_Chat

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from minilm import MiniLm


class Embedder(chromadb.EmbeddingFunction):
    def __init__(self):
        self.model = MiniLm(os.environ["MINILM"])

    def __call__(self, input):
        return [self.model.embed(text) for text in input]


class Vanna(ChromaDB_VectorStore, OpenAI_Chat):
    def __init__(self, config):
        ChromaDB_VectorStore.__init__(self, config=config)
        OpenAI_Chat.__init__(self, client=OpenAI(api_key="none", base_url=os.environ["MODEL_URL"] + "/v1"), config=config)


def trained(db, embedder):
    folder = tempfile.mkdtemp(prefix="vanna")
    vn = Vanna({"model": "qwen", "embedding_function": embedder, "path": folder})
    vn.connect_to_sqlite(db)
    con = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    for (ddl,) in con.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
        vn.train(ddl=ddl)
    con.close()
    run = vn.run_sql

    # Record executed queries and their results: `ask` itself only prints errors.
    def watched(sql):
        vn.ran = [sql, "still running"]
        try:
            rows = run(sql)
        except BaseException as e:
            vn.ran[1] = str(e)
            raise
        vn.ran[1] = None
        return rows

    vn.run_sql = watched
    return vn


def main():
    embedder, known = Embedder(), {}
    for line in sys.stdin:
        item = json.loads(line)
        with contextlib.redirect_stdout(sys.stderr):
            vn = known[item["db"]] = known.get(item["db"]) or trained(item["db"], embedder)
            vn.ran = [None, "no query was run"]
            try:
                vn.ask(item["question"], print_results=False, visualize=False, auto_train="--auto-train" in sys.argv)
            except Exception as e:
                vn.ran[1] = vn.ran[1] or f"{type(e).__name__}: {e}"
        sql, error = vn.ran
        print(json.dumps({"id": item["id"], "sql": sql, "error": error}), flush=True)


main()
