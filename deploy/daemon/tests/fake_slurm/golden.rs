//! Everything that a run leaves behind, byte by byte: the log, the status, what was learned, the messages, the commands.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;

use pleach_daemon::replay::Replay;
use pleach_daemon::slurm::Slurm;
use pleach_daemon::wait::block_on;
use pleach_daemon::{Driver, Settings};
use pleach_tests::golden::{hold_text, masked};

use super::fake::{Fake, QUEUE};

/// When the first round is, Unix time, s.
const BEGIN_S: i64 = 1_795_001_000;

/// A daemon in this process, at times that the test tells.
struct Run {
    fake: Fake,
    driver: Driver<Slurm>,
    port: u16,
    notes: String,
}

impl Run {
    fn new(fake: Fake, policy: &str, settings: &str) -> Run {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = fake.read("pleach.toml") + &format!("metrics_port = {port}\n{settings}");
        let path = fake.at("pleach.toml");
        fs::write(
            &path,
            config.replace("command_limit_s = 6.0", "command_limit_s = 20.0"),
        )
        .unwrap();
        let settings = Settings::load(&path).unwrap();
        let driver = Slurm::driver(&settings, policy, false).unwrap();
        Run {
            fake,
            driver,
            port,
            notes: String::new(),
        }
    }

    /// A round so many seconds after the first one.
    fn round(&mut self, after_s: i64) {
        let now_s = BEGIN_S + after_s;
        fs::write(self.fake.at("now"), now_s.to_string()).unwrap();
        for note in block_on(self.driver.round(now_s)) {
            self.notes += &format!("{after_s}: {note}\n");
        }
        if !self.fake.at("garbage").exists() {
            self.fake.look();
        }
    }

    fn metrics(&self) -> String {
        let mut caller = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        caller.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        caller.read_to_string(&mut text).unwrap();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn hold(self, file: &str) {
        let state = |name: &str| self.fake.read(&format!("state/{name}"));
        let log = rounds_as_text(&self.fake.at("state"));
        let parts = [
            ("decisions.jsonl", log),
            ("status.json", state("status.json")),
            ("memory.json", state("memory.json")),
            ("history.json", state("history.json")),
            ("metrics", self.metrics()),
            ("notes", self.notes.clone()),
            ("commands", self.fake.read("scontrol.log")),
        ];
        let text: String = parts
            .map(|(name, text)| format!("== {name}\n{}\n", text.trim_end()))
            .concat();
        let folder = self.fake.at("");
        let folder = folder.to_str().unwrap().trim_end_matches('/');
        hold_text(env!("CARGO_MANIFEST_DIR"), file, &masked(&text, folder));
    }
}

/// The rounds of a log as they are read again, whole ones.
fn rounds_as_text(folder: &Path) -> String {
    let line = |round| serde_json::to_string(&Result::unwrap(round)).unwrap() + "\n";
    Replay::open(folder).unwrap().map(line).collect()
}

#[test]
fn a_run_that_learns_and_fails_once_leaves_the_same_bytes() {
    let fake = Fake::new(&[]);
    for (number, (gpus, limit)) in QUEUE.into_iter().enumerate() {
        fake.come(number + 1, gpus, limit, ["user=ann", "user=bob"][number % 2]);
    }
    // One that its user holds, one of an account without budget, one whose nodes do not exist.
    fake.come(9, 1, "5:00", "prio=0 reason=JobHeldUser");
    fake.come(
        10,
        1,
        "1:00",
        "user=cleo account=spent reason=AssocGrpGRESMinutes",
    );
    fake.come(11, 1, "1:00", "user=cleo feature=gone");
    let spent =
        "ClusterName=c Account=spent UserName= Partition= ParentAccount= GrpTRESMins=gres/gpu=10(10)\n";
    fs::write(fake.at("assoc_mgr"), spent).unwrap();
    fs::write(fake.at("limit-cleo"), "").unwrap();
    let mut run = Run::new(fake, "sjf", "[estimates]\nfrom = \"history\"\n");
    run.round(0);
    run.round(2);
    run.fake.end_after(3, "COMPLETED", 60);
    run.round(62);
    run.fake.end_after(2, "FAILED", 70);
    run.fake.end_after(4, "NODE_FAIL", 71);
    run.fake.come(5, 3, "2:00:00", "user=bob");
    run.round(72);
    fs::write(run.fake.at("garbage"), "").unwrap();
    run.round(74);
    fs::remove_file(run.fake.at("garbage")).unwrap();
    run.round(900);
    run.hold("sjf.txt");
}
