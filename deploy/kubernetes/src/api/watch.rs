//! Nodes, pods and Jobs kept by watches, so that a round lists nothing: one list of each at the start, and its changes from then on.
//!
//! A round reads what is kept as it reads lists. What is kept must be fresh: with no word of the API server for
//! [`Cluster::age_max`] the round fails, and nothing is started. A kind that may not be watched is listed each round instead.
//! Answers to this program's own patches are kept at once, so that no round decides about a pod that it has let go.
//!
//! Not the reflector of `kube-runtime`: its pages have one size for ever, so a page that is longer than an answer may be would stop it
//! (users decide how large a pod is), and it says nothing of how old what it keeps is.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Resource;
use pleach_daemon::pulse::Pulse;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::follow::Follow;
use super::kept::{Change, Kept, Shown, Watched};
use super::{Cluster, ENDED, LIVE, trim};
use crate::error::Error;
use crate::names;
use crate::pod::{self, PodSeen};

impl Cluster {
    /// From now on nodes, pods, Jobs and the volumes of pods that wait are kept by watches, each from the first round that needs it,
    /// for as long as a clone of this lives. `changes` is notified of what is a reason for a round: GPUs that become free, pods that
    /// come, nodes that change. A second call does nothing.
    pub fn watch(&self, changes: &Arc<Notify>) {
        self.watched.get_or_init(|| Watched::new(changes));
    }

    /// The nodes that are kept; none where they are to be listed, with the reason in `unread` if it is one.
    pub(super) async fn kept_nodes(&self, unread: &mut Vec<String>) -> Result<Option<Vec<Arc<Node>>>, Error> {
        self.kept(
            |watched| {
                watched.nodes.get_or_init(|| {
                    self.follow(
                        watched,
                        "nodes",
                        "",
                        |_, node| trim::node(node),
                        |cluster, change| !cluster.settings.drive.is_order() && has_changed(change),
                    )
                })
            },
            unread,
        )
        .await
    }

    /// The same of pods that have not ended.
    pub(super) async fn kept_pods(&self, unread: &mut Vec<String>) -> Result<Option<Vec<Arc<Pod>>>, Error> {
        self.kept(
            |watched| {
                watched.pods.get_or_init(|| {
                    self.follow(watched, "pods", LIVE, trimmed, |cluster, change| {
                        !cluster.settings.drive.is_order() && frees_or_asks(cluster, change)
                    })
                })
            },
            unread,
        )
        .await
    }

    /// The same of pods that have ended and are still there.
    pub(super) async fn kept_ended(&self, unread: &mut Vec<String>) -> Result<Option<Vec<Arc<Pod>>>, Error> {
        self.kept(
            |watched| {
                watched
                    .ended
                    .get_or_init(|| self.follow(watched, "pods", ENDED, trimmed, |_, _| false))
            },
            unread,
        )
        .await
    }

    /// The same of all Jobs.
    pub(super) async fn kept_jobs(&self, unread: &mut Vec<String>) -> Result<Option<Vec<Arc<Job>>>, Error> {
        self.kept(
            |watched| {
                watched.jobs.get_or_init(|| {
                    self.follow(
                        watched,
                        "jobs",
                        "",
                        |cluster, job| trim::job(job, cluster.settings.tenant_label.as_deref()),
                        |_, change| {
                            change.old.is_none() && change.new.as_ref().is_some_and(|job| trim::is_held(job))
                        },
                    )
                })
            },
            unread,
        )
        .await
    }

    /// The same of all claims.
    pub(super) async fn kept_claims(
        &self,
        unread: &mut Vec<String>,
    ) -> Result<Option<Vec<Arc<PersistentVolumeClaim>>>, Error> {
        self.kept(
            |watched| {
                watched.claims.get_or_init(|| {
                    self.follow(
                        watched,
                        "persistentvolumeclaims",
                        "",
                        |_, claim| trim::bare(&mut claim.metadata),
                        |_, _| false,
                    )
                })
            },
            unread,
        )
        .await
    }

    /// The same of all volumes.
    pub(super) async fn kept_volumes(
        &self,
        unread: &mut Vec<String>,
    ) -> Result<Option<Vec<Arc<PersistentVolume>>>, Error> {
        self.kept(
            |watched| {
                watched.volumes.get_or_init(|| {
                    self.follow(
                        watched,
                        "persistentvolumes",
                        "",
                        |_, volume| trim::bare(&mut volume.metadata),
                        |_, _| false,
                    )
                })
            },
            unread,
        )
        .await
    }

    pub(super) async fn kept<'a, K: Clone + PartialEq + Resource + 'static>(
        &'a self,
        of: impl FnOnce(&'a Watched) -> &'a Arc<Kept<K>>,
        unread: &mut Vec<String>,
    ) -> Result<Option<Vec<Arc<K>>>, Error> {
        let Some(watched) = self.watched.get() else {
            return Ok(None);
        };
        let kept = of(watched);
        let still = || self.pulse.iter().for_each(Pulse::beat);
        match kept.shown(self.age_max(), still).await? {
            Shown::All(objects) => Ok(Some(objects)),
            Shown::Refused(why) => {
                unread.push(format!(
                    "{} are listed in each round, for they may not be watched (the ClusterRole of \
                     deploy/kubernetes/deploy/shadow/rbac.yaml gives the right): {why}",
                    kept.what
                ));
                Ok(None)
            }
        }
    }

    /// Keeps a pod as the API server answers it.
    pub(super) fn answered(&self, mut pod: Pod) {
        if let Some(kept) = self.watched.get().and_then(|watched| watched.pods.get()) {
            pod::trim(&mut pod, self.settings.tenant_label.as_deref());
            kept.answered(pod);
        }
    }

    /// The newest version of a pod of which the same is read.
    pub(super) fn version_of(&self, pod: &PodSeen) -> String {
        let own = &pod.resource_version;
        let kept = self.watched.get().and_then(|watched| watched.pods.get());
        let newest = kept.map(|kept| kept.newest((&pod.namespace, &pod.name, &pod.uid), own));
        newest.unwrap_or_else(|| own.clone())
    }

    /// Whether pods are kept, so that what this program does to one has to be read again where no answer shows it.
    pub(super) fn keeps_pods(&self) -> bool {
        self.watched
            .get()
            .is_some_and(|watched| watched.pods.get().is_some())
    }
}

impl Cluster {
    /// Longest time without a word of the API server: a watch, the attempt at the next one, and as much again.
    fn age_max(&self) -> Duration {
        let watch_s = u64::from(Follow::<Pod>::watch_s(self));
        Duration::from_secs(watch_s) + 2 * self.settings.request_limit()
    }

    pub(super) fn follow<K>(
        &self,
        watched: &Watched,
        what: &'static str,
        fields: &'static str,
        trim: fn(&Cluster, &mut K),
        wakes: fn(&Cluster, &Change<K>) -> bool,
    ) -> Arc<Kept<K>>
    where
        K: Clone + PartialEq + Debug + DeserializeOwned + Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        self.follow_of(watched, (what, ()), fields, trim, wakes)
    }

    /// The same of a kind that the client knows by its name.
    pub(super) fn follow_of<K>(
        &self,
        watched: &Watched,
        (what, of): (&'static str, K::DynamicType),
        fields: &'static str,
        trim: fn(&Cluster, &mut K),
        wakes: fn(&Cluster, &Change<K>) -> bool,
    ) -> Arc<Kept<K>>
    where
        K: Clone + PartialEq + Debug + DeserializeOwned + Resource + Send + Sync + 'static,
        K::DynamicType: Send + Sync,
    {
        let kept = Arc::new(Kept::new(what));
        let follow = Follow {
            cluster: Cluster {
                watched: Arc::default(),
                // What the watches hear is no life sign of the loop.
                pulse: None,
                ..self.clone()
            },
            of,
            kept: Arc::clone(&kept),
            fields,
            trim,
            wakes,
            changes: Arc::clone(&watched.changes),
        };
        watched.spawn(follow.run());
        kept
    }
}

fn trimmed(cluster: &Cluster, pod: &mut Pod) {
    pod::trim(pod, cluster.settings.tenant_label.as_deref());
}

/// Whether a node is another one for a decision.
fn has_changed(change: &Change<Node>) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => !Arc::ptr_eq(old, new),
        (None, None) => false,
        _ => true,
    }
}

/// Whether GPUs become free, a pod comes that is held, or one that is held loses a gate of others.
fn frees_or_asks(cluster: &Cluster, change: &Change<Pod>) -> bool {
    let gates = |pod: &Arc<Pod>| {
        let gates = pod
            .spec
            .iter()
            .flat_map(|spec| spec.scheduling_gates.iter().flatten());
        gates.map(|gate| gate.name.clone()).collect::<Vec<String>>()
    };
    let held = |pod: &Arc<Pod>| gates(pod).iter().any(|gate| gate == names::GATE);
    let holds = |pod: &Arc<Pod>| {
        let spec = pod.spec.as_ref().filter(|spec| spec.node_name.is_some());
        spec.is_some_and(|spec| !pod::gpus(spec, &cluster.settings).is_empty())
    };
    match (&change.old, &change.new) {
        (Some(old), None) => holds(old),
        (None, Some(new)) => held(new),
        (Some(old), Some(new)) => held(new) && gates(old) != gates(new),
        (None, None) => false,
    }
}
