#!/usr/bin/env python3
"""A list of what a program is made of (CycloneDX 1.5, JSON), from Cargo.lock by `cargo metadata` and `cargo tree`: no other tool.

    deploy/sbom.py pleach-cli > pleach.cdx.json

Lists every crate that the package links or that runs while it is built, with version, licence, source and hash; test dependencies
are left out. The same sources give the same bytes: no time, no random number.
"""

import json
import subprocess
import sys
import tomllib


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, hashes, kind):
    found = {
        "type": kind,
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    }
    if package["license"]:
        # Cargo once wrote `/` for `OR`.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ").replace("  ", " ")}]
    if package["description"]:
        found["description"] = " ".join(package["description"].split())
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    if sha256 := hashes.get((package["name"], package["version"])):
        found["hashes"] = [{"alg": "SHA-256", "content": sha256}]
    return found


def main(root):
    host = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = next(line.split()[1] for line in host.splitlines() if line.startswith("host:"))
    asked = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
    metadata = json.loads(subprocess.run(asked, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    with open("Cargo.lock", "rb") as lock:
        locked = tomllib.load(lock)["package"]
    hashes = {(own["name"], own["version"]): own["checksum"] for own in locked if "checksum" in own}

    own = [id for id, package in packages.items() if package["name"] == root and package["source"] is None]
    if len(own) != 1:
        sys.exit(f"{root}: allowed are packages of this workspace, such as pleach-cli, pleach-daemon, pleach-kubernetes")

    # The tree leaves out what the features of this program do not turn on.
    asked = ["cargo", "tree", "--locked", "-p", root, "-e", "normal,build", "--prefix", "none", "--target", host]
    lines = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()
    built = {tuple(line.split()[:2]) for line in lines if line}
    reached = {id for id, package in packages.items() if (package["name"], "v" + package["version"]) in built}

    def needs(id):
        of = nodes[id]["deps"]
        return [own["pkg"] for own in of if own["pkg"] in reached and {kind["kind"] for kind in own["dep_kinds"]} - {"dev"}]

    order = sorted(reached, key=lambda id: purl(packages[id]))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(packages[own[0]], hashes, "application")},
        "components": [component(packages[id], hashes, "library") for id in order if id != own[0]],
        "dependencies": [
            {"ref": purl(packages[id]), "dependsOn": sorted({purl(packages[other]) for other in needs(id)})} for id in order
        ],
    }
    json.dump(bom, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
