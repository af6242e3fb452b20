#!/usr/bin/env bash
# Passes every test of the project, cheapest first. Needs only Rust; tests the Python package and a real Slurm too where they are.
# PLEACH_CHECK_WGPU=1 adds the tests of devices, PLEACH_CHECK_RAY=1 a sweep on a real Ray; PLEACH_CHECK_SLURM=1 makes it an error
# where those on a real Slurm cannot run; PLEACH_CHECK_SLURM_RELEASES=1 runs them on three releases, in roots that it makes once, and
# installs the packages; PLEACH_CHECK_KUBERNETES=1 builds a control plane of Kubernetes and drives it; PLEACH_CHECK_ROUTERS=1 runs
# routing trees in the endpoint pickers of inference gateways, as later runs do where these were compiled once.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$PATH:/usr/sbin:/sbin"
# What is compiled once and thrown away gains nothing from the files of incremental compilation.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0

# Each step with its processor seconds (user and system, of all that it waited for) and seconds of wall, printed at the end.
times=$(mktemp)
step() {
  printf '\n== %s\n' "$*"
  local TIMEFORMAT='%U %S %R'
  { time "$@" 2>&3 3>&-; } 3>&2 2>"$times.last"
  printf '%s %s\n' "$(tail -n 1 "$times.last")" "$*" >>"$times"
}
print_times() {
  [ ! -s "$times" ] || printf '\n%8s %8s  step\n' 'CPU s' 'wall s'
  awk '{ cpu = $1 + $2; wall = $3; $1 = $2 = $3 = ""; all += cpu; whole += wall
         printf "%8.1f %8.1f %s\n", cpu, wall, substr($0, 3, 100) }
       END { if (NR) printf "%8.1f %8.1f  in all\n", all, whole }' "$times"
  rm -f "$times" "$times.last"
}
trap print_times EXIT
skip() { printf '\n== %s: skipped: %s\n' "$1" "$2"; }

# Whatever tests run that is no part of Rust is found or installed here, before the first of them. One line for each program: its
# names, and the packages of Debian that have it.
is_root() { [ "$(id -u)" = 0 ]; }
programs() {
  cat <<'END'
cc|gcc libc6-dev
chromium chromium-browser google-chrome|chromium
go|golang-go
gofmt|golang-go
python3|python3 python3-venv
END
  # Its daemons are started by root alone.
  ! is_root || cat <<'END'
munged|munge
scontrol|slurm-client slurm-wlm-basic-plugins
slurmctld|slurmctld
slurmd|slurmd
squeue|slurm-client
END
  [ "${PLEACH_CHECK_KUBERNETES:-0}" != 1 ] || echo 'openssl|openssl'
}
python_ok() { python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }
# A loader of Vulkan and at least one driver; Mesa's is for CPUs.
has_vulkan() {
  ldconfig -p 2>/dev/null | grep 'libvulkan\.so\.1' >/dev/null || return 1
  compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null || compgen -G '/etc/vulkan/icd.d/*.json' >/dev/null
}
missing_packages() {
  local names packages
  programs | while IFS='|' read -r names packages; do
    # shellcheck disable=SC2086 # Several names.
    [ -n "$(command -v $names || true)" ] || printf '%s\n' $packages
  done
  python_ok || echo python3-venv
  [ "${PLEACH_CHECK_WGPU:-0}" != 1 ] || has_vulkan || printf '%s\n' libvulkan1 mesa-vulkan-drivers
}
# What the tests of the Python package need, in an environment of its own.
venv="$PWD/target/python-venv"
install_python_tools() {
  # As a condition this runs without `set -e`: what fails has to say so.
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv" || return 1
  timeout 600 "$venv/bin/pip" install -q 'maturin>=1.16,<2' gymnasium numpy pytest pandas scikit-learn mypy || return 1
  # A run with PLEACH_CHECK_PYTHON_LIBS=1 leaves an older one, of which the types are others.
  timeout 600 "$venv/bin/pip" install -q -U gymnasium || return 1
  # Tests that need these skip where there is no wheel of them, and say so.
  timeout 600 "$venv/bin/pip" install -q --only-binary :all: pyarrow || true
  timeout 600 "$venv/bin/pip" install -q --only-binary :all: pygame || true
  timeout 600 "$venv/bin/pip" install -q --only-binary :all: onnxruntime onnx || true
}
# What `kubectl apply -k` does to folders, for the test of the manifests: a kubectl, or kustomize by its Go module, once into the
# cache. This version is in the kubectl of Kubernetes 1.27, and the Go of Debian 12 compiles it.
find_kustomize() {
  [ -z "$(command -v kubectl kustomize || true)" ] || return 0
  local folder=${PLEACH_KUBERNETES_CACHE:-$HOME/.cache/pleach}/kustomize-5.0.3
  [ -x "$folder/kustomize" ] || GOBIN="$folder" timeout 900 go install sigs.k8s.io/kustomize/kustomize/v5@v5.0.3 || return 1
  export PATH="$PATH:$folder"
}
has_python_tools=
find_programs() {
  local missing package
  missing=$(missing_packages | sort -u)
  if [ -n "$missing" ] && is_root && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    timeout 300 apt-get -qq update || true
    # One by one: where a distribution lacks one of them, the others are there.
    for package in $missing; do
      timeout 600 apt-get -qq install --no-install-recommends "$package" >/dev/null || true
    done
    missing=$(missing_packages | sort -u)
  fi
  if [ -n "$missing" ]; then
    printf 'not here: what Debian has in %s\n' "$(printf '%s\n' "$missing" | paste -sd ' ')"
    printf 'Tests that need it are skipped, and named at the end. Run as root with apt-get, ./check.sh installs it.\n'
  fi
  find_kustomize || echo 'not here: kubectl or kustomize, and no Go that could make one'
  if python_ok && install_python_tools >/dev/null 2>&1; then has_python_tools=1; fi
}

# A container may have the programs and no right to the devices: whether an empty cluster comes up.
slurm_starts() (
  set +e
  # shellcheck source=deploy/daemon/tests/slurm_cluster.sh
  . deploy/daemon/tests/slurm_cluster.sh
  dir=$(mktemp -d /tmp/pleach-slurm.XXXXXX)
  # Ports of its own: the tests begin before the last of these daemons has ended.
  PLEACH_SLURM_PORT=16917 slurm_start "$dir" >"$dir/start.log" 2>&1
  started=$?
  slurm_stop "$dir"
  rm -rf "$dir"
  exit "$started"
)

# Programs of Kubernetes that were built before; they are built here only where that is asked for. A Go before 1.26 reads none of
# their modules.
go_is_old() { ! (cd deploy/kubernetes/tests/plane/etcd && go list -m >/dev/null 2>&1); }
find_kubernetes() {
  command -v python3 >/dev/null && command -v openssl >/dev/null || return 1
  plane=$(deploy/kubernetes/tests/plane/build.sh --where) && return
  [ "${PLEACH_CHECK_KUBERNETES:-0}" = 1 ] && plane=$(timeout 5400 deploy/kubernetes/tests/plane/build.sh)
}

# Tests whose published data is missing note themselves here; PLEACH_REQUIRE_DATA=1 makes them fail.
skipped=target/skipped-for-missing-data.txt
# And those whose program is not here.
unrun=target/skipped-for-missing-programs.txt
rm -f "$skipped" "$unrun"

# The library of the Python package is made of what the tests compiled (tests/conventions/tests/shared_artefacts.rs says why, where it is not).
python_shares_artefacts() {
  local said
  said=$(cargo build -p pleach-python --lib --locked 2>&1) && ! grep -v ' pleach-python ' <<<"$said" | grep ' Compiling pleach-' && return
  printf '%s\n' "$said" >&2
  return 1
}

step find_programs
step cargo fmt --all --check
# What files alone show: seconds, before the minutes of compilers.
step cargo test --workspace --test conventions --locked
step cargo clippy --workspace --all-targets --locked -- -D warnings
step cargo check -p pleach-workloads --no-default-features --locked
# The program without the laboratory. All other crates are as the steps below have them, so that it alone is compiled twice; these tests
# run it on lists, policies and refusals.
step cargo test --workspace --no-default-features --test cli --locked -- refus explain schedules policies workloads goldens::serve
# Examples are compiled by clippy alone, but for one that the tests on a real Slurm run.
step cargo test --workspace --lib --bins --tests --no-run --locked
step cargo test --workspace --lib --bins --tests --locked
step cargo test --workspace --doc --locked
step python_shares_artefacts
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps --locked

# Nothing is compiled: manifests, versions beside paths, and the files of each crate that is to be published.
step cargo package --workspace --exclude pleach-tests --exclude pleach-conventions --exclude pleach-python --no-verify --allow-dirty --locked --quiet

if ! command -v cargo-deny >/dev/null; then
  skip 'licences, duplicates and sources' 'cargo install cargo-deny --locked'
else
  step cargo deny check licenses bans sources
  # The database of advisories comes over the network.
  if timeout 60 cargo deny fetch; then
    step cargo deny check advisories
  else
    skip 'advisories' 'their database cannot be fetched from here'
  fi
fi
if command -v mdbook >/dev/null; then
  step tests/conventions/site.sh --made
else
  skip 'the site' 'cargo install mdbook --locked'
fi

# The Python package: a wheel. Its library shares the artefacts of the tests above.
check_python() {
  rm -rf target/wheels
  (cd python && CARGO_TARGET_DIR="$PWD/../target" timeout 3600 "$venv/bin/maturin" build --locked -q -o ../target/wheels)
  "$venv/bin/pip" install -q --force-reinstall --no-deps target/wheels/pleach-*.whl
  (cd python/tests && timeout 1800 "$venv/bin/python" -m pytest -q -rs -p no:cacheprovider .)
  (cd python && "$venv/bin/python" -m mypy --strict pleach tests/typed_use.py)
}
check_python_libs() {
  timeout 3600 "$venv/bin/pip" install -q torch torchrl stable-baselines3 sb3-contrib 'ray[rllib]' 'minari[create,hdf5]' nbclient ipykernel matplotlib moviepy
  (cd python/tests && PLEACH_CHECK_PYTHON_LIBS=1 timeout 3600 "$venv/bin/python" -m pytest -q -rs test_documents.py test_examples.py test_libraries.py test_networks.py test_pictures.py)
}
# The tutorial in an environment that has what it tells to install, and pytest.
check_python_tutorial() {
  local own="$PWD/target/python-tutorial-venv"
  rm -rf "$own" && python3 -m venv "$own"
  timeout 3600 "$own/bin/pip" install -q "$(ls target/wheels/pleach-*.whl)[torch]" pytest
  (cd python/tests && PLEACH_CHECK_PYTHON_LIBS=1 timeout 1800 "$own/bin/python" -m pytest -q -rs -p no:cacheprovider test_documents.py -k first_hour)
}
check_ray() {
  timeout 1800 "$venv/bin/pip" install -q ray
  cargo build --workspace --bin pleach --locked
  timeout 300 cli/tests/sweep_ray.sh "${CARGO_TARGET_DIR:-target}/debug/pleach" "$venv/bin/python"
}
if ! python_ok; then
  skip 'the Python package' 'no python3 of 3.10 or later with venv and pip is here'
elif [ -z "$has_python_tools" ]; then
  skip 'the Python package' 'pip cannot install maturin, gymnasium and pytest from here'
else
  step check_python
  if [ "${PLEACH_CHECK_PYTHON_LIBS:-0}" = 1 ]; then
    step check_python_tutorial
    step check_python_libs
  else
    skip 'the Python examples with PyTorch, Stable-Baselines3 and RLlib' 'PLEACH_CHECK_PYTHON_LIBS=1 ./check.sh runs them'
  fi
  if [ "${PLEACH_CHECK_RAY:-0}" = 1 ]; then
    step check_ray
  else
    skip 'a sweep on a real Ray' 'PLEACH_CHECK_RAY=1 ./check.sh runs it'
  fi
fi

# A quarter of an hour of processor time to compile, hence only where it is asked for. Both features in one build, so that cuda is compiled too.
if [ "${PLEACH_CHECK_WGPU:-0}" != 1 ]; then
  skip 'tests of devices' 'PLEACH_CHECK_WGPU=1 ./check.sh runs them on wgpu'
elif ! has_vulkan; then
  skip 'tests of devices' 'no driver of Vulkan is here, and none could be installed (Debian: libvulkan1, mesa-vulkan-drivers)'
else
  step timeout 3600 cargo test -p pleach-agents --lib --profile device --features cuda,wgpu --locked -- device --include-ignored
fi
slurm_skipped=
if ! is_root || ! slurm_starts; then
  slurm_skipped='only root starts it; or it is not here, or does not start here (Debian: slurmctld, slurmd, slurm-client, munge)'
  skip 'tests on a real Slurm' "$slurm_skipped"
  [ "${PLEACH_CHECK_SLURM:-0}" != 1 ] || { echo 'PLEACH_CHECK_SLURM=1: that is an error' >&2; exit 1; }
else
  step cargo build --workspace --bin pleach-scheduler --bin pleach --example shortest_first_tree --locked
  built=${CARGO_TARGET_DIR:-target}/debug
  tree=$(mktemp --suffix=.json)
  step "$built/examples/shortest_first_tree" "$tree"
  step timeout 600 deploy/daemon/tests/order_slurm.sh "$built/pleach-scheduler" "$tree"
  step timeout 120 deploy/daemon/tests/first_day_slurm.sh "$built/pleach-scheduler"
  step timeout 300 deploy/daemon/tests/when_slurm.sh "$built/pleach-scheduler" "$tree" "$built/pleach"
  if command -v slurmdbd >/dev/null && command -v mariadbd >/dev/null; then
    step timeout 300 deploy/daemon/tests/limits_slurm.sh "$built/pleach-scheduler" "$tree"
  else
    skip 'limits and an operator on a real Slurm' 'slurmdbd is not here (Debian: slurmdbd, slurm-wlm-mysql-plugin, mariadb-server)'
  fi
  step timeout 300 cli/tests/sweep_slurm.sh "$built/pleach"
  rm -f "$tree"
  # Half an hour and three gigabytes the first time, hence only where it is asked for.
  if [ "${PLEACH_CHECK_SLURM_RELEASES:-0}" = 1 ]; then
    for release in 22.05 24.11 26.05; do step deploy/daemon/tests/slurm_roots.sh make "$release"; done
    step timeout 3600 deploy/daemon/tests/releases_slurm.sh "$built/pleach-scheduler" "$built/examples/shortest_first_tree"
    step timeout 3600 deploy/daemon/tests/package_slurm.sh
  else
    skip 'releases of Slurm side by side, and packages' 'PLEACH_CHECK_SLURM_RELEASES=1 ./check.sh runs them'
  fi
fi
kubernetes_skipped=
if ! find_kubernetes; then
  kubernetes_skipped='PLEACH_CHECK_KUBERNETES=1 ./check.sh builds it (with Go 1.26: eleven minutes of processor time, once) and runs them'
  if go_is_old; then
    kubernetes_skipped='no Go is here, or one before 1.26 that fetches no newer one'
  elif [ "${PLEACH_CHECK_KUBERNETES:-0}" = 1 ]; then
    echo 'PLEACH_CHECK_KUBERNETES=1, and no control plane could be built: that is an error' >&2
    exit 1
  fi
  skip 'tests on a real control plane of Kubernetes' "$kubernetes_skipped"
else
  step cargo build --workspace --bin pleach-kubernetes --bin pleach --locked
  step timeout 900 deploy/kubernetes/tests/real_kubernetes.sh "${CARGO_TARGET_DIR:-target}/debug/pleach-kubernetes" "$plane"
fi
[ "${PLEACH_CHECK_KUBERNETES:-0}" != 1 ] || step timeout 3600 deploy/kubernetes/tests/image_kubernetes.sh

# Endpoint pickers, whose first compilation takes minutes. What it leaves in Go's cache is noted here.
pickers_compiled=${PLEACH_KUBERNETES_CACHE:-$HOME/.cache/pleach}/endpoint-pickers-compiled
if go_is_old; then
  skip 'trees in endpoint pickers' 'no Go is here, or one before 1.26 that fetches no newer one'
elif [ "${PLEACH_CHECK_ROUTERS:-0}" != 1 ] && [ ! -e "$pickers_compiled" ]; then
  skip 'trees in endpoint pickers' 'PLEACH_CHECK_ROUTERS=1 ./check.sh runs them (seven minutes of processor time, once)'
else
  step timeout 3600 cargo test --workspace --test serving --locked -- --ignored gateways
  mkdir -p "$(dirname "$pickers_compiled")" && touch "$pickers_compiled"
fi
printf '\nall checks passed\n'
[ -z "$slurm_skipped" ] || printf 'skipped, the tests on a real Slurm: %s\n' "$slurm_skipped"
[ -z "$kubernetes_skipped" ] || printf 'skipped, the tests on a real control plane of Kubernetes: %s\n' "$kubernetes_skipped"
if [ -s "$skipped" ]; then
  sort -u "$skipped" | sed 's/^/  /'
  printf 'skipped for missing data: %s tests, named above\n' "$(sort -u "$skipped" | wc -l)"
fi
[ ! -s "$unrun" ] || sort -u "$unrun" | sed 's/^/  /'
printf 'skipped for missing programs: %s tests\n' "$(sort -u "$unrun" 2>/dev/null | wc -l)"
