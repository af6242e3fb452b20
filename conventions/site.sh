#!/usr/bin/env bash
# The documents as a site, in target/site: those of docs, and the pages that the programs can print, which are not in the tree.
# Needs mdbook and Python 3. With --made the tests have written the pages already.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" != --made ]; then
  cargo test --workspace --lib --test tests --locked made_for_the_site
fi
python3 python/api_page.py > target/pages/python-api.md
cp -r docs/. target/pages/
mdbook build
