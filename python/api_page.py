"""Prints python-api.md of the site, from the package's signatures and docstrings (tests/conventions/site.sh)."""

import ast
import textwrap
from pathlib import Path

PACKAGE = Path(__file__).parent / "pleach"
#: Modules in the order of the page, and what of them is public.
MODULES = {
    "env": ["PleachEnv"],
    "vector": ["PleachVectorEnv"],
    "serving": ["ServingEnv"],
    "deals": ["DealEnv"],
    "policies": ["names", "load", "batched", "Policy"],
    "columns": ["named", "by_name", "Named"],
    "comparison": ["evaluate", "Comparison", "distill", "Distilled"],
    "training": ["train", "Trained"],
    "starts": ["when", "Answer", "Forecast"],
    "networks": ["export_onnx"],
    "workloads": ["workload", "read", "simulate", "Workload", "Simulation"],
    "wrappers": [
        "flat",
        "ragged",
        "FlatObservation",
        "FlatVectorObservation",
        "RaggedObservation",
        "ActionMaskObservation",
        "OneDecisionPerInstant",
    ],
}


def signature(node, prefix=""):
    """A function as one line of code, or as one argument a line where that is too long."""
    arguments = ast.unparse(node.args)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{prefix}{node.name}({arguments}){returns}"
    if len(line) <= 100:
        return line
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(arguments):
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            parts.append(arguments[start : place + 1].strip())
            start = place + 1
    parts.append(arguments[start:].strip())
    return f"{prefix}{node.name}(\n    " + "\n    ".join(parts) + f"\n){returns}"


def prose(node):
    """The docstring in lines of 120 characters."""
    paragraphs = (ast.get_docstring(node) or "").replace("``", "`").split("\n\n")
    for role in (":class:", ":func:", ":meth:", ":attr:"):
        paragraphs = [paragraph.replace(role, "") for paragraph in paragraphs]
    wrapped = (textwrap.fill(" ".join(paragraph.split()), 120, break_long_words=False) for paragraph in paragraphs)
    return "\n\n".join(wrapped)


def attributes(node):
    """What `__init__` leaves to look at: names with their comments."""
    lines = ast.get_source_segment(SOURCE, node).splitlines()
    for before, line in zip(lines, lines[1:]):
        if before.strip().startswith("#:") and line.strip().startswith("self."):
            name = line.strip().split("self.")[1].split(":")[0].split("=")[0].strip()
            yield f"- `{name}`: {before.strip()[2:].strip()}"


def section(module, node):
    """One public name."""
    place = f"pleach.{module}" if module in ("policies", "wrappers") and node.name not in ("load", "Policy") else "pleach"
    yield f"\n## `{place}.{node.name}`\n"
    if isinstance(node, ast.FunctionDef):
        yield f"```python\n{signature(node)}\n```\n\n{prose(node)}"
        return
    yield prose(node)
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    init = next((one for one in methods if one.name == "__init__"), None)
    if init is not None:
        found = list(attributes(init))
        if found:
            yield "\n" + "\n".join(textwrap.fill(line, 120, subsequent_indent="  ") for line in found)
    for method in methods:
        if method.name.startswith("_") and not (method.name == "__init__" and node.name.endswith("Env")):
            continue
        is_property = any(ast.unparse(one) == "property" for one in method.decorator_list)
        shown = f"{method.name} -> {ast.unparse(method.returns)}" if is_property else signature(method)
        yield f"\n```python\n{shown}\n```\n\n{prose(method)}".rstrip()


def page():
    """The whole page."""
    global SOURCE
    parts = ["# Python, name by name\n\nWritten by `python/api_page.py` from the package. [Python](python.md) says how they"]
    parts = [parts[0] + "\nbelong together."]
    for module, names in MODULES.items():
        SOURCE = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
        nodes = {node.name: node for node in ast.parse(SOURCE).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        for name in names:
            parts.extend(section(module, nodes[name]))
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(page(), end="")
