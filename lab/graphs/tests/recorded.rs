//! Runs of spark-sched-sim 2ba8d80 on our own graphs, from `shared/data/graphs` beside the repository; where they are missing the
//! tests are noted as skipped.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::GzDecoder;
use pleach_graphs::engine::{Engine, JobId, Outcome, StageId};
use pleach_graphs::file;
use pleach_graphs::graph::{Graph, Wave};
use pleach_graphs::list::{Arrival, List, Machine};
use pleach_graphs::rules::{Rule, by_name, finish};
use serde_json::Value;

fn unpacked(path: &Path) -> Option<String> {
    let mut text = String::new();
    let packed = std::fs::File::open(path).ok()?;
    GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    Some(text)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// All lists of the folder by name.
fn lists(folder: &Path) -> BTreeMap<String, Arc<List>> {
    let graphs: BTreeMap<&str, Arc<Vec<Graph>>> = [
        ("waves", "templates.json"),
        ("flat", "templates-flat.json"),
        ("hand", "templates-hand.json"),
    ]
    .map(|(name, file)| (name, Arc::new(file::read(&folder.join(file)).unwrap())))
    .into();
    let all = json(&folder.join("lists.json"));
    let lists = all["lists"].as_array().unwrap().iter().map(|list| {
        let machine = Machine {
            executors: number(&list["executors"]) as u32,
            moving_ms: number(&list["moving_ms"]),
            warmup_ms: number(&list["warmup_ms"]),
            mimics_released: true,
        };
        let jobs = list["jobs"].as_array().unwrap().iter().map(|job| Arrival {
            at_ms: number(&job[0]),
            graph: number(&job[1]) as u32,
        });
        let own = Arc::clone(&graphs[list["templates"].as_str().unwrap()]);
        let list_of = List::new(own, machine, jobs.collect(), number(&list["seed"])).unwrap();
        (list["name"].as_str().unwrap().to_string(), Arc::new(list_of))
    });
    lists.collect()
}

/// Recorded decisions, one after the other.
struct Tape {
    name: String,
    lines: std::vec::IntoIter<[i64; 4]>,
}

impl Rule for Tape {
    fn choose(&mut self, engine: &Engine) -> Option<(StageId, u32)> {
        let [at_ms, job, stage, num] = self
            .lines
            .next()
            .unwrap_or_else(|| panic!("{}: too few decisions", self.name));
        assert_eq!(engine.now_ms(), at_ms as u64, "{}: time of a decision", self.name);
        if job < 0 {
            return None;
        }
        let stage = engine.stages_of(JobId(job as u32)).nth(stage as usize).unwrap();
        assert!(
            engine.offered().contains(&stage),
            "{}: {stage:?} at {at_ms} ms",
            self.name
        );
        Some((stage, num as u32))
    }
}

fn tape(name: &str, text: &str) -> Tape {
    let line = |line: &str| -> [i64; 4] {
        let cells: Vec<i64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        cells.try_into().unwrap()
    };
    let lines: Vec<[i64; 4]> = text.lines().skip(1).map(line).collect();
    Tape {
        name: name.to_string(),
        lines: lines.into_iter(),
    }
}

/// Our rule of a recorded policy, where there is one.
fn own_name(policy: &str) -> Option<String> {
    Some(match policy {
        "fair" | "fifo" => format!("stage-{policy}"),
        "sjf-cp" => policy.into(),
        other => format!("stage-weighted-fair:power={}", other.strip_prefix("wf")?),
    })
}

/// A play in the words of the records.
fn assert_equal(name: &str, engine: &List, outcome: &Outcome, run: &Value, tasks: Option<&str>) {
    let mut firsts = vec![0];
    for job in 0..engine.jobs().len() {
        firsts.push(firsts[job] + engine.graph(job).stages().len());
    }
    let jobs = run["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), outcome.jobs.len(), "{name}");
    for job in jobs {
        let own = outcome.jobs[number(&job[0]) as usize];
        assert_eq!(own.end_ms, Some(number(&job[2])), "{name}: job {job}");
    }
    let stages = run["stages"].as_array().unwrap();
    assert_eq!(stages.len(), outcome.stages.len(), "{name}");
    for stage in stages {
        let own = outcome.stages[firsts[number(&stage[0]) as usize] + number(&stage[1]) as usize];
        let times = [own.start_ms.unwrap(), own.end_ms, own.busy_ms];
        let recorded = [2, 3, 4].map(|place| number(&stage[place]));
        assert_eq!(times, recorded, "{name}: stage {stage}");
    }
    let mean_s = run["mean_jct_s"].as_f64().unwrap();
    assert!((outcome.mean_jct_s() - mean_s).abs() < 6e-4, "{name}: {mean_s}");
    let sum_ms: u64 = outcome
        .jobs
        .iter()
        .map(|job| job.end_ms.unwrap() - job.arrival_ms)
        .sum();
    assert_eq!(outcome.job_ms, sum_ms, "{name}: Little's law");
    let Some(tasks) = tasks else {
        return;
    };
    let own = outcome.tasks.iter().map(|task| {
        let job = firsts.partition_point(|first| *first <= task.stage.0 as usize) - 1;
        let wave = match task.wave {
            Wave::Fresh => "fresh",
            Wave::First => "first",
            Wave::Rest => "rest",
            Wave::Warmed => "first+",
        };
        let stage = task.stage.0 as usize - firsts[job];
        let (number, executor, local, level) = (task.number, task.executor, task.local, task.level);
        let (start, end) = (task.start_ms, task.end_ms);
        format!("{job},{stage},{number},{executor},{start},{end},{wave},{local},{level}")
    });
    let recorded: Vec<&str> = tasks.lines().skip(1).collect();
    assert!(own.eq(recorded.iter().map(ToString::to_string)), "{name}: tasks");
}

/// Names of the runs, sorted.
fn runs(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("runs")).unwrap();
    let names = entries.filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        Some(name.strip_suffix(".actions.csv.gz")?.to_string())
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn check(folder: &Path, by_own_rules: bool) -> usize {
    let lists = lists(folder);
    let mut num = 0;
    for name in runs(folder) {
        let (list, policy) = name.split_once('.').unwrap();
        let list = &lists[list];
        let file = |ending: &str| -> PathBuf { folder.join("runs").join(format!("{name}{ending}")) };
        let mut rule: Box<dyn Rule> = match (by_own_rules, own_name(policy)) {
            (false, _) => Box::new(tape(&name, &unpacked(&file(".actions.csv.gz")).unwrap())),
            (true, Some(own)) => by_name(&own, list, 0).unwrap(),
            (true, None) => continue,
        };
        let outcome = finish(Engine::logged(Arc::clone(list)), rule.as_mut()).unwrap();
        let run: Value = serde_json::from_str(&unpacked(&file(".json.gz")).unwrap()).unwrap();
        assert_equal(
            &name,
            list,
            &outcome,
            &run,
            unpacked(&file(".tasks.csv.gz")).as_deref(),
        );
        assert_eq!(
            outcome.num_decisions,
            number(&run["decisions"]),
            "{name}: decisions"
        );
        num += 1;
    }
    num
}

#[test]
fn recorded_decisions_give_the_recorded_jobs_stages_and_tasks() {
    let Some(folder) = pleach_tests::data("graphs") else {
        return;
    };
    assert!(check(&folder, false) >= 100);
}

#[test]
fn our_rules_decide_as_the_recorded_ones_on_every_list() {
    let Some(folder) = pleach_tests::data("graphs") else {
        return;
    };
    assert!(check(&folder, true) >= 64);
}

#[test]
fn the_index_has_the_figures_that_were_recorded_of_it() {
    let Some(folder) = pleach_tests::data("graphs") else {
        return;
    };
    let lists = lists(&folder);
    let figures = json(&folder.join("index.json"));
    let figures = figures["on_lists_here"].as_object().unwrap();
    for (name, mean_s) in figures {
        let list = &lists[name];
        let mut rule = by_name("stage-index", list, 0).unwrap();
        let found = finish(Engine::new(Arc::clone(list)), rule.as_mut())
            .unwrap()
            .mean_jct_s();
        assert!(
            (found - mean_s.as_f64().unwrap()).abs() < 6e-4,
            "{name}: {found}, not {mean_s}"
        );
    }
    assert!(figures.len() >= 9);
}
