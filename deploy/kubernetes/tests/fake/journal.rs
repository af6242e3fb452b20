//! What changed, in the order of its versions, as etcd keeps it: tests change objects as they like, and each look finds what is other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use pleach_kubernetes::suspended::maker::OTHERS;
use serde_json::{Value, json};

use super::World;
use super::watches::WatchFault;

/// Changes, and what goes wrong with the watches that show them.
#[derive(Default)]
pub struct Journal {
    /// Whether changes are written down: where all is listed nothing needs them.
    pub is_kept: bool,
    /// Whether nothing changes without a new version, so that a look for changes is cheap.
    pub trusts_versions: bool,
    recorded: Option<u64>,
    /// Time between two looks of a watch for what has changed; none: 20 ms.
    pub look: Option<Duration>,
    seen: BTreeMap<(&'static str, String), Value>,
    entries: Vec<Entry>,
    /// Changes up to this version are forgotten.
    floor: u64,
    /// What goes wrong with the next watches of a kind.
    pub faults: VecDeque<(&'static str, WatchFault)>,
    /// Watches that were asked for: the kind, and the version.
    pub watches: Vec<(&'static str, String)>,
}

#[derive(Clone)]
struct Entry {
    version: u64,
    kind: &'static str,
    old: Option<Value>,
    new: Option<Value>,
}

fn key(object: &Value) -> String {
    let of = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}", of("namespace"), of("name"))
}

/// Whether a selector of fields takes an object.
fn selects(selector: &str, object: &Value) -> bool {
    let phase = object["status"]["phase"].as_str().unwrap_or("Pending");
    let mut parts = selector.split(',').filter(|part| !part.is_empty());
    parts.all(|part| part.strip_prefix("status.phase!=").unwrap() != phase)
}

impl World {
    /// All objects of a kind that a selector takes, and the version of the list.
    pub fn listed(&mut self, kind: &'static str, selector: &str) -> (Vec<Value>, u64) {
        self.record();
        if kind != "Job" {
            self.num_lists += 1;
        }
        let found = self
            .objects(kind)
            .into_iter()
            .filter(|one| selects(selector, one));
        (found.cloned().collect(), self.version)
    }

    fn objects(&self, kind: &str) -> Vec<&Value> {
        match kind {
            "Node" => self.nodes.values().collect(),
            "Pod" => self.pods.values().collect(),
            "Job" => self.jobs.iter().collect(),
            "PersistentVolumeClaim" => self.claims.iter().collect(),
            "PersistentVolume" => self.volumes.iter().collect(),
            "PriorityClass" => self
                .of_kueue
                .get("priorityclasses")
                .into_iter()
                .flatten()
                .collect(),
            "ResourceQuota" => self.quotas.iter().collect(),
            other => self.others.get(other).into_iter().flatten().collect(),
        }
    }

    fn objects_mut(&mut self, kind: &str) -> Vec<&mut Value> {
        match kind {
            "Node" => self.nodes.values_mut().collect(),
            "Pod" => self.pods.values_mut().collect(),
            "Job" => self.jobs.iter_mut().collect(),
            "PersistentVolumeClaim" => self.claims.iter_mut().collect(),
            "PriorityClass" => self
                .of_kueue
                .get_mut("priorityclasses")
                .into_iter()
                .flatten()
                .collect(),
            "ResourceQuota" => self.quotas.iter_mut().collect(),
            "PersistentVolume" => self.volumes.iter_mut().collect(),
            other => self.others.get_mut(other).into_iter().flatten().collect(),
        }
    }

    /// Writes down what is other than at the last look. What was changed without a new version gets one.
    pub fn record(&mut self) {
        let is_new = self.journal.recorded != Some(self.version);
        if !self.journal.is_kept || self.journal.trusts_versions && !is_new {
            return;
        }
        let recorded = self.journal.recorded.unwrap_or(0);
        let mut version = self.version.max(1);
        let mut new = Vec::new();
        let mut gone: BTreeSet<_> = self.journal.seen.keys().cloned().collect();
        let others = OTHERS.iter().map(|kind| kind.plural);
        let own = [
            "Node",
            "Pod",
            "Job",
            "PersistentVolumeClaim",
            "PersistentVolume",
            "PriorityClass",
            "ResourceQuota",
        ];
        for kind in own.into_iter().chain(others) {
            let seen = std::mem::take(&mut self.journal.seen);
            for object in self.objects_mut(kind) {
                let at = (kind, key(object));
                let old = seen.get(&at);
                gone.remove(&at);
                if old == Some(&*object) {
                    continue;
                }
                let own = object["metadata"]["resourceVersion"].as_str();
                let own: Option<u64> = own.and_then(|text| text.parse().ok());
                // What has no new version of its own gets one.
                if own.is_none_or(|own| own <= recorded) {
                    version += 1;
                    object["metadata"]["resourceVersion"] = json!(version.to_string());
                }
                let is_other = old.is_some_and(|old| old["metadata"]["uid"] != object["metadata"]["uid"]);
                if is_other {
                    version += 1;
                    new.push(deleted(kind, old.unwrap().clone(), version));
                    version += 1;
                    object["metadata"]["resourceVersion"] = json!(version.to_string());
                }
                new.push(Entry {
                    version: object["metadata"]["resourceVersion"]
                        .as_str()
                        .unwrap()
                        .parse()
                        .unwrap(),
                    kind,
                    old: old.filter(|_| !is_other).cloned(),
                    new: Some(object.clone()),
                });
            }
            self.journal.seen = seen;
        }
        for at in gone {
            version += 1;
            let old = self.journal.seen.remove(&at).unwrap();
            new.push(deleted(at.0, old, version));
        }
        self.version = version;
        self.journal.recorded = Some(version);
        new.sort_by_key(|entry| entry.version);
        for entry in &new {
            if let Some(object) = &entry.new {
                let at = (entry.kind, key(object));
                self.journal.seen.insert(at, object.clone());
            }
        }
        self.journal.entries.extend(new);
    }

    /// Writes a patch of a pod down at once, where nothing else changes any object.
    pub fn note_patch(&mut self, old: Value, new: Value) {
        if !self.journal.trusts_versions {
            return;
        }
        self.journal.seen.insert(("Pod", key(&new)), new.clone());
        self.journal.recorded = Some(self.version);
        self.journal.entries.push(Entry {
            version: self.version,
            kind: "Pod",
            old: Some(old),
            new: Some(new),
        });
    }

    /// Forgets all changes so far, as etcd does when it compacts.
    pub fn compact(&mut self) {
        self.record();
        self.journal.floor = self.version;
        self.journal.entries.clear();
    }

    /// Events of a kind after a version, as lines, and the version of the last one; none where they are forgotten.
    pub fn events_after(&mut self, kind: &str, selector: &str, version: u64) -> Option<(String, u64)> {
        self.record();
        if version < self.journal.floor {
            return None;
        }
        let (mut lines, mut last) = (String::new(), version);
        let begin = self
            .journal
            .entries
            .partition_point(|entry| entry.version <= version);
        for entry in &self.journal.entries[begin..] {
            if entry.kind != kind {
                continue;
            }
            last = entry.version;
            let takes = |object: &Option<Value>| object.as_ref().is_some_and(|one| selects(selector, one));
            let (what, object) = match (takes(&entry.old), takes(&entry.new)) {
                (false, false) => continue,
                (false, true) => ("ADDED", entry.new.clone()),
                (true, true) => ("MODIFIED", entry.new.clone()),
                // What no longer fits the selector is shown as it is now.
                (true, false) => ("DELETED", entry.new.clone().or_else(|| entry.old.clone())),
            };
            let mut object = object.unwrap();
            object["metadata"]["resourceVersion"] = json!(entry.version.to_string());
            lines += &format!("{}\n", json!({ "type": what, "object": object }));
        }
        Some((lines, last))
    }
}

fn deleted(kind: &'static str, old: Value, version: u64) -> Entry {
    Entry {
        version,
        kind,
        old: Some(old),
        new: None,
    }
}
