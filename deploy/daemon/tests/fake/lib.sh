# State of a Slurm of two nodes with four GPUs each, as one file of shell variables for each job.
d=$(cd "$(dirname "$0")/.." && pwd)

# Each command takes as long as a test says, s.
[ ! -e "$d/slow" ] || sleep "$(cat "$d/slow")"

# The time, Unix, s; a test may set it.
now() { cat "$d/now" 2>/dev/null || date +%s; }

load() { id= state=PENDING prio=1 gpus=1 node= req= mark= restarts=0 submit=1000 limit=10:00 reason=Resources start=N/A user= shards=0 idx= factor=0 nice=0 kind=gpu cpus=1 mem=1000 qos=normal account='(null)' feature= licence='(null)' shuns= begin=N/A part=main dep= over=OK asks= task=N/A inall=N/A name= batch=1 again=1 num=1 pergpu=N/A; . "$d/jobs/$1"; }

save() {
  cat > "$d/jobs/$id.part" <<END
id='$id' state='$state' prio='$prio' gpus='$gpus' node='$node' req='$req' mark='$mark' restarts='$restarts' submit='$submit' limit='$limit' start='$start' user='$user' shards='$shards' idx='$idx' factor='$factor' nice='$nice' kind='$kind' cpus='$cpus' mem='$mem' qos='$qos' account='$account' feature='$feature' licence='$licence' shuns='$shuns' begin='$begin' part='$part' dep='$dep' over='$over' asks='$asks' task='$task' inall='$inall' name='$name' batch='$batch' again='$again' num='$num' pergpu='$pergpu'
END
  mv "$d/jobs/$id.part" "$d/jobs/$id"
}

# Whole GPUs in use on node $1.
used() { cat "$d"/jobs/[0-9]* 2>/dev/null | grep "state='RUNNING'.*node='$1'" | grep -v "shards='[1-9]" | sed "s/.*gpus='\([0-9]*\)'.*/\1/" | awk '{ n += $1 } END { print n + 0 }'; }

# Shards in use of GPU $2 of node $1, which has four.
shards_of() { cat "$d"/jobs/[0-9]* 2>/dev/null | grep "state='RUNNING'.*node='$1'.*idx='$2'" | sed "s/.*shards='\([0-9]*\)'.*/\1/" | awk '{ n += $1 } END { print n + 0 }'; }

# Jobs by priority, which factors and users' own nice add up to, then by number.
by_priority() {
  for f in $(ls "$d/jobs" | grep -v part | sort -n); do load "$f"; echo "$((factor - nice)) $f"; done | sort -k1,1nr -k2,2n | cut -d' ' -f2
}

# What Slurm's own scheduler does: starts what is pending and not held, where it is to run or anywhere.
kick() {
  for f in $(by_priority); do
    load "$f"
    [ "$state" = PENDING ] && [ "$prio" -gt 0 ] && [ -z "$dep" ] && [ ! -e "$d/limit-$user" ] || continue
    if [ "$shards" -gt 0 ]; then
      for n in ${req:-g1 g2}; do
        for i in 0 1 2 3; do
          [ "$state" = PENDING ] && [ $(($(shards_of "$n" $i) + shards)) -le 4 ] || continue
          state=RUNNING node=$n idx=$i start=$(now); save
          echo "$id $n:$i" >> "$d/starts"
        done
      done
      continue
    fi
    for n in ${req:-g1 g2}; do
      case ",$shuns," in *",$n,"* | *'g[1-2]'*) continue ;; esac
      # Whose host memory is full it takes nobody, whatever `sinfo` says of its GPUs and CPUs.
      if [ $(($(used "$n") + gpus)) -le 4 ] && [ ! -e "$d/full-$n" ]; then
        state=RUNNING node=$n start=$(now); save
        echo "$id $n" >> "$d/starts"
        break
      fi
    done
  done
}
