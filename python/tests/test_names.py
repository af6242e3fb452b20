"""Stubs and documents name what there is."""

import ast
import inspect
from pathlib import Path

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


def test_the_page_of_names_is_up_to_date():
    import runpy

    root = Path(__file__).parents[2]
    found = runpy.run_path(str(root / "python" / "api_page.py"))["page"]()
    assert found == (root / "docs" / "python-api.md").read_text(), "python python/api_page.py > docs/python-api.md"


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
