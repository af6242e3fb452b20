#!/usr/bin/env bash
# The set-up of docs/deploy-slurm.md as it is written there: its blocks of commands are run word for word. The package is built,
# installed in a clean Debian with Slurm and slurmdbd, set up as an operator, and 300 jobs of two users end in the order of a tree,
# none lost; then as SlurmUser without slurmdbd. The RPM has the same files and installs.
#   deploy/daemon/tests/package_slurm.sh [NUM_JOBS]
# Needs root, debootstrap or a root that slurm_roots.sh has made, and crates.io for the two programs that make packages; where one
# of them is missing it says so and is skipped. PLEACH_PACKAGE: a package that was built before is taken, with PLEACH_RPM.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
fail() { echo "package_slurm: $*" >&2; exit 1; }
skip() { echo "package_slurm: skipped, $*"; exit 0; }
# The block of commands below a mark of the document.
block() {
  awk -v mark="<!-- set-up: $1 -->" '$0 == mark { of = 1; next } of && /^```/ { if (inside) exit; inside = 1; next } inside { print; n++ }
    END { exit n == 0 }' "$top/docs/deploy-slurm.md" || fail "docs/deploy-slurm.md has no block $1"
}
run_block() { echo "--- $1"; block "$1"; bash -euo pipefail -c "$(block "$1")" || fail "the block $1 failed"; }

outside() {
  local release=22.05 tools=${PLEACH_SLURM_CACHE:-$HOME/.cache/pleach}/cargo-tools out
  [ "$(id -u)" = 0 ] || skip 'it has to be root'
  "$here/slurm_roots.sh" where "$release" > /dev/null 2>&1 || "$here/slurm_roots.sh" make "$release" ||
    skip 'no root of a clean Debian can be made here (Debian: debootstrap)'
  out=$(mktemp -d /tmp/pleach-package.XXXXXX)
  # shellcheck disable=SC2064 # Now.
  trap "rm -rf $out" EXIT
  if [ -n "${PLEACH_PACKAGE:-}" ]; then
    cp "$PLEACH_PACKAGE" "$out/pleach-daemon.deb"
    [ -z "${PLEACH_RPM:-}" ] || cp "$PLEACH_RPM" "$out/pleach-daemon.rpm"
  else
    command -v cargo > /dev/null || skip 'cargo is not here'
    # Installed once, into the cache and nowhere else.
    export CARGO_INSTALL_ROOT=$tools PATH="$tools/bin:$PATH"
    (cd "$top" && block deb | head -1 | timeout 1800 bash -e) || skip 'cargo-deb cannot be fetched from here'
    (cd "$top" && run_block deb && run_block rpm)
    cp "$top"/target/pleach-daemon.{deb,rpm} "$out"
  fi
  PLEACH_ROOT_OUT=$out timeout 900 "$here/slurm_roots.sh" boot "$release" bash /repo/deploy/daemon/tests/package_slurm.sh inside "$@"
}

pid() { systemctl show -P MainPID pleach-scheduler; }

inside() {
  local num_jobs=${1:-300}
  local dir=/srv/slurm
  mkdir -p "$dir"; chmod 755 "$dir"
  # One GPU type, on which the tree decides itself.
  export PLEACH_SLURM_PRIORITY PLEACH_SLURM_NODES='g1:a100:4 g2:a100:4 g3:a100:8'
  PLEACH_SLURM_PRIORITY=$(block slurm.conf | sed -n 's|^PriorityType=priority/||p')
  echo '1. The package, in a clean system'
  getent passwd pleach > /dev/null && fail 'the account is there before the package'
  cd /out && run_block install > /tmp/install.log 2>&1 || { cat /tmp/install.log >&2; fail 'it cannot be installed'; }
  cd /
  id pleach
  [ "$(getent passwd pleach | cut -d: -f7)" = /usr/sbin/nologin ] || fail 'the account has a shell'
  dpkg -L pleach-daemon | grep -v '/$' | while read -r path; do [ -d "$path" ] || echo "$path"; done | sort > /srv/deb.txt
  cat /srv/deb.txt

  echo '2. As an operator with slurmdbd'
  # shellcheck source=deploy/daemon/tests/slurm_accounting.sh
  PLEACH_SLURM_ACCOUNTING=1; . "$here/slurm_accounting.sh"
  # shellcheck source=deploy/daemon/tests/slurm_cluster.sh
  . "$here/slurm_cluster.sh"
  # systemd's control groups beside the machine's would make slurmd ask which it should use.
  mkdir -p "$dir/etc"; echo CgroupPlugin=cgroup/v1 > "$dir/etc/cgroup.conf"
  slurm_start "$dir" || { cat "$dir"/log/*.log >&2; fail 'Slurm does not start'; }
  mkdir -p /etc/slurm; ln -sf "$SLURM_CONF" /etc/slurm/slurm.conf; unset SLURM_CONF
  run_block operator
  users=(games irc); sacctmgr -i add account people > /dev/null; for user in "${users[@]}"; do sacctmgr -i add user name=$user account=people > /dev/null; done
  # The forecaster's program is not of the package.
  [ -e /usr/bin/pleach ] || ln -s /bin/true /usr/bin/pleach
  for unit in scheduler capture forecasts; do
    systemd-analyze verify "pleach-$unit.service" || fail "systemd does not take the unit $unit as it is"
    systemd-analyze security --offline=true --threshold=30 --no-pager "pleach-$unit.service" > /tmp/security.txt ||
      { cat /tmp/security.txt; fail "the unit $unit may more than it needs"; }
    tail -1 /tmp/security.txt
  done
  run_block policy; run_block look; run_block live
  drive_jobs "$num_jobs" order
  [ "$(ps -o user= -p "$(pid)")" = pleach ] || fail 'it is not the account of the unit'
  scontrol -o show job > /tmp/jobs.txt
  grep -q 'JobId=' /tmp/jobs.txt && ! grep -q 'AdminComment=pleach' /tmp/jobs.txt || fail 'a mark was written, or the jobs are forgotten'
  # What it may not, though Slurm lets operators change accounts.
  for denied in 'scontrol update nodename=g1 state=drain reason=x' 'scontrol reconfigure'; do
    runuser -u pleach -- $denied > /tmp/denied.txt 2>&1 && fail "the account may: $denied"
  done
  before=$(pid); systemctl reload pleach-scheduler; sleep 3
  [ "$(pid)" = "$before" ] || fail 'a reload ended it'
  run_block back
  slurm_stop "$dir"

  echo '3. As SlurmUser without slurmdbd'
  PLEACH_SLURM_ACCOUNTING=0
  rm -rf "$dir" /var/lib/pleach /etc/slurm/slurm.conf
  mkdir -p "$dir/etc"; chmod 755 "$dir"; echo CgroupPlugin=cgroup/v1 > "$dir/etc/cgroup.conf"
  slurm_start "$dir"; ln -sf "$SLURM_CONF" /etc/slurm/slurm.conf; unset SLURM_CONF
  run_block slurm-user; run_block live
  drive_jobs 60 slurm
  [ "$(ps -o user= -p "$(pid)")" = slurm ] || fail 'it is not SlurmUser'
  systemctl disable --now pleach-scheduler
  slurm_stop "$dir"

  echo '4. Taken away, and the RPM'
  apt-get remove -y pleach-daemon > /dev/null 2>&1 || fail 'it cannot be removed'
  [ ! -e /usr/bin/pleach-scheduler ] && [ -e /etc/pleach.toml ] || fail 'the configuration has to stay, the program not'
  [ ! -s /out/pleach-daemon.rpm ] || rpm_has_the_same
  echo "package_slurm: $num_jobs jobs as an operator and 60 as SlurmUser on $version, none lost: all as documented"
}

# As users, in any order of sizes; each ends once.
drive_jobs() { # NUM WHO
  local num=$1 out=/srv/jobs-$2 number user jobs=0 end left
  mkdir -p "$out"; : > "$out/ends"; : > "$out/starts"; chmod 777 "$out"; chmod 666 "$out"/*
  printf '#!/bin/bash\necho "$SLURM_JOB_ID" >> %s/starts\nsleep "$1"\necho "$SLURM_JOB_ID" >> %s/ends\n' "$out" "$out" > "$out/job.sh"
  version=$(scontrol --version)
  for number in $(seq "$num"); do
    user=${users[$((number % 2))]}
    setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups sbatch --parsable -D / -o /dev/null -e /dev/null \
      "--gres=gpu:$((number % 4 + 1))" -t $((number % 50 + 1)) "$out/job.sh" "0.$((number % 7 + 1))" >> "$out/jobs"
    # All GPUs are taken for a while, so that jobs wait.
    [ "$number" != $((num / 4)) ] || for number in 4 4 8; do
      runuser -u games -- sbatch --parsable -D / -o /dev/null -e /dev/null "--gres=gpu:$number" -t 60 "$out/job.sh" 20 >> "$out/jobs"
    done
    jobs=$((jobs + 1))
    [ "$jobs" != $((num / 2)) ] || most_are_ranked
  done
  end=$((SECONDS + 60 + num))
  until [ -z "$(squeue -h -a)" ]; do [ $SECONDS -lt $end ] || { squeue; fail 'jobs are left over'; }; sleep 0.5; done
  left=$(sort "$out/jobs" | comm -3 - <(sort "$out/ends") | wc -l)
  [ "$left" = 0 ] || fail "$left of $((jobs + 3)) jobs were lost or ended twice"
  [ "$(sort "$out/starts" | uniq -d | wc -l)" = 0 ] || fail 'a job was started twice'
  pleach-scheduler --config /etc/pleach.toml status
}
most_are_ranked() {
  for _ in $(seq 50); do [ "$(sprio -h -o %S | awk '$1 > 0' | wc -l)" -lt 5 ] || return 0; sleep 0.2; done
  systemctl status pleach-scheduler >&2
  fail "in the midst of the jobs only $(sprio -h -o %S | awk '$1 > 0' | wc -l) have a factor"
}

rpm_has_the_same() {
  command -v rpm > /dev/null || { echo 'the RPM is not installed: rpm is not here'; return 0; }
  rpm -qpl /out/pleach-daemon.rpm | sort > /srv/rpm.txt
  grep -vx '/usr/share/doc/pleach-daemon/copyright' /srv/deb.txt | diff - /srv/rpm.txt || fail 'the packages have other files'
  userdel pleach; rm -f /etc/pleach.toml
  rpm -i --nodeps /out/pleach-daemon.rpm || fail 'the RPM cannot be installed'
  id pleach && pleach-scheduler --version && rpm -e pleach-daemon || fail 'the RPM is not whole'
}

if [ "${1:-}" = inside ]; then shift; inside "$@"; else outside "$@"; fi
