//! Jobs that wait without pods, by `spec.suspend`: no pod of them counts in a quota, and `activeDeadlineSeconds` does not run.
//!
//! The webhook suspends a Job when it is made and notes that on it ([`names::SUSPENDED`]), so that a Job which its user suspends stays
//! suspended. What a Job asks for its template says: a look sees the pods that it would make, each with our gate. When the policy
//! starts the Job, one request takes the note off, lets its pods be made and marks the Job with their nodes, as pods of a gang are
//! marked. The nodes are promised to the pods until these are there, and each goes to its own. A mark counts for
//! [`crate::Settings::release_limit_s`]; a Job without pods by then is suspended again. The same holds of JobSets, training jobs
//! and RayJobs ([`maker`]).

pub mod maker;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, PodSchedulingGate};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::DynamicObject;
use pleach_daemon::snapshot::Phase;
use pleach_site::Held;

use crate::clock::Clock;
use crate::config::Settings;
use crate::mark::Decided;
use crate::names;
use crate::pod::{self, PodSeen};
use crate::standing::{Duty, Gang};

use self::maker::{JOB, Kind, Maker, Set};

/// Most bytes of the pods that an object would make, as JSON: with more its pods wait with gates. *Ours*: they are made anew in each
/// round, and cost their user nothing.
const BYTES_MAX: usize = 16 << 20;

/// An object of another kind than Job that is suspended, or was let go.
pub type Other = (&'static Kind, Arc<DynamicObject>);

/// A Job, or an object of another kind, that may be suspended, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its kind.
    pub kind: &'static Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a Job of the same name is another one.
    pub uid: String,
    /// The version that was read; what is changed has to be this one still.
    pub resource_version: String,
    /// Whether it is suspended, by us.
    pub is_suspended: bool,
    /// Not to be let go again before, Unix time, s.
    pub not_before_s: i64,
    /// What was decided about its pods, where it was let go.
    pub mark: Option<Decided>,
    /// Pods that it runs at once now.
    pub num_pods: u32,
    /// Whether some of its pods have ended well.
    pub has_succeeded: bool,
}

impl Owner {
    /// Reads an object; none where it has ended, or is not ours to suspend.
    #[must_use]
    pub fn read(maker: &Maker<'_>, settings: &Settings) -> Option<Owner> {
        let meta = maker.meta;
        let held = held(maker);
        if maker.is_over || meta.deletion_timestamp.is_some() || held == Held::Theirs {
            return None;
        }
        let note = |name: &str| meta.annotations.as_ref()?.get(name);
        let uid = meta.uid.clone()?;
        let of_others = || {
            let sets = of_gpus(maker, settings);
            sets.iter().map(|set| set.num).fold(0, u32::saturating_add)
        };
        Some(Owner {
            kind: maker.kind,
            namespace: meta.namespace.clone()?,
            name: meta.name.clone()?,
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            is_suspended: held == Held::Ours,
            not_before_s: note(names::SUSPENDED)
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(0),
            mark: note(names::DECIDED).and_then(|text| Decided::read(text, &uid, &settings.marks)),
            num_pods: maker.num_pods().unwrap_or_else(of_others),
            has_succeeded: maker.has_succeeded,
            uid,
        })
    }

    /// Whether its pods are still to be made: later than twice [`crate::Settings::release_limit_s`] after it was let go it has had some, or
    /// had been suspended again.
    #[must_use]
    pub fn is_to_have_pods(&self, settings: &Settings, clock: &Clock) -> bool {
        let limit_s = settings.release_limit_s.saturating_mul(2);
        let is_over = |mark: &Decided| clock.is_past(mark.at_s.saturating_add(limit_s));
        self.is_suspended || !self.mark.as_ref().is_none_or(is_over)
    }

    /// Its mark, while that counts.
    #[must_use]
    pub fn mark_at(&self, settings: &Settings, clock: &Clock) -> Option<&Decided> {
        let limit_s = settings.release_limit_s;
        let is_fresh = |mark: &&Decided| {
            let (from_s, to_s) = (
                mark.at_s.saturating_sub(limit_s),
                mark.at_s.saturating_add(limit_s),
            );
            !clock.is_before(from_s) && !clock.is_past(to_s)
        };
        self.mark.as_ref().filter(is_fresh)
    }
}

/// How an object is held.
fn held(maker: &Maker<'_>) -> Held {
    let meta = maker.meta;
    let has = |name: &str| {
        let mut maps = [&meta.labels, &meta.annotations].into_iter().flatten();
        maps.any(|map| map.contains_key(name))
    };
    let mut owners = meta.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    pleach_site::Maker {
        has: &has,
        controller: controller.map(|owner| owner.kind.as_str()),
        managed_by: maker.managed_by,
        is_suspended: maker.is_suspended,
    }
    .held()
}

/// Whether an object that is being made is to be suspended: pods of it would be held, and it is ours to suspend.
#[must_use]
pub fn is_to_be_suspended(maker: &Maker<'_>, namespace: &str, settings: &Settings) -> bool {
    let itself = Pod {
        metadata: maker.meta.clone(),
        ..Pod::default()
    };
    let sets = maker.sets();
    let bytes = sets
        .iter()
        .map(|set| bytes(&set.template).saturating_mul(set.num as usize));
    settings.suspend
        && held(maker) == Held::Open
        && !maker.comes_in_parts()
        && bytes.fold(0, usize::saturating_add) <= BYTES_MAX
        && !pod::opts_out(&itself, settings)
        && sets
            .iter()
            .any(|set| pod::is_to_be_held(&set.template, namespace, settings))
}

fn bytes(pod: &Pod) -> usize {
    serde_json::to_vec(pod).map_or(usize::MAX, |text| text.len())
}

/// The pods of an object that ask for GPUs.
fn of_gpus(maker: &Maker<'_>, settings: &Settings) -> Vec<Set> {
    let asks = |set: &Set| {
        let spec = set.template.spec.as_ref();
        spec.is_some_and(|spec| !pod::gpus(spec, settings).is_empty())
    };
    maker.sets().into_iter().filter(asks).collect()
}

/// The pods that an object would make which ask for GPUs, held by our gate.
#[must_use]
pub fn pods(maker: &Maker<'_>, owner: &Owner, classes: &Classes<'_>, settings: &Settings) -> Vec<Pod> {
    let pods = of_gpus(maker, settings).into_iter().flat_map(|set| {
        let (num, is_indexed) = (set.num, set.is_indexed);
        let one = of_set(set, (maker, owner), classes);
        let most = match num {
            // Most Jobs, of which each round makes this pod: its size is not measured then.
            0 | 1 => num,
            _ => u32::try_from(BYTES_MAX / bytes(&one).max(1))
                .unwrap_or(u32::MAX)
                .max(1),
        };
        std::iter::repeat_n(one, num.min(most) as usize)
            .enumerate()
            .map(move |(number, mut pod)| {
                if is_indexed {
                    let notes = pod.metadata.annotations.get_or_insert_default();
                    notes.insert(names::JOB_INDEX.into(), number.to_string());
                }
                pod
            })
    });
    pods.take(settings.objects_max as usize).collect()
}

fn of_set(set: Set, (maker, owner): (&Maker<'_>, &Owner), classes: &Classes<'_>) -> Pod {
    let mut pod = set.template;
    let spec = pod.spec.get_or_insert_default();
    spec.priority = classes.of(spec.priority_class_name.as_deref());
    let gates = spec.scheduling_gates.get_or_insert_default();
    if gates.iter().all(|gate| gate.name != names::GATE) {
        gates.push(PodSchedulingGate {
            name: names::GATE.into(),
        });
    }
    let mut labels = pod.metadata.labels.unwrap_or_default();
    labels.extend(set.labels.into_iter().map(|(key, value)| (key.to_owned(), value)));
    let mut annotations = pod.metadata.annotations.unwrap_or_default();
    annotations.remove(names::DECIDED);
    pod.metadata = ObjectMeta {
        namespace: Some(owner.namespace.clone()),
        name: Some(owner.name.clone()),
        // Where each pod is a job of its own, the Job is one until it has some.
        uid: Some(owner.uid.clone()),
        creation_timestamp: maker.meta.creation_timestamp.clone(),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: Some(vec![OwnerReference {
            api_version: owner.kind.api_version(),
            kind: owner.kind.kind.into(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            controller: Some(true),
            block_owner_deletion: None,
        }]),
        ..ObjectMeta::default()
    };
    pod
}

/// Priorities of classes, as the API server gives them to pods.
#[derive(Debug, Default)]
pub struct Classes<'a> {
    values: BTreeMap<&'a str, i32>,
    usual: Option<i32>,
}

impl<'a> Classes<'a> {
    /// From a list.
    #[must_use]
    pub fn new(list: &'a [Arc<PriorityClass>]) -> Classes<'a> {
        let usual = list.iter().filter(|class| class.global_default == Some(true));
        let value = |class: &'a Arc<PriorityClass>| Some((class.metadata.name.as_deref()?, class.value?));
        Classes {
            // Of several the lowest counts.
            usual: usual.filter_map(|class| class.value).min(),
            values: list.iter().filter_map(value).collect(),
        }
    }

    /// The priority of pods of a class.
    #[must_use]
    pub fn of(&self, class: Option<&str>) -> Option<i32> {
        match class.filter(|class| !class.is_empty()) {
            Some(class) => self.values.get(class).copied(),
            None => self.usual,
        }
    }
}

/// Objects of a look that are, or may be, suspended.
#[derive(Debug, Default)]
pub struct Owners<'a> {
    all: Vec<(Owner, Maker<'a>)>,
    by_uid: BTreeMap<&'a str, usize>,
    /// Those whose pods have another owner, by the label of the pods that tells them, their namespace and its value.
    by_label: BTreeMap<(&'static str, &'a str, &'a str), usize>,
    /// Those whose mark has done its work, for the next look.
    pub(crate) begun: BTreeMap<String, i64>,
}

impl<'a> Owners<'a> {
    /// Of driven namespaces; none where pods are not held. `begun` is [`Traces::begun`](crate::seats::Traces::begun) of the last look.
    #[must_use]
    pub fn new(
        (jobs, others): (&'a [Arc<Job>], &'a [Other]),
        begun: &BTreeMap<String, i64>,
        settings: &Settings,
    ) -> Owners<'a> {
        let mut owners = Owners::default();
        if settings.drive.is_order() {
            return owners;
        }
        let others = others.iter().map(|(kind, object)| Maker::of_other(kind, object));
        for maker in jobs.iter().map(|job| Maker::of_job(job)).chain(others) {
            let meta = maker.meta;
            let (Some(space), Some(name), Some(uid)) = (&meta.namespace, &meta.name, &meta.uid) else {
                continue;
            };
            let read = Some(&maker).filter(|_| settings.drives(space));
            let Some(mut owner) = read.and_then(|maker| Owner::read(maker, settings)) else {
                continue;
            };
            if let Some(mark) = owner.mark.take_if(|mark| begun.get(uid) == Some(&mark.at_s)) {
                owners.begun.insert(uid.clone(), mark.at_s);
            }
            let row = owners.all.len();
            owners.by_uid.insert(uid, row);
            if maker.kind.plural == "jobsets" {
                owners.by_label.insert((names::JOBSET_NAME, space, name), row);
            }
            if let Some(cluster) = maker.ray_cluster() {
                owners.by_label.insert((names::RAY_CLUSTER, space, cluster), row);
            }
            owners.all.push((owner, maker));
        }
        owners
    }

    /// What makes a pod.
    #[must_use]
    pub fn of(&self, pod: &Pod) -> Option<&Owner> {
        let meta = &pod.metadata;
        let by_label = || {
            let labels = [names::JOBSET_NAME, names::RAY_CLUSTER];
            let space = meta.namespace.as_deref()?;
            labels.into_iter().find_map(|label| {
                let key = (label, space, pod::word(pod, label)?);
                self.by_label.get(&key)
            })
        };
        let mut owners = meta.owner_references.iter().flatten();
        let controller = owners.find(|owner| owner.controller == Some(true));
        let by_uid = controller.and_then(|owner| self.by_uid.get(owner.uid.as_str()));
        let row = by_uid.or_else(by_label)?;
        self.all.get(*row).map(|(owner, _)| owner)
    }

    /// RayJobs that have a cluster: namespace, cluster, name.
    pub fn ray_jobs(&self) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        self.all.iter().filter_map(|(_, maker)| {
            let of = (maker.meta.namespace.as_deref()?, maker.ray_cluster()?);
            Some((of.0, of.1, maker.meta.name.as_deref()?))
        })
    }

    /// Those that were suspended or let go.
    pub fn held(&self) -> impl Iterator<Item = &(Owner, Maker<'a>)> {
        let all = self.all.iter();
        all.filter(|(owner, _)| owner.is_suspended || owner.mark.is_some())
    }
}

/// What is known of the Jobs of a job, where they are or may be suspended.
pub(crate) struct Holding<'a> {
    pub owners: &'a [Owner],
    pub is_made: bool,
    /// Whether a mark of theirs counts.
    pub is_released: bool,
    /// Whether nothing but its pods speaks against it.
    pub may_be_suspended: bool,
}

impl Holding<'_> {
    /// Not to be let go before, Unix time, s.
    pub fn not_before_s(&self) -> i64 {
        let all = self.owners.iter().map(|owner| owner.not_before_s);
        all.max().filter(|_| !self.is_made).unwrap_or(0)
    }

    /// Where a job stands instead, and what is to be done, because of its Jobs; none where that is as its pods say.
    pub fn of(
        &self,
        (phase, duty): (&Phase, Duty),
        pods: &[PodSeen],
        gang: &Gang<'_>,
    ) -> Option<(Phase, Duty)> {
        let blocked = |reason: String| Phase::Blocked { reason };
        let is_suspended = self.owners.iter().any(|owner| owner.is_suspended);
        if self.is_made && is_suspended {
            let reason = "its Job was suspended, and its pods are still there";
            return Some((blocked(reason.into()), Duty::None));
        }
        if !self.is_made && !is_suspended && !self.is_released {
            let limit_s = gang.settings.release_limit_s;
            let reason = format!("its pods were not made within {limit_s} s: the Events of its Job say why");
            return Some((blocked(reason), Duty::Suspend));
        }
        let is_of_them = |pod: &PodSeen| {
            self.owners
                .iter()
                .any(|owner| pod.owner.as_ref() == Some(&owner.uid))
        };
        let youngest_s = pods.iter().map(|pod| pod.created_s).max()?;
        let is_short = gang.size.is_some_and(|size| pods.len() < size as usize);
        let waits = match phase {
            Phase::Waiting => true,
            Phase::Blocked { .. } => is_short,
            _ => false,
        };
        let is_to_be = self.is_made
            && self.may_be_suspended
            && waits
            && duty == Duty::None
            && !gang
                .clock
                .is_before(youngest_s.saturating_add(gang.settings.settle_s.max(1)))
            && self
                .owners
                .iter()
                .all(|owner| !owner.has_succeeded && *owner.kind == JOB)
            && pods.iter().all(|pod| pod.is_held() && is_of_them(pod));
        is_to_be.then(|| (phase.clone(), Duty::Suspend))
    }
}
