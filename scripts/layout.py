#!/usr/bin/env python3
"""Checks the layout of the Rust crates: no import cycles, no surface that imports another, no forbidden type names.

    scripts/layout.py            report violations, exit status 1 if there are any
    scripts/layout.py --graph    print the imports of every file as well

An import is a path in a `use` item or in code, outside of tests. Re-exports are followed to the file that defines the item. Imports
between a module and its own descendants are not counted: `parent.rs` declares what `parent/child.rs` implements.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Modules that offer the service to the outside. They may use the service, never each other.
SURFACES = {"server": ["http", "grpc", "mcp"]}

# Names that say nothing about what a type is.
FORBIDDEN_TYPES = set(
    "Held Kept Told Known Asked Found Given Place Trouble Desk Lines Words Hindrance Sought Taking Spot Thing".split()
)

TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|trait|union|type)\s+(\w+)", re.M)
USE = re.compile(r"(?m)^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:$])((?:crate|super|self)(?:::\w+)+)")


def strip_code(text):
    """Blanks comments, string literals and test modules, so that only code remains. Offsets are kept."""
    pattern = re.compile(
        r"//[^\n]*|/\*.*?\*/|b?r(#*)\".*?\"\1|b?\"(?:\\.|[^\"\\])*\"|'(?:\\[^']*|[^\\'])'", re.S
    )
    text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    for match in reversed(list(re.finditer(r"#\[cfg\(test\)\]\s*(?:pub\s+)?mod\s+\w+\s*\{", text))):
        depth, end = 0, match.end() - 1
        for end in range(match.end() - 1, len(text)):
            depth += (text[end] == "{") - (text[end] == "}")
            if depth == 0:
                break
        text = text[: match.start()] + re.sub(r"[^\n]", " ", text[match.start() : end + 1]) + text[end + 1 :]
    return text


def use_leaves(tree):
    """Yields (path segments, name in scope) of every item that a `use` tree imports."""
    tokens, position = re.findall(r"\w+|::|[{},*]", tree.strip().removeprefix("::")), 0

    def walk(prefix):
        nonlocal position
        segments = list(prefix)
        while True:
            token = tokens[position]
            position += 1
            if token == "{":
                while tokens[position] != "}":
                    yield from walk(segments)
                    position += tokens[position] == ","
                position += 1
                return
            segments.append(token)
            if position < len(tokens) and tokens[position] == "::":
                position += 1
                continue
            name = segments[-1]
            if position < len(tokens) and tokens[position] == "as":
                name, position = tokens[position + 1], position + 2
            if segments[-1] == "self" and len(segments) > 1:
                segments = segments[:-1]
                name = segments[-1] if name == "self" else name
            yield segments, name
            return

    yield from walk([])


class Crate:
    """Source files of one crate, by module path."""

    def __init__(self, folder):
        self.name = folder.name
        source = folder / "src"
        self.files, self.code = {}, {}
        for file in sorted(source.rglob("*.rs")):
            parts = list(file.relative_to(source).with_suffix("").parts)
            if parts[-1] in ("tests", "testing") or parts[0] == "bin":
                continue
            if parts in (["lib"], ["main"]):
                parts = []
            elif parts[-1] == "mod":
                parts = parts[:-1]
            module = tuple(parts)
            self.files[module] = file.relative_to(ROOT)
            self.code[module] = strip_code(file.read_text())
        self.reexports = {module: self._reexports(module) for module in self.files}

    def _reexports(self, module):
        found = {}
        for match in USE.finditer(self.code[module]):
            for segments, name in use_leaves(match.group(2)) if match.group(1) else ():
                target = self._absolute(module, segments)
                if target is not None:
                    found[name] = target
        return found

    def _absolute(self, module, segments):
        """Returns the path from the root of the crate, or None if it leaves the crate."""
        head, rest = segments[0], list(segments[1:])
        if head == "crate":
            return tuple(rest)
        if head in ("self", "super"):
            base = list(module[:-1] if head == "super" else module)
            while rest and rest[0] == "super":
                base, rest = base[:-1], rest[1:]
            return tuple(base + rest)
        return module + tuple(segments) if module + (head,) in self.files else None

    def definer(self, path, depth=0):
        """Returns the module that defines what a path names, following re-exports."""
        length = max(n for n in range(len(path) + 1) if path[:n] in self.files)
        module, rest = path[:length], path[length:]
        if rest and depth < 8 and rest[0] in self.reexports[module]:
            return self.definer(self.reexports[module][rest[0]] + rest[1:], depth + 1)
        return module

    def imports(self):
        """Returns the modules that each module imports, without its ancestors and descendants."""
        graph = {}
        for module, code in self.code.items():
            paths = [leaf for match in USE.finditer(code) if not match.group(1) for leaf, _ in use_leaves(match.group(2))]
            paths += [match.group(1).split("::") for match in PATH.finditer(USE.sub("", code))]
            targets = {self.definer(path) for path in (self._absolute(module, p) for p in paths) if path is not None}
            related = {t for t in targets if t == module[: len(t)] or module == t[: len(module)]}
            graph[module] = targets - related
        return graph


def cycles(graph):
    """Returns the strongly connected components with more than one module (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in on_stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            if len(component) > 1:
                found.append(sorted(component))

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def violations(show_graph=False):
    """Yields one line for each violation."""
    for folder in sorted((ROOT / "crates").iterdir()):
        if not (folder / "src").is_dir():
            continue
        crate = Crate(folder)
        graph = crate.imports()
        if show_graph:
            for module, targets in sorted(graph.items()):
                print(crate.files[module], "->", *sorted("::".join(target) or "(root)" for target in targets))
        for cycle in cycles(graph):
            yield f"{crate.name}: import cycle of {len(cycle)}: " + ", ".join("::".join(m) or "(root)" for m in cycle)
        surfaces = SURFACES.get(crate.name, [])
        for module, targets in sorted(graph.items()):
            for target in sorted(targets):
                if module[:1] != target[:1] and {*module[:1], *target[:1]} <= set(surfaces):
                    yield f"{crate.files[module]}: surface {module[0]} imports {'::'.join(target)}"
        for module, code in sorted(crate.code.items()):
            for name in TYPE.findall(code):
                if name in FORBIDDEN_TYPES:
                    yield f"{crate.files[module]}: type name {name} is forbidden"


def main():
    found = list(violations("--graph" in sys.argv))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
