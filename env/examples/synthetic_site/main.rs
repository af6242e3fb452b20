//! A site that does not exist: twelve nodes of eight GPUs of two types, driven for some weeks by EASY backfill with time limits (a
//! batch system of its own, `easy.rs`), and what its `sacct` and `scontrol` would print, with the dirt that real ones have
//! (docs/tutorials/operator.md).
//!
//! `cargo run --release -p pleach-env --example synthetic_site -- FOLDER [DAYS]` writes `sacct.txt` and `nodes.txt`.

use std::fmt::Write as _;
use std::path::Path;

use pleach_env::Seed;
use pleach_scheduler::portable_math::{exp, ln};
use rand::{Rng, RngExt as _};

mod easy;

use easy::{Asked, Ran};

/// Midnight of 1 March 2026, UTC, as the clock of the list.
const HEADER: &str = "JobID|User|Account|Partition|QOS|Submit|Eligible|Start|End|Elapsed|Timelimit|State|ReqTRES|AllocTRES|NodeList\n";
const ACCOUNTS: [&str; 3] = ["vision", "speech", "robots"];
const TYPES: [&str; 2] = ["a100", "v100"];
const DAY_S: f64 = 86_400.0;
/// Jobs of a day.
const JOBS_A_DAY: f64 = 76.0;

/// `2026-03-01T00:00:00` and so on until May.
fn clock(second: f64) -> String {
    let (day, second) = ((second / DAY_S) as u64, (second % DAY_S) as u64);
    let (month, day) = match day {
        0..31 => (3, day + 1),
        31..61 => (4, day - 30),
        _ => (5, day - 60),
    };
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}",
        second % 60
    )
}

fn span(seconds: f64) -> String {
    let (days, rest) = ((seconds / DAY_S) as u64, (seconds % DAY_S) as u64);
    format!("{days}-{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

fn between(rng: &mut impl Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.random_range(0.0..1.0)
}

/// A job, and whose it is.
struct Job {
    asked: Asked,
    user: u64,
    /// Whether it is of the partition that has the nodes of the first type alone.
    is_fast: bool,
}

/// Jobs of thirty users with habits, more of them by day than by night and at weekends.
fn jobs(days: f64) -> Vec<Job> {
    let mut rng = Seed(7).stream("synthetic site", 0);
    let limits_s = [1.0, 2.0, 4.0, 8.0, 12.0, 24.0, 48.0, 96.0].map(|hours| hours * 3600.0);
    let mut jobs = Vec::new();
    let mut at_s = 0.0;
    while at_s < days * DAY_S {
        let (hour, weekday) = ((at_s / 3600.0) % 24.0, (at_s / DAY_S) as u64 % 7);
        let busy = if (9.0..19.0).contains(&hour) { 1.8 } else { 0.45 };
        let busy = if weekday == 0 || weekday == 6 {
            0.4 * busy
        } else {
            busy
        };
        at_s += -ln(1.0 - rng.random_range(0.0..1.0)) * DAY_S / JOBS_A_DAY / busy;
        let user = rng.random_range(0..30_u64);
        let mut habit = Seed(user).stream("habits", 0);
        let usual_s = exp(between(&mut habit, ln(900.0), ln(60_000.0)));
        let sizes = [1, 1, 1, 2, 2, 4, 4, 8, 8, 16];
        let num_gpus = sizes[(habit.random_range(0..10_usize) + rng.random_range(0..3_usize)) % 10];
        let spread: f64 = (0..3).map(|_| between(&mut rng, -1.0, 1.0)).sum();
        let run_s = (usual_s * exp(spread)).clamp(45.0, 3.5 * DAY_S).round();
        let asked_s = run_s * between(&mut rng, 1.1, 4.0);
        let limit_s = limits_s
            .into_iter()
            .find(|limit| *limit >= asked_s)
            .unwrap_or(limits_s[7]);
        let is_fast = rng.random_range(0..6_u32) == 0;
        let asked = Asked {
            submit_s: at_s.floor(),
            num_gpus,
            run_s,
            limit_s,
            pools: [0..6, 6..12][..if is_fast { 1 } else { 2 }].to_vec(),
        };
        jobs.push(Job { asked, user, is_fast });
    }
    jobs
}

/// `a01,a02` of what a job held.
fn nodes(ran: &Ran) -> Vec<String> {
    let name = |(node, _): &(usize, u32)| format!("{}{:02}", &TYPES[node / 6][..1], node % 6 + 1);
    ran.held.iter().map(name).collect()
}

/// What `sacct -P -D` prints at the end of so many days, and `scontrol show node -o`.
#[must_use]
pub fn exports(days: f64) -> (String, String) {
    let jobs = jobs(days);
    let asked: Vec<Asked> = jobs.iter().map(|job| job.asked.clone()).collect();
    let all = easy::play(&asked, 12, 8, 30.0);
    let now_s = days * DAY_S;
    let mut out = HEADER.to_owned();
    let mut rng = Seed(7).stream("dirt", 0);
    for (number, (job, ran)) in jobs.iter().zip(&all).enumerate() {
        // From the decision to the start it takes a moment.
        let start_s = ran.start_s + 5.0;
        let end_s = start_s + job.asked.run_s;
        let names = nodes(ran);
        let (of_type, account) = (ran.held[0].0 / 6, ACCOUNTS[(job.user % 3) as usize]);
        let partition = ["gpu", "fast"][usize::from(job.is_fast)];
        // Every tenth is a task of an array.
        let number = 4000 + number;
        let id = if number % 10 == 0 {
            format!("{number}_7")
        } else {
            number.to_string()
        };
        let at = clock(job.asked.submit_s);
        let asked = format!(
            "billing=8,cpu={},gres/gpu={},mem=64G,node={}",
            4 * job.asked.num_gpus,
            job.asked.num_gpus,
            names.len()
        );
        let had = format!("{asked},gres/gpu:{}={}", TYPES[of_type], job.asked.num_gpus);
        let limit = span(job.asked.limit_s);
        let head = format!("user{:02}|{account}|{partition}|normal|{at}|{at}", job.user);
        let (state, ended, ran_s) = match rng.random_range(0..12_u32) {
            _ if start_s >= now_s => ("PENDING", "Unknown".into(), 0.0),
            _ if end_s >= now_s => ("RUNNING", "Unknown".into(), now_s - start_s),
            0 => ("FAILED", clock(end_s), end_s - start_s),
            1 => ("CANCELLED by 1000", clock(end_s), end_s - start_s),
            2 => ("OUT_OF_MEMORY", clock(end_s), end_s - start_s),
            _ => ("COMPLETED", clock(end_s), end_s - start_s),
        };
        if state == "PENDING" {
            let _ = writeln!(
                out,
                "{id}|{head}|Unknown|Unknown|00:00:00|{limit}|PENDING|{asked}||None assigned"
            );
            continue;
        }
        let began = clock(start_s);
        let list = names.join(",");
        let _ = writeln!(
            out,
            "{id}|{head}|{began}|{ended}|{}|{limit}|{state}|{asked}|{had}|{list}",
            span(ran_s)
        );
        let _ = writeln!(
            out,
            "{id}.batch||{account}||||{at}|{began}|{ended}|{}||{state}||cpu=4|{}",
            span(ran_s),
            names[0]
        );
        // One job is cancelled while it waits, and one needs no GPU.
        if number % 25 == 0 {
            let _ = writeln!(
                out,
                "{}|{head}|None|{began}|00:00:00|{limit}|CANCELLED by 7|{asked}||None assigned",
                900_000 + number
            );
            let _ = writeln!(
                out,
                "{}|{head}|{began}|{ended}|{}|{limit}|COMPLETED|cpu=4,mem=8G|cpu=4,mem=8G|c01",
                950_000 + number,
                span(ran_s)
            );
        }
    }
    let mut shown = String::new();
    for node in 0..12 {
        let (of_type, number) = (TYPES[node / 6], node % 6 + 1);
        let partitions = ["gpu,fast", "gpu"][node / 6];
        let _ = writeln!(
            shown,
            "NodeName={}{number:02} Arch=x86_64 CPUTot=64 Gres=gpu:{of_type}:8(S:0-1) RealMemory=515000 State=IDLE Partitions={partitions}",
            &of_type[..1]
        );
    }
    shown.push_str(
        "NodeName=c01 Arch=x86_64 CPUTot=128 Gres=(null) RealMemory=515000 State=IDLE Partitions=cpu\n",
    );
    (out, shown)
}

/// Writes both into a folder.
///
/// # Errors
/// A folder that cannot be written.
pub fn write(folder: &Path, days: f64) -> std::io::Result<()> {
    let (accounting, shown) = exports(days);
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("sacct.txt"), accounting)?;
    std::fs::write(folder.join("nodes.txt"), shown)
}

#[allow(dead_code)] // Where a test takes this file in.
fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().unwrap_or_else(|| "site".into());
    let days = words.next().and_then(|days| days.parse().ok()).unwrap_or(61.0);
    write(Path::new(&folder), days)
}
