//! Everything that two runs leave behind, byte by byte: the log, the status, what was learned, the messages, the bindings.

use pleach_daemon::replay::Replay;
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::Controller;
use pleach_tests::golden::{hold_text, masked};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::driven::Driven;
use crate::fake::{Fake, World, owned};
use crate::objects::{NOW_S, node, pod, time};

/// A controller beside an API server whose schedulers and kubelets look once before each round.
struct Run {
    folder: TempDir,
    fake: Fake,
    controller: Controller,
    notes: String,
}

impl Run {
    async fn new(world: World, policy: &str, change: impl FnOnce(&mut Settings)) -> Run {
        let driven = Driven::new(Fake::still(world).await, policy, change);
        Run {
            folder: driven.folder,
            fake: driven.fake,
            controller: driven.controller,
            notes: String::new(),
        }
    }

    /// Schedulers and kubelets look, so many seconds after the first round.
    fn tick(&self, after_s: i64) {
        let mut world = self.fake.world.lock().unwrap();
        world.now_s = Some(NOW_S + after_s);
        world.tick();
    }

    /// A pod ends, so many seconds after the first round.
    fn end(&self, name: &str, after_s: i64) {
        let mut world = self.fake.world.lock().unwrap();
        world.now_s = Some(NOW_S + after_s);
        world.end(name);
    }

    async fn round(&mut self, after_s: i64) {
        for note in self.controller.round(NOW_S + after_s).await {
            self.notes += &format!("{after_s}: {note}\n");
        }
    }

    fn hold(self, file: &str) {
        let state = |name: &str| {
            std::fs::read_to_string(self.folder.path().join("state").join(name)).unwrap_or_default()
        };
        let world = self.fake.world.lock().unwrap();
        let lines = |list: &[(String, String)]| {
            list.iter()
                .map(|(uid, node)| format!("{uid} {node}\n"))
                .collect::<String>()
        };
        let metrics = self.controller.metrics_text().lock().unwrap().clone();
        // The rounds as they are read again, whole ones.
        let line = |round| serde_json::to_string(&Result::unwrap(round)).unwrap() + "\n";
        let rounds = Replay::open(&self.folder.path().join("state")).unwrap();
        let log: String = rounds.map(line).collect();
        let parts = [
            ("decisions.jsonl", log),
            ("status.json", state("status.json")),
            ("memory.json", state("memory.json")),
            ("history.json", state("history.json")),
            ("metrics", metrics),
            ("notes", self.notes.clone()),
            ("bound", lines(&world.binds)),
            ("lifted", world.lifted.join("\n")),
        ];
        let text: String = parts
            .map(|(name, text)| format!("== {name}\n{}\n", text.trim_end()))
            .concat();
        let folder = self.folder.path().to_str().unwrap();
        hold_text(env!("CARGO_MANIFEST_DIR"), file, &masked(&text, folder));
    }
}

fn world() -> World {
    let mut world = World {
        // Pods end when the test ends them.
        life_ms: 1_000_000,
        ..World::default()
    };
    world.add_node(node("n1", 4));
    world.add_node(node("n2", 4));
    world
}

fn waiting(name: &str, gpus: u32, estimate_s: &str, after_s: i64) -> Value {
    let mut pod = owned(pod(name, gpus));
    pod["metadata"]["annotations"] = json!({ "pleach/estimate-s": estimate_s });
    pod["metadata"]["creationTimestamp"] = json!(time(NOW_S - 100 + after_s));
    pod
}

#[tokio::test]
async fn a_run_that_learns_is_refused_and_fails_once_leaves_the_same_bytes() {
    let mut world = world();
    for (name, gpus, estimate_s) in [("a", 4, "14400"), ("b", 3, "1200"), ("c", 1, "600")] {
        world.add_pod(waiting(name, gpus, estimate_s, 0));
    }
    for rank in 0..2 {
        let mut pod = waiting(&format!("g-{rank}"), 2, "3600", 1);
        pod["metadata"]["annotations"]["pleach/gang"] = json!("g");
        pod["metadata"]["annotations"]["pleach/gang-size"] = json!("2");
        world.add_pod(pod);
    }
    // It waits for its turn, which is the last.
    let mut odd = waiting("odd", 1, "90000", 2);
    odd["spec"]["resourceClaims"] = json!([{ "name": "gpu" }]);
    world.add_pod(odd);
    let learns = |settings: &mut Settings| {
        settings.rounds.estimates.from = pleach_daemon::config::EstimatesFrom::History;
    };
    let mut run = Run::new(world, "sjf", learns).await;
    run.round(0).await;
    run.tick(1);
    run.round(2).await;
    // The gang ends, and pod a is sent to a node that never gets it: the scheduler does not look.
    run.end("g-0", 33);
    run.end("g-1", 35);
    run.round(40).await;
    run.round(42).await;
    run.round(102).await;
    run.tick(103);
    run.end("b", 103);
    run.round(104).await;
    run.tick(105);
    run.fake
        .world
        .lock()
        .unwrap()
        .add_pod(waiting("d", 3, "7200", 104));
    run.round(106).await;
    {
        let mut world = run.fake.world.lock().unwrap();
        (world.fault_every, world.num_requests) = (1, 0);
    }
    run.round(108).await;
    run.fake.world.lock().unwrap().fault_every = 0;
    run.tick(109);
    run.round(900).await;
    run.round(902).await;
    run.hold("sjf.txt");
}

#[tokio::test]
async fn a_run_that_stops_jobs_leaves_the_same_bytes() {
    let mut world = world();
    world.add_pod(waiting("a", 4, "14400", 0));
    world.add_pod(waiting("b", 4, "18000", 1));
    let stops = |settings: &mut Settings| settings.rounds.preemption = true;
    let mut run = Run::new(world, "las-deal", stops).await;
    run.round(0).await;
    run.tick(1);
    run.round(2).await;
    run.fake
        .world
        .lock()
        .unwrap()
        .add_pod(waiting("c", 4, "1800", 3000));
    run.fake
        .world
        .lock()
        .unwrap()
        .add_pod(waiting("d", 2, "600", 3001));
    for after_s in [4000, 4002, 4005, 8000, 8002] {
        run.round(after_s).await;
        run.tick(after_s + 1);
    }
    run.end("d", 8070);
    run.round(8100).await;
    run.hold("las-deal.txt");
}
