import { limits } from "./limits";

/**
 * Python harness around the model's code: loads the server's responses as data frames, runs the
 * code, and converts `result` to plain values. The script evaluates to the entry function and
 * blocks access to JavaScript before it returns.
 */
export const python = `
import datetime, io, json, math, sys, traceback
import numpy as np
import pandas as pd

MAX_ROWS = ${limits.resultRows}
MAX_OUTPUT = ${limits.outputLength}
MAX_SAFE_INTEGER = 2**53 - 1


class CapturedOutput(io.TextIOBase):
    """Captures what the code prints, up to MAX_OUTPUT characters."""

    def __init__(self):
        self.parts, self.remaining = [], MAX_OUTPUT

    def write(self, text):
        self.parts.append(text[: self.remaining])
        self.remaining -= len(self.parts[-1])
        return len(text)

    def text(self):
        return "".join(self.parts)


def load_table(reply):
    rows = json.loads(reply)["rows"]
    return pd.DataFrame(rows["rows"], columns=rows["columns"]), bool(rows["truncated"])


def to_cell(value):
    """Converts a value to a JSON scalar. Integers beyond JavaScript's safe range become strings."""
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value) if abs(int(value)) <= MAX_SAFE_INTEGER else str(int(value))
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, datetime.datetime):
        midnight = value.tzinfo is None and value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    return str(value)[:10_000]


def to_frame(value):
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
    # An index made by grouping is part of the result; a default one is not.
    is_default_index = isinstance(value.index, pd.RangeIndex) and value.index.name is None
    return value if is_default_index else value.reset_index(allow_duplicates=True)


def to_rows(value):
    value = to_frame(value)
    names = [" ".join(str(part) for part in name if part != "") if isinstance(name, tuple) else str(name) for name in value.columns]
    rows = [[to_cell(one) for one in row] for row in value.head(MAX_ROWS).itertuples(index=False, name=None)]
    return {"columns": names, "rows": rows, "truncated": len(value) > MAX_ROWS}


def describe_error(error):
    if isinstance(error, MemoryError):
        return "MemoryError: the analysis exceeds its memory limit"
    own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<analysis>"]
    if isinstance(error, SyntaxError) and error.filename == "<analysis>":
        own = [error.lineno]
    where = f"line {own[-1]}: " if own else ""
    return f"{where}{type(error).__name__}: {error}"[:2_000]


def analyze(names, replies, code, post, dumps=json.dumps):
    """Runs the code and returns the final message as JSON."""
    output = CapturedOutput()
    try:
        namespace, loaded = {"pd": pd, "np": np, "__name__": "__main__"}, []
        for name, reply in zip(names, replies):
            namespace[name], truncated = load_table(reply)
            loaded.append({"name": name, "rows": len(namespace[name]), "truncated": truncated})
        post(dumps({"kind": "loaded", "tables": loaded}))
        post(dumps({"kind": "stage", "stage": "running"}))
        sys.stdout = sys.stderr = output
        exec(compile(code, "<analysis>", "exec"), namespace)
        if namespace.get("result") is None:
            raise ValueError("the code did not assign \`result\`")
        message = {"kind": "done", "rows": to_rows(namespace["result"])}
    except BaseException as error:
        message = {"kind": "failed", "reason": describe_error(error)}
    return dumps({**message, "output": output.text()})


def block_javascript_modules():
    """
    Blocks imports of modules that reach JavaScript: a module that is None in sys.modules cannot be imported. Code that
    inspects the interpreter may still find one, but the globals for network and storage are removed from JavaScript too.
    """
    for name in {"js", "pyodide", "pyodide_js", "micropip", *sys.modules}:
        if name.split(".")[0].lstrip("_") in ("js", "pyodide", "pyodide_js", "pyodide_core", "micropip"):
            sys.modules[name] = None


block_javascript_modules()
analyze
`;
