//! A Slurm of shell scripts that keeps its state in files, and the program on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub struct Fake {
    folder: tempfile::TempDir,
}

impl Fake {
    /// Nodes g1 and g2 with four GPUs each, and jobs as (GPUs, time limit). Slurm starts jobs when it is asked to look.
    pub fn new(jobs: &[(u32, &str)]) -> Fake {
        let fake = Fake {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(fake.at("bin")).unwrap();
        fs::create_dir_all(fake.at("jobs")).unwrap();
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake");
        for name in ["lib.sh", "squeue", "sinfo", "scontrol", "sacct", "sprio"] {
            fs::copy(scripts.join(name), fake.at("bin").join(name)).unwrap();
        }
        for (number, (gpus, limit)) in jobs.iter().enumerate() {
            fake.come(number + 1, *gpus, limit, "");
        }
        let config = format!(
            "slurm_bin = {:?}\nstate_dir = {:?}\ntick_s = 0.1\ncommand_limit_s = 6.0\n",
            fake.at("bin"),
            fake.at("state")
        );
        fs::write(fake.at("pleach.toml"), config).unwrap();
        fake
    }

    /// The same where Slurm looks whenever it is asked for its queue, and two jobs of four GPUs, 91 and 92, run and fill the nodes.
    pub fn ordered(jobs: &[(u32, &str)]) -> Fake {
        let fake = Fake::new(jobs);
        fs::write(fake.at("own"), "").unwrap();
        fake.fill();
        fake
    }

    /// The two that fill the nodes.
    pub fn fill(&self) {
        for (number, node) in [(91, "g1"), (92, "g2")] {
            let text = format!(
                "id='{number}' state='RUNNING' prio='9' gpus='4' node='{node}' submit='1794999999' start='1795000000' limit='9:00:00'\n"
            );
            fs::write(self.at(&format!("jobs/{number}")), text).unwrap();
        }
    }

    /// A Slurm without jobs for scripts that take their time on a busy machine, where it looks whenever it is asked.
    pub fn patient(fake: Fake) -> Fake {
        let config = fake
            .read("pleach.toml")
            .replace("command_limit_s = 6.0", "command_limit_s = 20.0");
        fs::write(fake.at("pleach.toml"), config).unwrap();
        fake
    }

    /// Slurm looks at its queue once.
    pub fn look(&self) {
        let had = self.at("own").exists();
        fs::write(self.at("own"), "").unwrap();
        assert!(
            Command::new(self.at("bin/squeue"))
                .output()
                .unwrap()
                .status
                .success()
        );
        if !had {
            fs::remove_file(self.at("own")).unwrap();
        }
    }

    /// So many rounds, after each of which Slurm looks; what was said.
    pub fn played(&self, policy: &str, num: usize) -> String {
        let round = |_| {
            let said = self.rounds(policy, "--live", "1");
            self.look();
            said
        };
        (0..num).map(round).collect()
    }

    /// A job that waits, with more of what the scripts know of jobs.
    pub fn come(&self, number: usize, gpus: u32, limit: &str, more: &str) {
        let submit = 1_795_000_000 + number;
        let text = format!("id={number} gpus={gpus} limit={limit} prio=1 submit={submit} {more}\n");
        fs::write(self.at("jobs").join(number.to_string()), text).unwrap();
    }

    /// Changes something that the scripts know of a job.
    pub fn change(&self, number: usize, change: &str) {
        let text = self.job(number).trim_end().to_owned() + &format!(" {change}\n");
        fs::write(self.at("jobs").join(number.to_string()), text).unwrap();
    }

    /// A number that the scripts have of a job.
    fn of_job(&self, number: usize, key: &str) -> i64 {
        let text = self.job(number);
        let found = text
            .split_whitespace()
            .rev()
            .find_map(|word| word.strip_prefix(&format!("{key}=")));
        found.map_or(0, |value| value.trim_matches('\'').parse().unwrap())
    }

    /// Jobs that wait and are not held, in the order in which Slurm would start them.
    pub fn line(&self) -> Vec<usize> {
        let files = fs::read_dir(self.at("jobs")).unwrap();
        let numbers = files.filter_map(|file| file.unwrap().file_name().to_str()?.parse().ok());
        let waits =
            |number: &usize| !self.job(*number).contains("RUNNING") && self.of_job(*number, "prio") > 0;
        let mut line: Vec<usize> = numbers.filter(waits).collect();
        line.sort_by_key(|number| {
            (
                self.of_job(*number, "nice") - self.of_job(*number, "factor"),
                *number,
            )
        });
        line
    }

    /// The factor of a job.
    pub fn factor(&self, number: usize) -> i64 {
        self.of_job(number, "factor")
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Held for a daemon of before.
    pub fn leave_held(&self, number: usize, gpus: u32, limit: &str) {
        let submit = 1_795_000_000 + number;
        let text = format!("id={number} gpus={gpus} limit={limit} prio=0 mark=pleach:held submit={submit}\n");
        fs::write(self.at("jobs").join(number.to_string()), text).unwrap();
    }

    /// A job ends in a state, as Slurm tells for some minutes, after a run of so many seconds.
    pub fn end_after(&self, number: usize, state: &str, run_s: i64) {
        let job = self.job(number);
        let start = job
            .split("start='")
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
            .unwrap();
        let start_s: i64 = start.parse().unwrap();
        let mut text = self.read("ended");
        text += &format!("{number}|{state}|{start_s}|{}|g1|\n", start_s + run_s);
        fs::write(self.at("ended"), text).unwrap();
        self.end(number);
    }

    pub fn end(&self, job: usize) {
        fs::remove_file(self.at("jobs").join(job.to_string())).unwrap();
    }

    pub fn scheduler(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
            .arg("--config")
            .arg(self.at("pleach.toml"))
            .args(args)
            .output()
            .unwrap()
    }

    pub fn rounds(&self, policy: &str, mode: &str, num: &str) -> String {
        let output = self.scheduler(&["run", "--policy", policy, mode, "--rounds", num]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    /// Jobs and nodes in the order in which they started.
    pub fn starts(&self) -> Vec<(usize, String)> {
        let text = self.read("starts");
        let line = |line: &str| {
            let (job, node) = line.split_once(' ').unwrap();
            (job.parse().unwrap(), node.to_owned())
        };
        text.lines().map(line).collect()
    }

    pub fn order(&self) -> Vec<usize> {
        self.starts().into_iter().map(|(job, _)| job).collect()
    }

    pub fn job(&self, number: usize) -> String {
        self.read(&format!("jobs/{number}"))
    }
}

pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A queue whose shortest-first order is 4, 2, 3, 1.
pub const QUEUE: [(u32, &str); 4] = [(4, "4:00:00"), (3, "20:00"), (4, "1:00:00"), (1, "10:00")];
