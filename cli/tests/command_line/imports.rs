//! From a site's `sacct` export to a described and simulated list, and clusters by description and short form.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{pleach, succeed, text};

const NODES: &str = "NODELIST|GRES|CPUS|MEMORY|PARTITION\na[1-6]|gpu:a100:8(S:0-1)|128|1030000|gpu*\n\
    v[1-6]|gpu:v100:8(S:0-1)|64|515000|gpu*\na[1-6]|gpu:a100:8(S:0-1)|128|1030000|fast\n";
const HEADER: &str = "JobID|User|Account|Partition|QOS|Submit|Eligible|Start|End|Elapsed|Timelimit|State|ReqTRES|AllocTRES|NodeList\n";
/// Midnight of 1 March 2024, UTC.
const FIRST: u64 = 1_709_251_200;

/// Draws for the synthetic site.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// `2024-03-01T00:00:00` and so on, for March and April 2024.
fn clock(unix_s: u64) -> String {
    let (day, second) = ((unix_s - FIRST) / 86_400, unix_s % 86_400);
    let (month, day) = match day {
        0..31 => (3, day + 1),
        31..61 => (4, day - 30),
        _ => (5, day - 60),
    };
    format!(
        "2024-{month:02}-{day:02}T{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn span(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    format!("{days}-{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Two months of a site of 12 nodes x 8 GPUs of two types: jobs in the order of submission, each on the nodes that have room first;
/// with steps, an array that never began, jobs on CPUs and one that was cancelled while it waited.
fn export() -> String {
    let mut draws = Draws(7);
    let mut free_at = vec![[0_u64; 8]; 12];
    let mut out = HEADER.to_owned();
    let mut submit = FIRST;
    for id in 1..=1400_u64 {
        submit += draws.below(7200);
        let num_gpus = [1, 1, 1, 2, 2, 4, 4, 8, 16][draws.below(9) as usize];
        let run = 600 + draws.below(12) * draws.below(12) * 1500;
        let partition = if draws.below(5) == 0 { "fast" } else { "gpu" };
        let usable = if partition == "fast" { 0..6 } else { 0..12 };
        let (num_nodes, each) = if num_gpus > 8 { (2, 8) } else { (1, num_gpus) };
        let mut places: Vec<(u64, usize)> = usable
            .map(|node| {
                let mut free = free_at[node];
                free.sort_unstable();
                (free[each - 1].max(submit), node)
            })
            .collect();
        places.sort_unstable();
        // A gang is on one type.
        let first = places[0].1 / 6;
        places.retain(|(_, node)| node / 6 == first);
        let chosen = &places[..num_nodes];
        let start = chosen.iter().map(|(at, _)| *at).max().unwrap();
        for (_, node) in chosen {
            free_at[*node].sort_unstable();
            free_at[*node][..each].fill(start + run);
        }
        let of_type = ["a100", "v100"][first];
        let names: Vec<String> = chosen
            .iter()
            .map(|(_, node)| format!("{}{}", &of_type[..1], node % 6 + 1))
            .collect();
        let account = ["vision", "speech", "robots"][draws.below(3) as usize];
        let state =
            ["COMPLETED", "COMPLETED", "FAILED", "CANCELLED by 1000", "TIMEOUT"][draws.below(5) as usize];
        let asked = format!("billing=4,cpu={num_gpus},gres/gpu={num_gpus},mem=64G,node={num_nodes}");
        let had = format!(
            "billing=4,cpu={num_gpus},gres/gpu:{of_type}={num_gpus},gres/gpu={num_gpus},mem=64G,node={num_nodes}"
        );
        let (began, ended) = (clock(start), clock(start + run));
        let at = clock(submit);
        let head = format!("ann{}|{account}|{partition}|normal|{at}|{at}", draws.below(20));
        let tail = format!(
            "{began}|{ended}|{}|{}|{state}|{asked}|{had}|{}",
            span(run),
            span(run * 2),
            names.join(",")
        );
        writeln!(out, "{id}|{head}|{tail}").unwrap();
        if id % 10 == 0 {
            writeln!(
                out,
                "{id}.batch||{account}||||{at}|{began}|{ended}|{}||COMPLETED||cpu=4|{}",
                span(run),
                names[0]
            )
            .unwrap();
        }
    }
    let at = clock(submit);
    writeln!(out, "1401_[0-99%4]|ann1|vision|gpu|normal|{at}|{at}|Unknown|Unknown|00:00:00|1-00:00:00|PENDING|gres/gpu=1||None assigned").unwrap();
    writeln!(out, "1402|ann1|vision|gpu|normal|{at}|{at}|None|{at}|00:00:00|UNLIMITED|CANCELLED by 7|gres/gpu=1||None assigned").unwrap();
    writeln!(
        out,
        "1403|ann1|vision|cpu|normal|{at}|{at}|{at}|{at}|00:10:00|UNLIMITED|COMPLETED|cpu=4|cpu=4|c1"
    )
    .unwrap();
    out
}

fn site(folder: &Path) {
    fs::write(folder.join("sacct.txt"), export()).unwrap();
    fs::write(folder.join("nodes.txt"), NODES).unwrap();
}

#[test]
fn two_months_of_a_site_are_imported_described_and_simulated_without_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    site(folder.path());
    let say = |line: &str| succeed(folder.path(), line);
    let said = say("workload import sacct.txt --nodes nodes.txt --to month.csv");
    for words in [
        "1543 rows read, 1400 kept, 143 left out",
        "left out: a step of a job, whose job has a row of its own: 140 rows",
        "left out: tasks of an array that had not begun: 1 rows",
        "left out: never began: 1 rows",
        "left out: asks for no GPU: 1 rows",
        "day 0 is 2024-03-01",
        "cluster: the 12 nodes of the list of nodes",
        "submit = Submit",
        "month.mapping.toml",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // How each job went stays with it; jobs of the fast partition keep to its type.
    let list = fs::read_to_string(folder.path().join("month.csv")).unwrap();
    assert!(
        list.starts_with("job_id,submit_s,")
            && list.contains("observed_start_s,observed_end_s,observed_nodes,partition,qos")
    );
    let sidecar = fs::read_to_string(folder.path().join("month.cluster.toml")).unwrap();
    assert!(
        sidecar.contains("\"any\"") && sidecar.contains("\"a100\""),
        "{sidecar}"
    );
    let said = say("workload describe --workload month.csv --policy easy");
    assert!(said.contains("96") && !said.contains("NaN"), "{said}");
    let said = say("evaluate --workload month.csv --policy fifo,easy,sjf");
    assert!(said.contains("easy") && said.contains("sjf"), "{said}");
    // What happened beside what is simulated, in tables of at most 80 columns.
    let said = say("twin --workload month.csv --policy fifo --json twin.json");
    assert!(
        said.contains("partition fast") && said.contains("tenant vision"),
        "{said}"
    );
    assert!(
        said.contains("rank correlation") && said.contains("Weeks"),
        "{said}"
    );
    let wide = said
        .lines()
        .filter(|line| line.contains("tenant") || line.contains("partition"));
    assert!(
        wide.clone().count() > 4 && wide.into_iter().all(|line| line.len() <= 80),
        "{said}"
    );
    let figures: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("twin.json")).unwrap()).unwrap();
    assert_eq!(figures["groups"][0]["num_jobs"], 1400);
    // A site that plans every waiting job may be what the twin is held to, and what is fitted.
    let said = say("twin --workload month.csv --policy conservative");
    assert!(said.contains("simulated under conservative"), "{said}");
    let said = say("twin --workload month.csv --policy conservative,fifo --fit");
    assert!(said.contains("fitted on the first"), "{said}");
    // The mapping that was written reads the same list.
    let again = say(
        "workload import sacct.txt --nodes nodes.txt --mapping month.mapping.toml --to month.csv --force",
    );
    assert!(again.contains("1400 jobs"), "{again}");
    assert_eq!(fs::read_to_string(folder.path().join("month.csv")).unwrap(), list);
    // And the export itself, under a cluster in the short form or none at all.
    let said = say("workload describe --workload sacct.txt --cluster 6x8:A100,6x8:V100 --no-simulate");
    assert!(said.contains("cluster, assumed: A100 has 80 GiB"), "{said}");
    let said = say("workload describe --workload sacct.txt --no-simulate");
    assert!(said.contains("6x8:a100,6x8:v100"), "{said}");
}

#[test]
fn clusters_are_written_checked_and_shown_and_all_mistakes_are_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("nodes.txt"), NODES).unwrap();
    let say = |line: &str| succeed(folder.path(), line);
    let said = say("cluster init 12x8:A100,4x4:V100 --to site.toml");
    assert!(
        said.contains("16 nodes, 112 GPUs") && said.contains("assumed"),
        "{said}"
    );
    assert!(say("cluster check site.toml").contains("nothing is wrong"));
    let shown = say("cluster show site.toml");
    assert!(shown.contains("A100") && shown.contains("may borrow"), "{shown}");
    say("cluster init --nodes nodes.txt --to seen.toml");
    assert!(say("cluster show seen.toml").contains("a100"));
    assert!(say("cluster check 12x8:A100").contains("racks of 16 nodes"));
    let in_the_way = pleach(folder.path(), "cluster init 1x8 --to site.toml");
    assert_eq!(in_the_way.status.code(), Some(2));
    fs::write(
        folder.path().join("bad.toml"),
        "[[node_groups]]\ncount = 0\ngpus_per_node = \"8\"\ntype = \"A\"\n",
    )
    .unwrap();
    let refused = pleach(folder.path(), "cluster check bad.toml");
    let words = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    for named in ["gpus_per_node", "gpu_type: missing", "type: no such key"] {
        assert!(words.contains(named), "{named}: {words}");
    }
    // A list of three columns needs no more than a short form.
    fs::write(
        folder.path().join("jobs.csv"),
        "submit_s,num_gpus,run_time_s\n0,1,3600\n12.5,8,86400\n",
    )
    .unwrap();
    let said = say("evaluate --workload jobs.csv --cluster 2x8:A100 --policy fifo,sjf");
    assert!(said.contains("cluster, assumed"), "{said}");
    let said =
        say("evaluate --workload philly-like --num-jobs 20 --seeds 1 --cluster 40x8:A100 --policy fifo");
    assert!(said.contains("cluster, assumed"), "{said}");
    let unknown = text(
        &pleach(
            folder.path(),
            "evaluate --workload jobs.csv --cluster nowhere.toml",
        )
        .stderr,
    );
    assert!(
        unknown.contains("16x8:A100") && unknown.contains("pleach cluster init"),
        "{unknown}"
    );
}

#[test]
fn a_refused_command_leaves_nothing_that_blocks_the_corrected_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("jobs.csv"),
        "submit_s,num_gpus,run_time_s\n0,1,3600\n12.5,8,86400\n",
    )
    .unwrap();
    for (refused, corrected) in [
        (
            "workload describe --workload jobs.csv --out look",
            "workload describe --workload jobs.csv --cluster 1x8 --out look",
        ),
        (
            "workload import sacct.txt --nodes missing.txt --to month.csv",
            "workload import sacct.txt --nodes nodes.txt --to month.csv",
        ),
        (
            "cluster init 12x8:A100,3z --to site.toml",
            "cluster init 12x8:A100,3x1 --to site.toml",
        ),
    ] {
        site(folder.path());
        let output = pleach(folder.path(), refused);
        assert_ne!(
            output.status.code(),
            Some(0),
            "{refused}: {}",
            text(&output.stdout)
        );
        succeed(folder.path(), corrected);
    }
}
