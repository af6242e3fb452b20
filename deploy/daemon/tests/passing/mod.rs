//! A Slurm through which jobs pass: each waits in one round, runs in the next, and is over in the third. Its commands are scripts
//! that print files; nothing is sent to it.

use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pleach_daemon::config::{EstimateSettings, EstimatesFrom};
use pleach_daemon::slurm::Slurm;
use pleach_daemon::wait::block_on;
use pleach_daemon::{Driver, Error, Settings};

const EPOCH_S: u64 = 1_795_000_000;
/// Rounds for which Slurm tells how a job ended.
const NUM_TOLD: u64 = 3;

/// What passes.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Nodes with four GPUs each; a tenth is left free, so that there is something to decide.
    pub num_nodes: u64,
    /// Users. A tenth of them has half of the jobs.
    pub num_users: u64,
    /// Users that the daemon keeps in mind.
    pub num_users_kept: u32,
}

impl Stream {
    /// Jobs of one GPU that wait in a round, and as many that run.
    pub fn num_jobs(&self) -> u64 {
        self.num_nodes * 4 * 9 / 10
    }
}

/// A daemon in shadow mode that watches the stream.
pub struct Passing<'a> {
    stream: Stream,
    folder: &'a Path,
    pub driver: Driver<Slurm>,
    round: u64,
}

impl Passing<'_> {
    /// # Errors
    /// A folder that cannot be written, a policy that does not fit.
    pub fn new<'a>(folder: &'a Path, stream: Stream, policy: &str) -> Result<Passing<'a>, Error> {
        let file = |source| Error::File {
            path: folder.to_owned(),
            source,
        };
        scripts(folder)
            .and_then(|()| write_nodes(folder, stream))
            .map_err(file)?;
        let settings = Settings {
            partition: Some("main".into()),
            slurm_bin: Some(folder.to_owned()),
            state_dir: folder.join("state"),
            command_limit_s: 60.0,
            deadline_s: 60.0,
            log_bytes_max: 64 << 20,
            estimates: EstimateSettings {
                from: EstimatesFrom::History,
                num_users: stream.num_users_kept,
                ..EstimateSettings::default()
            },
            ..Settings::default()
        };
        Ok(Passing {
            stream,
            folder,
            driver: Slurm::driver(&settings, policy, true)?,
            round: 0,
        })
    }

    /// One round; how many jobs are over by now.
    ///
    /// # Errors
    /// Texts that cannot be written; a round that fails.
    pub fn round(&mut self) -> io::Result<u64> {
        let (queue, ended) = self.texts();
        fs::write(self.folder.join("queue"), queue)?;
        fs::write(self.folder.join("ended"), ended)?;
        let notes = block_on(self.driver.round((EPOCH_S + 60 * self.round) as i64));
        let status = self.driver.status();
        if status.num_failed + status.num_fallbacks > 0 {
            return Err(io::Error::other(notes.join("; ")));
        }
        self.round += 1;
        Ok(self.round.saturating_sub(2) * self.stream.num_jobs())
    }

    fn texts(&self) -> (String, String) {
        let (num, round) = (self.stream.num_jobs(), self.round);
        let (mut queue, mut ended) = (String::new(), String::new());
        // Jobs are numbered in the order of their rounds; job by job, `came` is the round in which one waits.
        for came in round.saturating_sub(1)..=round {
            let start_s = EPOCH_S + 60 * (came + 1) - 20;
            for row in 0..num {
                let number = 1 + came * num + row;
                // A tenth of the users has half of the jobs.
                let num_users = self.stream.num_users / if row % 2 == 0 { 1 } else { 10 };
                let user = number % num_users.max(1);
                let (state, priority, node, start) = match came == round {
                    true => ("PENDING", 1, String::new(), "N/A".to_owned()),
                    false => ("RUNNING", 1, format!("n{}", row / 4), start_s.to_string()),
                };
                let submit_s = EPOCH_S + 60 * came - 10;
                let _ = writeln!(
                    queue,
                    "cpu=1,mem=1000M,node=1,gres/gpu=1|normal|N/A|{submit_s}|{number}|{state}|{priority}|gres:gpu:1|N/A|N/A|N/A|1|1|\
                     {node}||(null)|None|2:00|{submit_s}|{start}|0|OK|0|(null)|(null)|(null)|(null)|main|user-{user}|team|"
                );
            }
        }
        for came in round.saturating_sub(1 + NUM_TOLD)..round.saturating_sub(1) {
            let start_s = EPOCH_S + 60 * (came + 1) - 20;
            for row in 0..num {
                let number = 1 + came * num + row;
                let end_s = start_s + 21 + number % 30;
                let _ = writeln!(ended, "{number}|COMPLETED|{start_s}|{end_s}|n{}|", row / 4);
            }
        }
        (queue, ended)
    }
}

fn scripts(folder: &Path) -> io::Result<()> {
    let squeue = "case \"$*\" in *EndTime*) exec cat \"$d/ended\" ;; *%x*|*JobID:*) ;; *) exec cat \"$d/queue\" ;; esac";
    let sinfo = "case \"$*\" in *%P*) echo 'main*' ;; *) exec cat \"$d/nodes\" ;; esac";
    for (name, text) in [
        ("squeue", squeue),
        ("sinfo", sinfo),
        ("scontrol", ""),
        ("sprio", ""),
    ] {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\nd=$(dirname \"$0\")\n{text}\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// What `sinfo` prints while the jobs run.
fn write_nodes(folder: &Path, stream: Stream) -> io::Result<()> {
    let mut nodes = String::new();
    for node in 0..stream.num_nodes {
        let used = if node < stream.num_nodes * 9 / 10 { 4 } else { 0 };
        let _ = writeln!(
            nodes,
            "64000|4000|1|(null)|n{node}|mixed|gpu:a100:4|gpu:a100:{used}(IDX:0-3)|4/12/0/16|main*|"
        );
    }
    fs::write(folder.join("nodes"), nodes)
}
