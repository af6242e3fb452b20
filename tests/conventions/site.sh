#!/usr/bin/env bash
# The documents as a site, in target/site: those of docs and lab/notes, and the pages that the programs can print, which
# are not in the tree. Needs mdbook and Python 3. With --made the tests have written the pages already.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1:-}" != --made ]; then
  cargo test --workspace --lib --test tests --locked made_for_the_site
fi
python3 python/api_page.py > target/pages/docs/python-api.md
mkdir -p target/pages/lab
cp -r docs target/pages/
cp -r lab/notes target/pages/lab/
# Pages keep their paths, so that links lead to the same files on the site and in the tree.
sed 's#](#](docs/#; s#](docs/\.\./#](#' docs/SUMMARY.md > target/pages/SUMMARY.md
rm target/pages/docs/SUMMARY.md target/pages/docs/book.toml
mdbook build docs
