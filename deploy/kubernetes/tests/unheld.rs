//! GPU pods of driven namespaces that bypass the webhook: reported, where the namespace's label says that it was to be asked.

use std::path::Path;
use std::process::Command;

use crate::fake::{Fake, World};
use crate::leases::{Site, world};
use crate::objects::{NOW_S, node, pod, time};
use pleach_kubernetes::leases::LeaseSettings;
use serde_json::{Value, json};

/// A pod without a gate, which kube-scheduler has bound at once.
fn free(name: &str, created_s: i64) -> Value {
    let mut pod = pod(name, 1);
    pod["metadata"]["creationTimestamp"] = json!(time(created_s));
    pod["spec"]["schedulingGates"] = json!([]);
    pod
}

async fn site(labelled: &[&str]) -> Site {
    let mut world = world(&[("n1", 8)]);
    world.labelled = labelled.iter().map(|name| (*name).to_owned()).collect();
    world.add_pod(free("before", NOW_S - 500));
    let mut site = Site::new(world, "fifo", |settings| {
        settings.leases = LeaseSettings::default();
        settings.rounds.preemption = false;
        settings.server =
            toml::from_str("address = '127.0.0.1:0'\ncertificate = 'c'\nkey = 'k'\nclient_authority = 'a'\n")
                .ok();
    })
    .await;
    site.round(2).await;
    site
}

#[tokio::test]
async fn gpu_pods_that_come_without_our_gate_are_an_error_until_they_are_gone() {
    let mut site = site(&["team"]).await;
    assert_eq!(
        site.controller.status().num_unheld,
        Some(0),
        "what was there before is none"
    );
    site.add(free("fast", NOW_S + 10));
    let mut left = free("left", NOW_S + 10);
    left["metadata"]["annotations"] = json!({ "pleach/left": "x" });
    let mut out = free("out", NOW_S + 10);
    out["metadata"]["labels"] = json!({ "pleach/drive": "false" });
    let mut cpu = free("cpu", NOW_S + 10);
    cpu["spec"]["containers"][0]["resources"] = json!({});
    let mut volcano = free("volcano", NOW_S + 10);
    volcano["spec"]["schedulerName"] = json!("volcano");
    for pod in [left, out, cpu, volcano] {
        site.add(pod);
    }
    site.round(10).await;
    let status = site.controller.status().clone();
    assert_eq!(status.num_unheld, Some(1));
    let words = <pleach_kubernetes::controller::Kubernetes as pleach_daemon::BatchSystem>::WORDS;
    let told = status.told(NOW_S + 12, &words);
    assert!(told.contains("ERROR: 1 GPU pods arrived unheld"), "{told}");
    let text = site.controller.metrics_text().lock().unwrap().clone();
    assert!(text.contains("pleach_jobs_unheld 1"), "{text}");
    site.tick();
    site.end("fast");
    site.round(2).await;
    assert_eq!(site.controller.status().num_unheld, Some(0));
}

#[tokio::test]
async fn namespaces_that_the_webhook_is_not_to_see_have_none() {
    let mut site = site(&["another"]).await;
    site.add(free("fast", NOW_S + 10));
    site.round(10).await;
    assert_eq!(site.controller.status().num_unheld, Some(0));
}

/// `check` as an operator runs it, with the manifests' Lease, against this server.
async fn check(fake: &Fake, folder: &Path, settings: &str) -> (bool, String) {
    let config = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": format!("http://{}", fake.address) } }],
        "users": [{ "name": "u", "user": {} }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }] });
    std::fs::write(folder.join("kubeconfig"), config.to_string()).unwrap();
    std::fs::write(folder.join("pleach.toml"), settings).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach-kubernetes"));
    command.arg("--config").arg(folder.join("pleach.toml"));
    command.arg("--state-dir").arg(folder).arg("check");
    command.env("KUBECONFIG", folder.join("kubeconfig"));
    let ran = tokio::task::spawn_blocking(move || command.output());
    let output = ran.await.unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[tokio::test]
async fn check_asks_for_the_lease_where_it_is_and_names_what_came_unheld() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::default();
    world.add_node(node("n1", 8));
    world.labelled.insert("team".into());
    let fake = Fake::still(world).await;
    let lease = "namespaces = ['team']\nlease = 'pleach/pleach'\n";
    let (is_well, text) = check(&fake, folder.path(), lease).await;
    assert!(is_well && text.contains("update leases: allowed"), "{text}");
    assert!(!text.contains("warning") && !text.contains("ERROR"), "{text}");
    let slow = format!("{lease}tick_s = 600\nlease_s = 2\n");
    let (is_well, text) = check(&fake, folder.path(), &slow).await;
    assert!(
        is_well && text.contains("tick_s = 600 is not below lease_s = 2"),
        "{text}"
    );
    let now_s = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let fast = free("fast", i64::try_from(now_s).unwrap() - 60);
    fake.world.lock().unwrap().add_pod(fast);
    let (is_well, text) = check(&fake, folder.path(), lease).await;
    assert!(
        !is_well && text.contains("ERROR: 1 GPU pod(s)") && text.contains("team/fast"),
        "{text}"
    );
}
