# slurmdbd and its database in the folder of a cluster, on loopback. Sourced; needs root, slurmdbd, mariadbd and mariadb-install-db.
#   accounting_is_here
#   accounting_start DIR    starts both; PLEACH_SLURM_ACCOUNTING of slurm_cluster.sh makes the controller ask them
#   accounting_stop DIR     ends them by their process ids
# Ports: PLEACH_SLURM_PORT + 10 (slurmdbd) and + 11 (the database).
# shellcheck disable=SC2154 # slurm_user is of slurm_cluster.sh

accounting_is_here() { command -v slurmdbd && command -v mariadbd && command -v mariadb-install-db; } > /dev/null

accounting_start() {
  local dir=$1 port=${PLEACH_SLURM_PORT:-16817} word
  word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  mkdir -p "$dir"/db "$dir"/db-run
  chown mysql: "$dir"/db "$dir"/db-run
  mariadb-install-db --no-defaults --user=mysql --datadir="$dir/db" --skip-test-db > "$dir/etc/install-db.log" 2>&1
  # Small and careless of a power cut: it lives as long as the test.
  mariadbd --no-defaults --user=mysql --datadir="$dir/db" --bind-address=127.0.0.1 --port=$((port + 11)) \
    --socket="$dir/db-run/socket" --innodb-buffer-pool-size=64M \
    --innodb-flush-log-at-trx-commit=0 --loose-innodb-snapshot-isolation=OFF > "$dir/etc/mariadbd.log" 2>&1 &
  echo $! > "$dir/etc/mariadbd.pid"
  accounting_waits "$dir/etc/mariadbd.log" mariadb-admin --no-defaults --socket="$dir/db-run/socket" ping
  mariadb --no-defaults --socket="$dir/db-run/socket" -e "create user slurm@'127.0.0.1' identified by '$word';
    create user slurm@localhost identified by '$word';
    grant all on slurm_acct_db.* to slurm@'127.0.0.1'; grant all on slurm_acct_db.* to slurm@localhost"
  (umask 077; cat > "$dir/etc/slurmdbd.conf") <<CONF
AuthType=auth/munge
AuthInfo=socket=$dir/run/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((port + 10))
SlurmUser=$slurm_user
LogFile=$dir/log/slurmdbd.log
PidFile=$dir/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((port + 11))
StorageUser=slurm
StoragePass=$word
CONF
  chown "$slurm_user" "$dir/etc/slurmdbd.conf"
  SLURM_CONF=$dir/etc/slurm.conf slurmdbd
  accounting_waits "$dir/log/slurmdbd.log" env "SLURM_CONF=$dir/etc/slurm.conf" sacctmgr -n show cluster
}

accounting_waits() { # LOG COMMAND...
  local log=$1; shift
  for _ in $(seq 150); do "$@" > /dev/null 2>&1 && return; sleep 0.2; done
  echo "not within 30 s: $*" >&2; tail -20 "$log" >&2
  return 1
}

accounting_stop() {
  local dir=$1 file
  for file in "$dir/run/slurmdbd.pid" "$dir/etc/mariadbd.pid"; do
    [ -s "$file" ] || continue
    kill "$(cat "$file")" 2> /dev/null || true
    for _ in $(seq 100); do pgrep -F "$file" > /dev/null 2>&1 || break; sleep 0.1; done
  done
}
