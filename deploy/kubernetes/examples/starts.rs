//! How fast jobs are let go on a large cluster, and what a round costs where nothing changes, by lists and by watches:
//!
//! ```sh
//! cargo run --release -p pleach-kubernetes --example starts -- [NODES] [JOBS]
//! ```
//!
//! Nodes have eight GPUs, jobs are single pods of two, all held at the start, of about 5 KB each. The API server is the one of the
//! tests, a process of its own: it has no etcd, no admission and no kube-scheduler, so its share is a lower bound. No Events are written.

#![allow(clippy::unwrap_used, dead_code)]

#[path = "../tests/fake/mod.rs"]
mod fake;
#[path = "../tests/objects/mod.rs"]
mod objects;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fake::{Fake, World, owned};
use objects::{NOW_S, node, pod};
use pleach_kubernetes::Settings;
use pleach_kubernetes::api::Cluster;
use pleach_kubernetes::controller::Kubernetes;
use serde_json::json;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Rounds in which nothing changes.
const QUIET: u32 = 10;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if args.first().is_some_and(|word| word == "serve") {
        return runtime.block_on(serve(args[1].parse()?, args[2].parse()?));
    }
    let number = |at: usize, default: usize| args.get(at).map_or(Ok(default), |text| text.parse());
    let (nodes, jobs) = (number(0, 1000)?, number(1, 5000)?);
    println!("{nodes} nodes of 8 GPUs, {jobs} jobs of 2");
    println!(
        "seen by, starts, s until the last, starts/s, CPU s: own, API server; a quiet round, CPU ms: own, API server"
    );
    for is_watched in [false, true] {
        runtime.block_on(drive(nodes, jobs, is_watched))?;
    }
    Ok(())
}

/// The process of the API server.
async fn serve(nodes: usize, jobs: usize) -> Result<(), Error> {
    let mut world = World::default();
    world.journal.is_kept = true;
    world.journal.trusts_versions = true;
    for number in 0..nodes {
        world.add_node(node(&format!("n{number:04}"), 8));
    }
    for number in 0..jobs {
        let mut pod = owned(pod(&format!("p{number:05}"), 2));
        pod["metadata"]["uid"] = json!(format!("123e4567-e89b-42d3-a456-{number:012x}"));
        pod["metadata"]["managedFields"] =
            json!([{ "manager": "kube-controller-manager", "fieldsV1": "f".repeat(3000) }]);
        pod["spec"]["containers"][0]["env"] = json!([{ "name": "CONFIG", "value": "x".repeat(1000) }]);
        world.add_pod(pod);
    }
    let fake = Fake::still(world).await;
    println!("{}", fake.address);
    let stdin = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    stdin.await??;
    Ok(())
}

/// Processor time of a process, s.
fn cpu_s(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> = after
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    // User and system time are the 14th and 15th field, in hundredths: two words before these end with the name, one is a letter.
    ticks.get(10..12).map_or(0.0, |both| (both[0] + both[1]) / 100.0)
}

async fn drive(nodes: usize, jobs: usize, is_watched: bool) -> Result<(), Error> {
    let mut server: Child = Command::new(std::env::current_exe()?)
        .args(["serve", &nodes.to_string(), &jobs.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(server.stdout.take().ok_or("no output")?).lines();
    let address = lines.next().ok_or("the server has ended")??;
    let folder = tempfile::tempdir()?;
    let settings = Settings {
        state_dir: folder.path().join("state"),
        namespaces: vec!["*".into()],
        events: false,
        ..Settings::default()
    };
    let cluster = Cluster::new(kube::Config::new(format!("http://{address}").parse()?), &settings)?;
    if is_watched {
        cluster.watch(&Arc::default());
    }
    let tick = Duration::from_secs_f64(settings.tick_s);
    let mut controller = Kubernetes::driver(settings, cluster, "sjf", false)?;
    let cpu = || (cpu_s(std::process::id()), cpu_s(server.id()));
    let (began, before) = (Instant::now(), cpu());
    let most = (nodes * 4).min(jobs) as u64;
    let mut round = 0;
    while controller.status().num_starts < most && began.elapsed() < Duration::from_secs(600) {
        let at = Instant::now();
        controller.round(NOW_S + round).await;
        round += 2;
        if controller.status().num_starts < most {
            tokio::time::sleep(tick.saturating_sub(at.elapsed())).await;
        }
    }
    let (took_s, after) = (began.elapsed().as_secs_f64(), cpu());
    let num = controller.status().num_starts;
    // What watches show of the last starts is over.
    tokio::time::sleep(tick).await;
    controller.round(NOW_S + round).await;
    let quiet = cpu();
    for _ in 0..QUIET {
        round += 2;
        controller.round(NOW_S + round).await;
    }
    let end = cpu();
    let each = |from: f64, to: f64| (to - from) * 1e3 / f64::from(QUIET);
    println!(
        "{}, {num}, {took_s:.1}, {:.0}, {:.1}, {:.1}; {:.0}, {:.0}",
        if is_watched { "watches" } else { "lists" },
        num as f64 / took_s,
        after.0 - before.0,
        after.1 - before.1,
        each(quiet.0, end.0),
        each(quiet.1, end.1),
    );
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}
