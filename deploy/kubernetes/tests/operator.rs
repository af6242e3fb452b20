//! What an operator asks of the program: the log decided again, the log as a workload, how the last round went.

use std::path::Path;
use std::process::{Command, Output};

use pleach_daemon::capture::Capture;
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::Kubernetes;
use serde_json::json;

use crate::fake::{Fake, World};
use crate::objects::{NOW_S, node, pod, time};

fn program(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pleach-kubernetes"))
        .arg("--state-dir")
        .arg(folder)
        .args(args)
        .output()
        .unwrap()
}

#[cfg(unix)]
#[test]
fn a_hangup_in_the_first_moments_does_not_end_a_controller() {
    let folder = tempfile::tempdir().unwrap();
    // It waits for the first line of its configuration when the signal comes.
    let pipe = folder.path().join("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut controller = Command::new(env!("CARGO_BIN_EXE_pleach-kubernetes"))
        .arg("--config")
        .arg(&pipe)
        .args(["run", "--policy", "sjf", "--shadow"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let id = controller.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-HUP", &id])
            .status()
            .unwrap()
            .success()
    );
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(controller.try_wait().unwrap(), None, "it goes on");
    std::fs::write(&pipe, "no = 'such key'\n").unwrap();
    // Refused with words, and not ended by a signal.
    assert_eq!(controller.wait().unwrap().code(), Some(1));
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A folder whose controller saw three jobs come, of which two ran and ended.
async fn driven(settings: &Settings) {
    let mut world = World {
        life_ms: 1_000_000,
        ..World::default()
    };
    world.add_node(node("n1", 4));
    for (name, gpus, estimate_s) in [("a", 4, "900"), ("b", 2, "600"), ("c", 4, "300")] {
        let mut pod = pod(name, gpus);
        pod["metadata"]["annotations"] = json!({ "pleach/estimate-s": estimate_s });
        pod["metadata"]["creationTimestamp"] = json!(time(NOW_S - 100));
        world.add_pod(pod);
    }
    let fake = Fake::still(world).await;
    let mut driver = Kubernetes::driver(settings.clone(), fake.cluster(settings), "sjf", false).unwrap();
    for (after_s, ends) in [
        (0, None),
        (2, Some("c")),
        (40, None),
        (42, Some("b")),
        (100, None),
    ] {
        assert_eq!(driver.round(NOW_S + after_s).await, Vec::<String>::new());
        let mut world = fake.world.lock().unwrap();
        world.now_s = Some(NOW_S + after_s + 1);
        world.tick();
        if let Some(name) = ends {
            world.end(name);
        }
    }
    assert_eq!(driver.status().num_starts, 3);
}

#[tokio::test]
async fn a_log_is_decided_again_and_becomes_a_workload() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 20.0,
        namespaces: vec!["*".into()],
        ..Settings::default()
    };
    driven(&settings).await;
    let (state, log) = (&settings.state_dir, settings.state_dir.join("decisions.jsonl"));
    let log = log.to_str().unwrap();
    let replayed = program(state, &["replay", log, "--policy", "sjf"]);
    assert!(replayed.status.success(), "{}", out(&replayed));
    assert!(
        out(&replayed).contains("5 of 5 rounds are decided alike"),
        "{}",
        out(&replayed)
    );
    let replayed = program(state, &["replay", log, "--policy", "fifo"]);
    assert!(!replayed.status.success());
    assert!(
        out(&replayed).contains("round 1 is decided otherwise"),
        "{}",
        out(&replayed)
    );
    let diff = program(state, &["diff", "--policy", "fifo"]);
    assert!(
        diff.status.success()
            && out(&diff).contains("of 5 rounds")
            && out(&diff).contains("3 starts in the log"),
        "{}",
        out(&diff)
    );

    let list = folder.path().join("list.csv");
    let captured = program(state, &["capture", log, "--to", list.to_str().unwrap()]);
    assert!(captured.status.success(), "{}", out(&captured));
    assert!(
        out(&captured).contains("2 jobs that ended; left out: 1 that had not"),
        "{}",
        out(&captured)
    );
    let text = std::fs::read_to_string(&list).unwrap();
    let mut rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows.remove(0)[..4],
        ["job_id", "submit_s", "num_gpus", "run_time_s"]
    );
    rows.sort_by_key(|row| row[2]);
    // From when its pod began until the first round that no longer saw it: 1 to 40 s and 41 to 100 s.
    let figures: Vec<[&str; 4]> = rows.iter().map(|row| [row[1], row[2], row[3], row[4]]).collect();
    assert_eq!(figures, [["0", "2", "59", "600"], ["0", "4", "39", "300"]]);
    let cluster = std::fs::read_to_string(folder.path().join("list.cluster.toml")).unwrap();
    assert!(cluster.contains("A100-SXM4-80GB"), "{cluster}");
}

#[tokio::test]
async fn the_status_is_told_in_the_words_of_the_batch_system() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 20.0,
        namespaces: vec!["team".into()],
        ..Settings::default()
    };
    driven(&settings).await;
    let told = program(&settings.state_dir, &["status"]);
    let text = out(&told);
    assert!(
        text.starts_with("sjf on team (live)") && text.contains("0 left to kube-scheduler"),
        "{text}"
    );
    assert!(
        text.contains("5 rounds, 0 failed") && text.contains("3 starts and preemptions"),
        "{text}"
    );
    assert!(!told.status.success(), "the last round was long ago");
}

#[tokio::test]
async fn a_captured_queue_says_the_gpu_types_that_pods_may_have() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 20.0,
        namespaces: vec!["*".into()],
        ..Settings::default()
    };
    let mut world = World::default();
    world.add_node(node("n1", 4));
    let mut other = node("n2", 4);
    other["metadata"]["labels"]["nvidia.com/gpu.product"] = json!("V100");
    world.add_node(other);
    world.add_pod(pod("any", 1));
    let mut typed = pod("typed", 2);
    typed["spec"]["nodeSelector"] = json!({ "nvidia.com/gpu.product": "V100" });
    world.add_pod(typed);
    let fake = Fake::still(world).await;
    let mut driver = Kubernetes::driver(settings.clone(), fake.cluster(&settings), "sjf", true).unwrap();
    assert_eq!(driver.round(NOW_S).await, Vec::<String>::new());
    let mut capture = Capture::new(settings.rounds());
    capture
        .read_on(std::slice::from_ref(&settings.state_dir))
        .unwrap();
    let path = folder.path().join("queue.csv");
    assert_eq!(capture.write_present(&path, NOW_S).unwrap(), 2);
    // Read back by the simulator: deploy/daemon/tests/capture.rs.
    let text = std::fs::read_to_string(&path).unwrap();
    let class = |num_gpus: &str| {
        let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let at = rows
            .next()
            .unwrap()
            .iter()
            .position(|name| *name == "class")
            .unwrap();
        rows.find(|row| row[2] == num_gpus).unwrap()[at].to_owned()
    };
    assert_eq!((class("1"), class("2")), ("any".into(), "types-2".into()));
    let sidecar = std::fs::read_to_string(path.with_extension("cluster.toml")).unwrap();
    let sidecar: String = sidecar.split_whitespace().collect();
    assert!(sidecar.contains(r#"name="types-2"speed=[0.0,1.0,]"#), "{sidecar}");
}
