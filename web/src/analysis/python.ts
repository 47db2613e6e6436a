import { limits } from "./limits";

/**
 * What Python does around the code of a model: it turns the server's replies into tables, runs the code, and turns `result` into
 * plain values. It ends with the function that does all of it, and from then on the ways out to JavaScript are closed.
 */
export const python = `
import datetime, io, json, math, sys, traceback
import numpy as np
import pandas as pd

MOST_ROWS = ${limits.resultRows}
MOST_PRINTED = ${limits.printed}
LARGEST_EXACT = 2**53 - 1


class Printed(io.TextIOBase):
    """What the code prints, as far as anyone would read it."""

    def __init__(self):
        self.parts, self.left = [], MOST_PRINTED

    def write(self, text):
        self.parts.append(text[: self.left])
        self.left -= len(self.parts[-1])
        return len(text)

    def text(self):
        return "".join(self.parts)


def table(reply):
    rows = json.loads(reply)["rows"]
    return pd.DataFrame(rows["rows"], columns=rows["columns"]), bool(rows["truncated"])


def cell(value):
    """A value as JSON can carry it. JavaScript loses digits of large whole numbers, so that those go as text."""
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value) if abs(int(value)) <= LARGEST_EXACT else str(int(value))
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, datetime.datetime):
        midnight = value.tzinfo is None and value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    return str(value)[:10_000]


def frame(value):
    if isinstance(value, pd.DataFrame):
        pass
    elif isinstance(value, pd.Series):
        value = value.to_frame(name="value" if value.name is None else value.name)
    elif isinstance(value, dict):
        value = pd.DataFrame({"name": list(value.keys()), "value": list(value.values())})
    elif isinstance(value, (list, tuple, set, np.ndarray, pd.Index)) and np.ndim(value) != 0:
        value = pd.DataFrame(list(value))
    else:
        return pd.DataFrame([[value]], columns=["result"], dtype=object)
    # An index that somebody made by grouping is part of the answer; one that only counts rows is not.
    plain = isinstance(value.index, pd.RangeIndex) and value.index.name is None
    return value if plain else value.reset_index(allow_duplicates=True)


def shown(value):
    value = frame(value)
    names = [" ".join(str(part) for part in name if part != "") if isinstance(name, tuple) else str(name) for name in value.columns]
    rows = [[cell(one) for one in row] for row in value.head(MOST_ROWS).itertuples(index=False, name=None)]
    return {"columns": names, "rows": rows, "truncated": len(value) > MOST_ROWS}


def complaint(error):
    if isinstance(error, MemoryError):
        return "MemoryError: the analysis needs more memory than it may take"
    own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<analysis>"]
    if isinstance(error, SyntaxError) and error.filename == "<analysis>":
        own = [error.lineno]
    where = f"line {own[-1]}: " if own else ""
    return f"{where}{type(error).__name__}: {error}"[:2_000]


def analyse(names, replies, code, tell, dumps=json.dumps):
    """Gives the word that the page waits for, as JSON."""
    printed = Printed()
    try:
        space, arrived = {"pd": pd, "np": np, "__name__": "__main__"}, []
        for name, reply in zip(names, replies):
            space[name], truncated = table(reply)
            arrived.append({"name": name, "rows": len(space[name]), "truncated": truncated})
        tell(dumps({"kind": "arrived", "tables": arrived}))
        tell(dumps({"kind": "stage", "stage": "running"}))
        sys.stdout = sys.stderr = printed
        exec(compile(code, "<analysis>", "exec"), space)
        if space.get("result") is None:
            raise ValueError("the code left nothing in \`result\`")
        word = {"kind": "done", "rows": shown(space["result"])}
    except BaseException as error:
        word = {"kind": "failed", "why": complaint(error)}
    return dumps({**word, "printed": printed.text()})


def close_ways_out():
    """
    The code gets rows and nothing else. A module that is None in this list cannot be imported. Python code that searches its own
    interpreter may still find such a module; it then finds a JavaScript without anything that reaches a network or a store.
    """
    for name in {"js", "pyodide", "pyodide_js", "micropip", *sys.modules}:
        if name.split(".")[0].lstrip("_") in ("js", "pyodide", "pyodide_js", "pyodide_core", "micropip"):
            sys.modules[name] = None


close_ways_out()
analyse
`;
