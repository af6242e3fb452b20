"""Stubs and documents name what there is."""

import ast
import inspect
from pathlib import Path

import pytest

import pleach
from pleach import _pleach

PACKAGE = Path(pleach.__file__).parent


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def test_the_stub_names_what_the_library_has():
    tree = ast.parse((PACKAGE / "_pleach.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions | set(classes) == public(_pleach)
    for name, node in classes.items():
        methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        assert {method for method in methods if not method.startswith("_")} == public(getattr(_pleach, name)), name


def test_every_public_name_says_what_it_is():
    for name in pleach.__all__:
        thing = getattr(pleach, name)
        assert not callable(thing) or inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for method in public(thing):
                assert not callable(getattr(thing, method)) or inspect.getdoc(getattr(thing, method)), f"{name}.{method}"


def test_the_package_is_typed_and_knows_its_integrals():
    assert (PACKAGE / "py.typed").exists()
    env = pleach.PleachEnv("Pleach/Philly-v0", num_jobs=5)
    env.reset(seed=1)
    assert tuple(env.gained()) == pleach.INTEGRALS


def test_the_package_says_its_version_and_the_wheel_what_it_is():
    from importlib.metadata import metadata

    own = metadata("pleach")
    assert pleach.__version__ == own["Version"]
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    assert own["Description-Content-Type"].startswith("text/markdown") and own.get_payload().strip() == readme.strip()
    assert {"Programming Language :: Rust", "Typing :: Typed"} <= set(own.get_all("Classifier"))


def test_errors_send_nobody_to_documents_that_the_package_does_not_hold():
    env = pleach.PleachEnv("Pleach/Philly-v0", num_jobs=5)
    calls = (
        lambda: pleach.PleachEnv("Pleach/Philly-v0", sim={"x": 1}),
        lambda: pleach.PleachEnv("Pleach/Philly-v0", workload="phily"),
        lambda: pleach.evaluate(["sjf"], "philly-like", preemptions=True),
        lambda: pleach.evaluate(["sjf"], "no-such-list"),
        lambda: pleach.distill("sjf", env, leafs=[2]),
        lambda: pleach.simulate(pleach.workload("philly-like", num_jobs=5), "sjf", speed=2),
        lambda: pleach.read("jobs.csv", format="slurm"),
        lambda: pleach.Policy.of(lambda seen: 0, candidates={"head": 1}),
    )
    for call in calls:
        with pytest.raises(ValueError) as error:
            call()
        assert "docs/" not in str(error.value), error.value


def test_notebooks_show_tables():
    jobs = pleach.workload("philly-like", num_jobs=12, seed=3)
    comparison = pleach.evaluate({"<mine>": "sjf", "fifo": "fifo"}, jobs)
    for shown, words in (
        (jobs, ("12 jobs on", "<th>run_time_s</th>", "and 2 more")),
        (pleach.simulate(jobs, "sjf"), ("average JCT", "<th>nodes</th>")),
        (comparison, ("ratios to &lt;mine&gt;", "<td>&lt;mine&gt;</td>", "<th>ratio</th>")),
    ):
        text = shown._repr_html_()
        assert text.startswith("<table>") and text.endswith("</table>") and all(word in text for word in words), text


def test_the_page_of_names_is_made_with_a_section_for_each():
    import runpy

    root = Path(__file__).parents[2]
    made = runpy.run_path(str(root / "python" / "api_page.py"))
    page = made["page"]()
    for names in made["MODULES"].values():
        assert all(f".{name}`\n" in page for name in names), names


def test_the_wheel_holds_its_licences_and_copies_are_those_of_the_repository():
    from importlib.metadata import distribution

    own = distribution("pleach")
    assert own.metadata["License-Expression"] == "MIT OR Apache-2.0"
    shipped = {Path(str(file)).name: file.read_text() for file in own.files if "licenses" in str(file)}
    root = Path(__file__).parents[2]
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert shipped[name] == (root / name).read_text() == (root / "python" / name).read_text(), name
    # Beside the sources that a source distribution holds, so that it is built with the same Rust.
    assert (root / "python" / "rust-toolchain.toml").read_text() == (root / "rust-toolchain.toml").read_text()
