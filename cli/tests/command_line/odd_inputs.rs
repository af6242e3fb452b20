//! What people type and give by mistake, and what each is answered: the place and the cause first, and what is allowed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::text;

/// After so long a command hangs.
const HANGS: Duration = Duration::from_secs(120);

const SACCT: &str =
    "JobID|JobName|Account|Partition|Submit|Start|End|Elapsed|Timelimit|State|AllocTRES|NodeList\n";
const NODES: &str = "NODELIST|GRES|CPUS|MEMORY|PARTITION\nn[1-2]|gpu:l40s:4|32|256000|batch\n";
const GRID: &str = "name = 'a'\nseeds = 2\n[base]\nworkload = 'philly-like'\nnum_jobs = 20\n[grid]\npolicy = ['fifo', 'sjf']\n";
const TREE: &str = "{\n  \"format\": \"pleach-tree\",\n  \"version\": 1\n}\n";

/// A month's accounting: a job a day from 14 June 2026 on.
fn accounting() -> String {
    let row = |day: u32| {
        let [submit, start, end] =
            ["08:00:00", "08:20:00", "09:20:00"].map(|clock| format!("2026-06-{day}T{clock}"));
        format!(
            "{day}|a|bio|batch|{submit}|{start}|{end}|01:00:00|04:00:00|COMPLETED|cpu=8,gres/gpu=2,node=1|n1\n"
        )
    };
    [SACCT.to_owned(), (14..=30).map(row).collect()].concat()
}

/// The files that the inputs name.
fn lay_out(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    super::succeed(
        folder,
        "workload write --workload philly-like --num-jobs 30 --to good.csv",
    );
    let good = fs::read_to_string(folder.join("good.csv")).unwrap();
    let cluster = fs::read(folder.join("good.cluster.toml")).unwrap();
    for (name, text) in [
        ("semicolon.csv", good.replace(',', ";")),
        ("tab.tsv", good.replace(',', "\t")),
        ("crlf.csv", good.replace('\n', "\r\n")),
        ("bom.csv", format!("\u{feff}{good}")),
        ("header.csv", good.lines().next().unwrap().to_owned()),
        ("empty.csv", String::new()),
    ] {
        write(name, text.as_bytes());
        let stem = name.split('.').next().unwrap();
        write(&format!("{stem}.cluster.toml"), &cluster);
    }
    let utf_16: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
    write("utf16.csv", &utf_16);
    super::succeed(folder, "workload write --workload good.csv --to packed.csv.gz");
    let packed = fs::read(folder.join("packed.csv.gz")).unwrap();
    write("torn.csv.gz", &packed[..packed.len() / 2]);
    write("torn.cluster.toml", &cluster);
    fs::create_dir(folder.join("nothing-in-it")).unwrap();
    write(
        "cells.csv",
        b"submit,duration,gpus\n0,2d,1\n0,3600,many\n5,soon,2\n0,1h30m,4\n",
    );
    write("decimal.csv", b"submit;duration;gpus\n0;3600;1,5\n0;3600;1\n");
    write("sacct.txt", accounting().as_bytes());
    write("nodes.txt", NODES.as_bytes());
    write("search.toml", GRID.as_bytes());
    write("tree.json", TREE.as_bytes());
    write("broken.toml", b"jobs = 'nothing.csv'\n");
    write(
        "requests.csv",
        b"arrival_s,prompt_tokens,output_tokens\n0,100,10\n1,200,0\n2,0,30\n3,5,5\n",
    );
    super::succeed(folder, "sweep plan --config search.toml --out sweep.json");
    super::succeed(
        folder,
        "workload import sacct.txt --nodes nodes.txt --to month.csv",
    );
}

/// An input: its line, its exit code, what the answer holds, and what it does not.
type Odd = (
    &'static str,
    i32,
    &'static [&'static str],
    &'static [&'static str],
);

/// Names of presets stand far down in a list of what is allowed.
const LISTS: &[&str] = &["philly-like", "gavel-multi"];

const FILES: &[Odd] = &[
    (
        "evaluate --workload nojobs.csv",
        2,
        &["workload = nojobs.csv (there is no such file)"],
        LISTS,
    ),
    ("evaluate --workload .", 2, &["workload = . (is a folder)"], LISTS),
    (
        "evaluate --workload runs/none",
        2,
        &["runs/none (there is no such file)"],
        LISTS,
    ),
    (
        "evaluate --workload ../nothing",
        2,
        &["there is no such file"],
        LISTS,
    ),
    (
        "evaluate --policy runs/none/tree.json",
        2,
        &["tree.json (there is no such file)", "no folder runs/none"],
        &["pollux"],
    ),
    (
        "evaluate --policy nothing.ckpt",
        2,
        &["nothing.ckpt (there is no such file)"],
        &["pollux"],
    ),
    (
        "evaluate --policy nothing-in-it",
        2,
        &["policy = nothing-in-it: allowed is a folder with"],
        &["pollux"],
    ),
    ("run nowhere.toml", 2, &["nowhere.toml", "No such file"], &[]),
    ("run .", 2, &["this is a folder"], &[]),
    (
        "run broken.toml",
        2,
        &["nothing.csv", "a file that is there"],
        &[],
    ),
    (
        "run new.toml --init nothing.txt",
        2,
        &["nothing.txt (there is no such file)"],
        &["written"],
    ),
    ("run new.toml --init .", 2, &["is a folder"], &["written"]),
    (
        "sweep run --manifest nothing.json",
        2,
        &["nothing.json", "No such file"],
        &[],
    ),
    (
        "sweep plan --config nothing.toml",
        2,
        &["nothing.toml", "No such file"],
        &[],
    ),
    (
        "evaluate --cluster nowhere.toml --workload good.csv",
        2,
        &["no such file", "16x8:A100"],
        &[],
    ),
    (
        "workload import nothing.txt --to a.csv",
        2,
        &["nothing.txt", "No such file"],
        &[],
    ),
    ("workload import . --to a.csv", 2, &["folder"], &[]),
    (
        "workload import sacct.txt --nodes nothing.txt --to a.csv",
        2,
        &["nothing.txt", "No such file"],
        &[],
    ),
];

const KINDS: &[Odd] = &[
    (
        "run sacct.txt",
        2,
        &["this is a list of jobs", "pleach run site.toml --init sacct.txt"],
        &["1048576"],
    ),
    (
        "run good.cluster.toml",
        2,
        &["this is a description of a cluster"],
        &[],
    ),
    (
        "run new.toml --init good.cluster.toml",
        2,
        &["this is a description of a cluster"],
        &["written"],
    ),
    (
        "run new.toml --init nodes.txt",
        2,
        &["this is a list of nodes", "--nodes"],
        &["written"],
    ),
    (
        "run new.toml --init sacct.txt --nodes sacct.txt",
        2,
        &["this is a list of jobs, and not a list of nodes"],
        &["written"],
    ),
    (
        "run new.toml --init sacct.txt --cluster 3z",
        2,
        &["3z", "16x8:A100"],
        &["written"],
    ),
    (
        "sweep run --manifest search.toml",
        2,
        &[
            "the configuration of a sweep",
            "plan it first",
            "pleach sweep plan --config search.toml",
        ],
        &["ident"],
    ),
    (
        "sweep plan --config sweep.json",
        2,
        &[
            "the manifest of a sweep",
            "pleach sweep run --manifest sweep.json",
        ],
        &[],
    ),
    (
        "evaluate --workload tree.json",
        2,
        &["this is a policy", "--policy"],
        &[],
    ),
    (
        "evaluate --workload good.cluster.toml",
        2,
        &["this is a description of a cluster", "--cluster"],
        &[],
    ),
    (
        "evaluate --workload sweep.json",
        2,
        &["this is the manifest of a sweep"],
        &[],
    ),
    (
        "evaluate --workload nodes.txt",
        2,
        &["this is a list of nodes"],
        &[],
    ),
    (
        "evaluate --policy good.csv",
        2,
        &["text, and no policy", "--workload"],
        &["pleach train"],
    ),
    (
        "evaluate --workload good.csv --cluster semicolon.csv",
        2,
        &["this is a list of jobs, and not a description of a cluster"],
        &[],
    ),
    (
        "workload import sacct.txt --nodes good.csv --to a.csv",
        2,
        &["this is a list of jobs, and not a list of nodes"],
        &[],
    ),
    (
        "workload import sacct.txt --mapping good.cluster.toml --to a.csv",
        2,
        &["good.cluster.toml"],
        &[],
    ),
];

const VALUES: &[Odd] = &[
    (
        "evaluate --workload gavelmulti",
        2,
        &["Did you mean gavel-multi? Allowed is"],
        &[],
    ),
    (
        "evaluate --workload Pleach/Sinergy-v1",
        2,
        &["Did you mean Pleach/Synergy-v1? Allowed is"],
        &[],
    ),
    (
        "evaluate --policy fofo",
        2,
        &["Did you mean fifo? Allowed is"],
        &[],
    ),
    ("train --env Pleach/Nothing-v9", 2, &["Pleach/Nothing-v9"], &[]),
    (
        "train --set train.evolution.sigmaa=0.1",
        2,
        &["Did you mean sigma?"],
        &[],
    ),
    ("evaluate --policy fifo,fifo", 2, &["each policy once"], &[]),
    ("evaluate --load 80%", 2, &["try 0.8"], &[]),
    ("evaluate --load -1", 2, &["0.01 to 10"], &["unexpected argument"]),
    ("evaluate --load 1000", 2, &["0.01 to 10"], &[]),
    (
        "evaluate --seeds ten",
        2,
        &["a whole number from 1 to"],
        &["invalid digit"],
    ),
    (
        "evaluate --seeds -3",
        2,
        &["a whole number from 1 to"],
        &["unexpected argument"],
    ),
    ("evaluate --seeds 0", 2, &["a whole number from 1 to"], &[]),
    (
        "evaluate --seed ten",
        2,
        &["a whole number of at least 0"],
        &["invalid digit"],
    ),
    (
        "evaluate --num-jobs 1e3",
        2,
        &["a whole number from 1 to 10000000"],
        &["invalid digit"],
    ),
    (
        "evaluate --threads -1",
        2,
        &["a whole number from 1 to 1024"],
        &["unexpected argument"],
    ),
    (
        "evaluate --workload month.csv --from-day -1",
        2,
        &["2026-09-01"],
        &["unexpected argument"],
    ),
    (
        "evaluate --workload month.csv --from-day soon",
        2,
        &["a number of days from 0 on, or a date"],
        &[],
    ),
    (
        "evaluate --workload month.csv --window-days 2x",
        2,
        &["2d or 36h"],
        &[],
    ),
    (
        "evaluate --workload good.csv --from-day 2026-09-01",
        2,
        &["from_day = 2026-09-01", "which date its day 0 is"],
        &[],
    ),
    (
        "twin --workload month.csv --since-day 400",
        2,
        &[
            "since_day = 400: allowed is 0 to 16.0",
            "2026-06-14 to 2026-06-30",
        ],
        &["required"],
    ),
    (
        "twin --workload month.csv --since-day 2027-01-01 --under sjf",
        2,
        &["since_day = 2027-01-01", "2026-06-30"],
        &[],
    ),
    (
        "twin --workload month.csv --since-day 2",
        2,
        &["given with --under"],
        &[],
    ),
    (
        "evaluate --workload good.csv --cluster 16x8A100",
        2,
        &["16x8A100", "16x8:A100"],
        &[],
    ),
    ("prune", 2, &["prune"], &[]),
];

const LISTS_READ: &[Odd] = &[
    (
        "workload describe --no-simulate --workload utf16.csv",
        2,
        &["UTF-8"],
        &[],
    ),
    (
        "workload describe --no-simulate --workload crlf.csv",
        0,
        &["30"],
        &[],
    ),
    (
        "workload describe --no-simulate --workload bom.csv",
        0,
        &["30"],
        &[],
    ),
    (
        "workload describe --no-simulate --workload packed.csv.gz",
        0,
        &["30"],
        &[],
    ),
    (
        "workload describe --no-simulate --workload torn.csv.gz",
        2,
        &["torn.csv.gz", "ends too early"],
        &[],
    ),
    (
        "workload describe --no-simulate --workload header.csv",
        2,
        &["a header and no row"],
        &[],
    ),
    (
        "workload describe --no-simulate --workload empty.csv",
        2,
        &["the file is empty"],
        &[],
    ),
    (
        "workload import cells.csv --to cells-read.csv",
        0,
        &[
            "4 rows read, 2 kept, 2 left out",
            "such as `many`",
            "such as `soon`",
        ],
        &[],
    ),
    (
        "workload import decimal.csv --to decimal-read.csv",
        0,
        &["its GPUs are not understood, such as `1,5`: 1 rows"],
        &["asks for no GPU"],
    ),
    (
        "workload import sacct.txt --nodes nodes.txt --from-day 2026-06-20 --days 2d --to cut.csv",
        0,
        &["17 rows read, 2 kept", "outside the window: 15 rows"],
        &[],
    ),
    (
        "evaluate --policy fifo --workload month.csv --from-day 2026-06-28",
        0,
        &["fifo"],
        &[],
    ),
    (
        "evaluate --policy fifo --workload month.csv --window-days 7d",
        0,
        &["fifo"],
        &[],
    ),
    (
        "twin --workload month.csv --under sjf --since-day 2026-06-20",
        0,
        &["sjf"],
        &[],
    ),
    (
        "workload describe --workload requests.csv",
        0,
        &["4 rows read, 2 kept, 2 left out", "no token in its answer"],
        &[],
    ),
];

/// What a command prints, and its exit code.
fn answer(folder: &Path, line: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    command.current_dir(folder).args(line.split_whitespace());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .spawn();
    let mut child: Child = child.expect("the program starts");
    let began = Instant::now();
    // No answer is longer than a pipe holds.
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > HANGS {
            child.kill().unwrap();
            panic!("{line}: no answer in {HANGS:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

fn check(inputs: &[Odd]) {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path());
    let mut wrong = Vec::new();
    for (line, code, holds, lacks) in inputs {
        let (found, said) = answer(folder.path(), line);
        let missing: Vec<_> = holds.iter().filter(|words| !said.contains(**words)).collect();
        let surplus: Vec<_> = lacks.iter().filter(|words| said.contains(**words)).collect();
        if found != Some(*code) || !missing.is_empty() || !surplus.is_empty() || said.contains("panicked") {
            wrong.push(format!(
                "{line}: {found:?}, not {code}; lacks {missing:?}, has {surplus:?}: {said}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        inputs.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_file_that_is_not_there_or_is_a_folder_is_named_so_first() {
    check(FILES);
}

#[test]
fn a_file_of_another_kind_is_named_for_what_it_is_with_the_command_for_it() {
    check(KINDS);
}

#[test]
fn a_value_that_cannot_be_is_answered_with_what_is_allowed_and_a_guess_comes_first() {
    check(VALUES);
}

#[test]
fn lists_in_odd_forms_are_read_or_refused_with_the_place_and_nothing_is_lost_without_a_word() {
    check(LISTS_READ);
}

#[test]
fn the_same_list_with_another_delimiter_has_the_same_cluster_and_load() {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path());
    let tables = |name: &str| {
        let said = super::succeed(
            folder.path(),
            &format!("workload describe --no-simulate --workload {name}"),
        );
        said.lines()
            .filter(|line| !line.contains("list:") && !line.starts_with("Workload"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let wanted = tables("good.csv");
    assert!(wanted.contains("offered load"), "{wanted}");
    for name in ["semicolon.csv", "tab.tsv"] {
        assert_eq!(tables(name), wanted, "{name}");
    }
}

#[test]
fn results_for_programs_are_json_alone() {
    let folder = tempfile::tempdir().unwrap();
    let said = super::succeed(
        folder.path(),
        "evaluate --policy fifo --workload philly-like --num-jobs 20 --seeds 1 --json -",
    );
    assert!(serde_json::from_str::<serde_json::Value>(&said).is_ok(), "{said}");
}
