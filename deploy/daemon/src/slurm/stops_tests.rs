//! Which running jobs are stopped, when, and what is made of Slurm's answers.

use std::sync::{Arc, Mutex};

use super::*;
use crate::slurm::command::Model;
use crate::slurm::queue::Waiting;
use crate::snapshot::{Site, Snapshot, VERSION};

/// A Slurm that notes what it is fed, and refuses what is said.
#[derive(Debug, Default)]
struct Slurm {
    fed: Mutex<Vec<String>>,
    refuses: &'static str,
    is_away: bool,
}

impl Model for Slurm {
    fn run(&self, program: &str, _: &[&str]) -> Result<String, Error> {
        Err(Error::garbage("squeue", 1, program, "is not asked for"))
    }

    fn feed(&self, lines: &[&str]) -> Result<Vec<String>, Error> {
        let refused = lines
            .iter()
            .filter(|line| line.ends_with(self.refuses) && !self.refuses.is_empty());
        let said = refused
            .map(|_| format!("Only batch jobs are accepted for job {}", self.refuses))
            .collect();
        self.fed
            .lock()
            .unwrap()
            .extend(lines.iter().map(|line| (*line).to_owned()));
        match self.is_away {
            true => Err(Error::garbage("scontrol", 1, "", "is away")),
            false => Ok(said),
        }
    }
}

fn seen(taken_s: i64, jobs: &[(u64, &str)]) -> Seen {
    let job = |(number, phase): &(u64, &str)| {
        let phase = match *phase {
            "runs" => "\"running\"".to_owned(),
            "waits" => "\"loose\"".to_owned(),
            reason => format!("{{\"foreign\":{{\"reason\":{reason:?}}}}}"),
        };
        let text = format!(
            r#"{{"id":"{number}","phase":{phase},"submit_s":0,"num_nodes":1,"gpus_per_node":1,"num_cpus":1}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    Seen {
        snapshot: Snapshot {
            version: VERSION,
            taken_s,
            site: Site::default(),
            nodes: Vec::new(),
            jobs: jobs.iter().map(job).collect(),
        },
        left_over: Vec::new(),
        waiting: Waiting::default(),
        shunned: BTreeMap::new(),
        named: BTreeSet::new(),
        commented: BTreeSet::new(),
        standing: String::new(),
        rival: None,
        notes: Vec::new(),
    }
}

fn stop(number: u64) -> Planned {
    let text = format!(
        r#"{{"decision":{{"job":"{number}","action":"preempt","num_gpus":1,"gpu_milli":1000,"gpu_memory_mib_per_gpu":0,
        "cpu_milli_per_gpu":0,"memory_mib_per_gpu":0,"num_copies":1}},"nodes":["g1"]}}"#
    );
    serde_json::from_str(&text).unwrap()
}

/// Plays looks, in each of which a job is to be stopped; what was fed in each, and what became of the decision.
fn played(slurm: Slurm, looks: &[(Seen, u64)]) -> Vec<(usize, String)> {
    let slurm = Arc::new(slurm);
    let commands = Commands {
        model: Some(Arc::clone(&slurm) as Arc<dyn Model>),
        ..crate::Settings::default().commands()
    };
    let (mut stops, mut feed) = (Stops::new(true), Feed::default());
    let mut look = |(seen, number): &(Seen, u64)| {
        let mut now = [stop(*number)];
        stops.tell((&mut feed, &commands), seen, &mut now);
        let num = slurm.fed.lock().unwrap().drain(..).count();
        (num, now[0].outcome.clone())
    };
    looks.iter().map(&mut look).collect()
}

#[test]
fn while_a_stopped_job_holds_its_nodes_no_other_is_stopped() {
    let looks = [
        (seen(10, &[(7, "runs"), (8, "runs")]), 7),
        (seen(11, &[(7, "runs"), (8, "runs")]), 8),
        (seen(12, &[(7, "is completing"), (8, "runs")]), 8),
        (seen(13, &[(7, "waits for Slurm: BeginTime"), (8, "runs")]), 8),
        // One that never leaves is not waited for for ever.
        (seen(612, &[(8, "is completing"), (9, "runs")]), 9),
        (seen(613, &[(8, "is completing"), (9, "runs")]), 9),
    ];
    let nums: Vec<usize> = played(Slurm::default(), &looks)
        .iter()
        .map(|(num, _)| *num)
        .collect();
    assert_eq!(nums, [1, 0, 0, 1, 0, 1]);
}

#[test]
fn a_refusal_is_told_and_of_no_answer_nothing_is_known() {
    let refuses = Slurm {
        refuses: "7",
        ..Slurm::default()
    };
    let looks = || {
        [
            (seen(10, &[(7, "runs"), (8, "runs")]), 7),
            (seen(11, &[(7, "runs"), (8, "runs")]), 8),
        ]
    };
    let told = played(refuses, &looks());
    assert!(told[0].1.starts_with("refused: Only batch jobs"), "{told:?}");
    assert_eq!(
        told[1],
        (1, "sent".to_owned()),
        "what was refused is not waited for"
    );
    let away = Slurm {
        is_away: true,
        ..Slurm::default()
    };
    assert_eq!(played(away, &looks()), [(1, String::new()), (0, String::new())]);
    let commands = crate::Settings::default().commands();
    let mut now = [stop(7)];
    let seen = seen(10, &[(7, "runs")]);
    assert!(
        Stops::new(false)
            .tell((&mut Feed::default(), &commands), &seen, &mut now)
            .is_empty()
    );
    assert_eq!(now[0].outcome, "", "without the key nothing is sent");
}
