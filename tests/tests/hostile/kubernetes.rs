//! What Kubernetes sends and lists, and what the controller keeps.

use std::sync::Arc;

use pleach_daemon::EstimateSettings;
use pleach_kubernetes::claims::Claims;
use pleach_kubernetes::let_go::LetGo;
use pleach_kubernetes::mark::{Decided, Key};
use pleach_kubernetes::observe::{Lists, observe};
use pleach_kubernetes::suspended::Other;
use pleach_kubernetes::suspended::maker::{Kind, OTHERS};
use pleach_kubernetes::{Settings, node, pod, webhook};
use serde_json::{Value, from_value};

use super::Reader;

const NOW_S: i64 = 1_750_000_000;

/// The items of a list that are of this kind; what is none is left out, as a client does.
fn items<T: serde::de::DeserializeOwned>(list: &Value, kind: &str) -> Vec<Arc<T>> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_kind = items.iter().filter(|item| item["kind"] == kind);
    let read = |item: &Value| from_value(item.clone()).ok().map(Arc::new);
    of_kind.filter_map(read).collect()
}

fn of_kind(list: &Value, kind: &'static Kind) -> Vec<Other> {
    let found = items(list, kind.kind).into_iter();
    found.map(|object| (kind, object)).collect()
}

pub const READERS: [Reader; 5] = [
    Reader {
        name: "controller-settings",
        beside: &[],
        sources: &["deploy/kubernetes/src/config.rs"],
        read: |path| Settings::load(path).map(drop).map_err(|error| error.to_string()),
    },
    Reader {
        name: "reviews",
        beside: &[],
        sources: &["deploy/kubernetes/src/webhook.rs"],
        read: |path| {
            let body = std::fs::read(path).unwrap();
            let settings = Settings {
                namespaces: vec!["*".into()],
                ..Settings::default()
            };
            let alive = webhook::review(&body, &settings, true, &LetGo::default());
            webhook::review(&body, &settings, false, &LetGo::default())
                .and(alive)
                .map(drop)
        },
    },
    Reader {
        name: "objects",
        beside: &[],
        sources: &[],
        read: |path| {
            let text = std::fs::read(path).unwrap();
            let list: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
            let settings = Settings::default();
            let lists = Lists {
                nodes: items(&list, "Node"),
                pods: items(&list, "Pod"),
                jobs: items(&list, "Job"),
                claims: items(&list, "PersistentVolumeClaim"),
                volumes: items(&list, "PersistentVolume"),
                quotas: items(&list, "ResourceQuota"),
                classes: items(&list, "PriorityClass"),
                others: OTHERS.iter().flat_map(|kind| of_kind(&list, kind)).collect(),
                ..Lists::default()
            };
            let _ = observe(&lists, &settings, NOW_S);
            let _ = node::units(&lists.nodes, &settings);
            for one in &lists.pods {
                let _ = pod::read(one, &settings);
                let mut kept = (**one).clone();
                pod::trim(&mut kept, None);
                let _ = pod::read(&kept, &settings);
            }
            Ok(())
        },
    },
    Reader {
        name: "marks",
        beside: &[],
        sources: &["deploy/kubernetes/src/mark.rs"],
        read: |path| {
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
            // What others wrote is no mark, and nothing is said of it.
            let _ = Decided::read(
                text.trim_end(),
                "uid",
                &Key::of(b"a key of thirty-two bytes at least"),
            );
            let folder = path.parent().unwrap();
            std::fs::copy(path, folder.join("marks.key")).unwrap();
            Key::find((None, folder))
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "claims",
        beside: &[],
        sources: &["deploy/kubernetes/src/claims.rs"],
        read: |path| {
            let folder = path.parent().unwrap().join("state");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::copy(path, folder.join("claims.json")).unwrap();
            let _ = Claims::begin(&folder, &EstimateSettings::default());
            Ok(())
        },
    },
];
