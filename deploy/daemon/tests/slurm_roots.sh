#!/usr/bin/env bash
# Releases of Slurm side by side on one machine, each in the root of the Debian that has it, made once and kept. Needs root, and
# debootstrap with a mirror to make one.
#   deploy/daemon/tests/slurm_roots.sh make RELEASE          makes the root where it is not there yet: three minutes, 0.7 GB
#   deploy/daemon/tests/slurm_roots.sh where RELEASE         prints its folder, or says that it is not there and fails
#   deploy/daemon/tests/slurm_roots.sh run RELEASE COMMAND   runs it in a copy that is thrown away, with the repository at /repo, the folder
#                                                     PLEACH_ROOT_OUT at /out, and a network and processes of its own: no port is
#                                                     anybody else's, and nothing that it starts outlives it
#   deploy/daemon/tests/slurm_roots.sh boot RELEASE COMMAND  the same under systemd as the first process
# RELEASE is 22.05, 24.11 or 26.05. PLEACH_SLURM_CACHE: where roots are kept, ~/.cache/pleach by default. PLEACH_DEBIAN_MIRROR: where
# Debian is fetched from.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
roots=${PLEACH_SLURM_CACHE:-$HOME/.cache/pleach}/slurm-roots
mirror=${PLEACH_DEBIAN_MIRROR:-http://deb.debian.org/debian}
declare -A suites=([22.05]=bookworm [24.11]=trixie [26.05]=forky)
# The database without the package that sets up a server of the machine's: that one starts it, or fails where it cannot.
packages=(munge procps slurmctld slurmd slurm-client slurm-wlm-basic-plugins slurmdbd slurm-wlm-mysql-plugin
  mariadb-server-core mariadb-client faketime python3 rpm systemd)
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
what=${1:-} release=${2:-} boot=${PLEACH_ROOT_BOOT:-0}
suite=${suites[$release]:-}
[ -n "$suite" ] || { echo "RELEASE = $release: allowed are ${!suites[*]}" >&2; exit 2; }
root=$roots/$release

make_root() {
  local part=$root.part script=()
  [ ! -e "$root" ] || return 0
  [ "$(id -u)" = 0 ] && command -v debootstrap > /dev/null || { echo 'slurm_roots: needs root and debootstrap' >&2; return 1; }
  # A debootstrap that is older than the suite makes it as it makes unstable.
  [ -e "/usr/share/debootstrap/scripts/$suite" ] || script=(sid)
  rm -rf "$part"
  mkdir -p "$roots"
  debootstrap --variant=minbase "$suite" "$part" "$mirror" "${script[@]}" > "$roots/$release.log" 2>&1 || return 1
  # What is installed starts nothing.
  printf '#!/bin/sh\nexit 101\n' > "$part/usr/sbin/policy-rc.d"
  chmod 755 "$part/usr/sbin/policy-rc.d"
  chroot "$part" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}" \
    >> "$roots/$release.log" 2>&1 || return 1
  chroot "$part" useradd --system --user-group --no-create-home --shell /usr/sbin/nologin mysql
  chroot "$part" apt-get clean
  mv "$part" "$root"
}

# Inside of the new namespaces, before the root is changed.
enter() {
  local top=$1; shift
  # A file system of its own: what an overlay lies over may not be one itself.
  mkdir -p "$top"/{upper,work,root}
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$top/upper,workdir=$top/work" "$top/root"
  mkdir -p "$top/root"/{repo,out,proc,dev,sys}
  mount --bind "$here/../../.." "$top/root/repo"
  mount -o remount,ro,bind "$top/root/repo"
  mount --bind "$PLEACH_ROOT_OUT" "$top/root/out"
  mount -t proc proc "$top/root/proc"
  mount --rbind /dev "$top/root/dev"
  mount --rbind /sys "$top/root/sys"
  hostname pleach; echo pleach > "$top/root/etc/hostname"
  older_database_client "$top/root"
  if [ "$boot" = 1 ]; then boot "$top/root" "$@"; set -- /lib/systemd/systemd --unit=pleach-test.service; fi
  printf '127.0.0.1 localhost pleach\n' > "$top/root/etc/hosts"
  ip link set lo up
  # slurmdbd listens nowhere where loopback alone has an address.
  ip link add pleach0 type bridge; ip address add 192.0.2.1/24 dev pleach0; ip link set pleach0 up
  exec chroot "$top/root" env -i "PATH=$path" HOME=/root LANG=C.UTF-8 container=pleach "$@"
}

# Debian's libmariadb3 11.8.9 ends each query of slurmdbd of 24.11 and 26.05 with error 5027 ("maximum allowed number of columns (=0)"):
# slurmdbd gets the one of Debian 12, from the root of 22.05 where that is there.
older_database_client() { # ROOT
  local root=$1 library=usr/lib/x86_64-linux-gnu/libmariadb.so.3
  [ "$release" != 22.05 ] && [ -e "$roots/22.05/$library" ] || return 0
  mkdir -p "$root/usr/local/lib/pleach"
  cp -L "$roots/22.05/$library" "$root/usr/local/lib/pleach/"
  printf '#!/bin/sh\nLD_LIBRARY_PATH=/usr/local/lib/pleach exec /usr/sbin/slurmdbd "$@"\n' > "$root/usr/local/sbin/slurmdbd"
  chmod 755 "$root/usr/local/sbin/slurmdbd"
}

# A systemd that starts the command alone, and ends with it.
boot() { # ROOT COMMAND...
  local root=$1; shift
  mount -t tmpfs tmpfs "$root/run"
  umount -l "$root/sys"; mount -t sysfs sysfs "$root/sys"; mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  : > "$root/etc/machine-id"
  printf '%q ' "$@" > "$root/command"
  cat > "$root/etc/systemd/system/pleach-test.service" <<UNIT
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
Environment=HOME=/root PATH=$path LANG=C.UTF-8
ExecStart=/bin/bash -c 'bash /command > /out/log 2>&1; echo \$? > /out/rc'
ExecStopPost=systemctl exit
UNIT
}

case $what in
  make) make_root || { tail -5 "$roots/$release.log" >&2 2> /dev/null || true; echo "slurm_roots: no root of $release" >&2; exit 1; } ;;
  where) [ -d "$root" ] && echo "$root" || { echo "no root of Slurm $release; made by: $0 make $release" >&2; exit 1; } ;;
  run | boot)
    shift 2
    [ "$what" = run ] || export PLEACH_ROOT_BOOT=1
    [ -d "$root" ] || { echo "no root of Slurm $release; made by: $0 make $release" >&2; exit 1; }
    top=$(mktemp -d /tmp/pleach-root.XXXXXX)
    export PLEACH_ROOT_OUT=${PLEACH_ROOT_OUT:-$top/out}
    mkdir -p "$PLEACH_ROOT_OUT"
    # Killed, the first process of the namespace takes all others with it.
    space=(unshare --mount --pid --net --uts --ipc --fork --kill-child "$0" enter "$release" "$top")
    exec 3>&1
    [ "$what" = run ] || { exec 3> "$PLEACH_ROOT_OUT/systemd.log"; : > "$PLEACH_ROOT_OUT/log"; rm -f "$PLEACH_ROOT_OUT/rc"; }
    "${space[@]}" "$@" >&3 &
    inside=$!
    trap 'kill -9 $inside 2> /dev/null || true; wait $inside 2> /dev/null || true; rm -rf --one-file-system "$top"' EXIT
    trap 'exit 143' TERM INT
    shown=
    [ "$what" = run ] || { tail -n +1 -f --pid=$inside "$PLEACH_ROOT_OUT/log" & shown=$!; }
    rc=0; wait $inside || rc=$?
    [ "$what" = run ] || wait $shown || true
    [ "$what" = run ] || rc=$(cat "$PLEACH_ROOT_OUT/rc") || { tail -20 "$PLEACH_ROOT_OUT/systemd.log" >&2; rc=1; }
    exit "$rc"
    ;;
  enter) shift 2; enter "$@" ;;
  *) sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2 ;;
esac
