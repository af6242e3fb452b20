//! Which pods have to start together, and how many they are.
//!
//! The first of these tells: our own label, Kueue's pod group, the native PodGroup, the scheduler plugins' pod group, Volcano's group,
//! Grove's gang, the JobSet, the group of a LeaderWorkerSet, a job of the training operator, the RayJob, the RayCluster, the Indexed Job. Other
//! pods are jobs of their own: those of a StatefulSet, a Deployment or a plain Job, unless the Job is indexed and runs all its
//! indexes at once. Of one that is not indexed the annotation [`names::PARALLEL`] says it, else a setting.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::names;

/// What pods that a Job runs at once are taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParallelJobs {
    /// Each is a job of its own, as workers of a queue are: some may run while others wait.
    #[default]
    Alone,
    /// They start together, as ranks of one program have to.
    Gang,
}

/// What a pod belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Where the name was found: a label, a field, or `pod`.
    pub by: &'static str,
    /// The name there.
    pub name: String,
}

/// A pod, as far as gangs depend on it.
#[derive(Clone, Copy)]
pub struct Pod<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// A label, or an annotation of the same name.
    pub word: &'a dyn Fn(&str) -> Option<&'a str>,
    /// Name of its native PodGroup (`spec.schedulingGroup.podGroupName`).
    pub native_group: Option<&'a str>,
    /// What a container has in [`names::TORCH_NODES`].
    pub torch_nodes: Option<&'a str>,
}

/// A Job's part in a JobSet.
#[derive(Clone, Copy, Debug)]
pub struct SetPart<'a> {
    /// Name of the JobSet.
    pub set: &'a str,
    /// Name of the replicated Job.
    pub part: &'a str,
    /// Jobs that it has.
    pub replicas: u32,
}

/// A Job, as far as gangs depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Pods that it runs at once.
    pub parallelism: u32,
    /// Pods that are to end well; none where it does not say.
    pub completions: Option<u32>,
    /// Pods that have.
    pub succeeded: u32,
    /// Whether each pod has an index.
    pub is_indexed: bool,
    /// Whether its pods ask for devices.
    pub asks_for_devices: bool,
    /// Its part in a JobSet.
    pub set: Option<SetPart<'a>>,
}

/// The Jobs of one part of a JobSet.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    replicas: u32,
    num_seen: u32,
    num_pods: u32,
    pods_each: u32,
}

/// What a pod is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gang {
    /// Its key; by `pod` where the pod is a job of its own.
    pub key: Key,
    /// Pods in all; none where nothing tells.
    pub size: Option<u32>,
    /// What its user should know; none where there is nothing to be said.
    pub remark: Option<String>,
}

impl Gang {
    /// Whether the pod is a job of its own.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.key.by == "pod"
    }
}

/// Jobs by namespace and name, and the parts of each JobSet.
#[derive(Debug, Default)]
pub struct Groups<'a> {
    jobs: BTreeMap<(&'a str, &'a str), Job<'a>>,
    sets: BTreeMap<(&'a str, &'a str), BTreeMap<&'a str, Part>>,
    /// RayJobs by the namespace and name of the RayCluster that each has.
    ray_jobs: BTreeMap<(&'a str, &'a str), &'a str>,
    parallel: ParallelJobs,
}

impl<'a> Groups<'a> {
    /// Makes the index.
    #[must_use]
    pub fn new(jobs: impl IntoIterator<Item = Job<'a>>, parallel: ParallelJobs) -> Groups<'a> {
        let mut groups = Groups {
            parallel,
            ..Groups::default()
        };
        for job in jobs {
            groups.jobs.insert((job.namespace, job.name), job);
            let Some(SetPart { set, part, replicas }) = job.set else {
                continue;
            };
            let parts = groups.sets.entry((job.namespace, set)).or_default();
            let part: &mut Part = parts.entry(part).or_default();
            part.replicas = part.replicas.max(replicas);
            part.num_seen = part.num_seen.saturating_add(1);
            // A part may ask for no GPUs: a launcher. Its pods are no part of the gang that waits for GPUs.
            if job.asks_for_devices {
                part.num_pods = part.num_pods.saturating_add(job.num_pods());
                part.pods_each = job.parallelism;
            }
        }
        groups
    }

    /// With RayJobs: the namespace, the RayCluster that it has now (`status.rayClusterName`) and the name of each. Another attempt has
    /// another cluster and is the same job.
    #[must_use]
    pub fn with_ray_jobs(self, jobs: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Groups<'a> {
        let named = jobs.into_iter();
        let named = named.map(|(namespace, cluster, name)| ((namespace, cluster), name));
        Groups {
            ray_jobs: named.collect(),
            ..self
        }
    }

    /// The Job of a pod, where it is known.
    #[must_use]
    pub fn job<'b>(&'b self, pod: &Pod<'b>) -> Option<&'b Job<'b>> {
        let name = (pod.word)(names::JOB_NAME).or_else(|| (pod.word)(names::JOB_NAME_OLD))?;
        let jobs: &'b BTreeMap<(&'b str, &'b str), Job<'b>> = &self.jobs;
        jobs.get(&(pod.namespace, name))
    }

    /// What a pod is part of.
    #[must_use]
    pub fn of<'b>(&'b self, pod: &Pod<'b>) -> Gang {
        let number = |name| (pod.word)(name).and_then(|text| text.trim().parse::<u32>().ok());
        let own_size = number(names::GANG_SIZE).filter(|size| *size > 0);
        let gang = |by: &'static str, name: &str, size: Option<u32>| Gang {
            key: Key {
                namespace: pod.namespace.to_owned(),
                by,
                name: name.to_owned(),
            },
            size: own_size.or(size).filter(|size| *size > 0),
            remark: None,
        };
        if let Some((by, name)) = self.named(pod) {
            let size = match by {
                names::JOBSET_NAME => self.size_of_set(pod.namespace, &name),
                names::LEADER_WORKER_SET => number(names::LEADER_WORKER_SIZE),
                names::TRAINING_JOB => pod.torch_nodes.and_then(fewest_nodes),
                _ => number(names::KUEUE_TOTAL),
            };
            return gang(by, &name, size);
        }
        let told = match (pod.word)(names::PARALLEL) {
            Some("gang") => Some(ParallelJobs::Gang),
            Some("alone") => Some(ParallelJobs::Alone),
            _ => None,
        };
        let taken_for = told.unwrap_or(self.parallel);
        let job = self.job(pod);
        let own = match job.filter(|job| job.is_gang(taken_for)) {
            Some(job) => gang(names::JOB_NAME, job.name, Some(job.num_pods().max(1))),
            None => Gang {
                size: Some(1),
                ..gang("pod", pod.name, None)
            },
        };
        Gang {
            remark: job
                .filter(|_| told.is_none())
                .and_then(|job| job.assumed(taken_for)),
            ..own
        }
    }

    /// The label or field that names the gang of a pod, and the name.
    fn named(&self, pod: &Pod<'_>) -> Option<(&'static str, String)> {
        let word = pod.word;
        let label = |by: &'static str| Some((by, word(by)?.to_owned()));
        let of_leader = || {
            let (by, set) = label(names::LEADER_WORKER_SET)?;
            Some((by, format!("{set}-{}", word(names::LEADER_WORKER_GROUP)?)))
        };
        let of_ray_job = || {
            let (kind, name) = names::RAY_MAKER;
            let told = word(kind).filter(|kind| *kind == names::RAY_JOB);
            let cluster = || Some((pod.namespace, word(names::RAY_CLUSTER)?));
            let name = match told {
                Some(_) => word(name)?,
                None => *self.ray_jobs.get(&cluster()?)?,
            };
            Some((names::RAY_JOB, name.to_owned()))
        };
        label(names::GANG)
            .or_else(|| label(names::KUEUE_GROUP))
            .or_else(|| Some((names::NATIVE_GROUP, pod.native_group?.to_owned())))
            .or_else(|| label(names::POD_GROUP))
            .or_else(|| label(names::POD_GROUP_OLD))
            .or_else(|| label(names::VOLCANO_GROUP))
            .or_else(|| label(names::GROVE_GANG))
            .or_else(|| label(names::JOBSET_NAME))
            .or_else(of_leader)
            .or_else(|| label(names::TRAINING_JOB))
            .or_else(of_ray_job)
            .or_else(|| label(names::RAY_CLUSTER))
    }

    /// Pods of a JobSet that ask for devices and have not ended; Jobs that are not there yet are like the others of their part.
    fn size_of_set(&self, namespace: &str, set: &str) -> Option<u32> {
        let parts = self.sets.get(&(namespace, set))?;
        let total = |part: &Part| {
            let missing = part.replicas.saturating_sub(part.num_seen);
            part.num_pods
                .saturating_add(missing.saturating_mul(part.pods_each))
        };
        Some(parts.values().map(total).fold(0, u32::saturating_add))
    }
}

impl Job<'_> {
    /// Pods that it runs now: those that succeeded are not made again, so that a completed initializer has none.
    #[must_use]
    pub fn num_pods(&self) -> u32 {
        let left = self.completions.map(|num| num.saturating_sub(self.succeeded));
        self.parallelism.min(left.unwrap_or(u32::MAX))
    }

    /// Whether all its pods run at once, are more than one and start together: indexes are ranks of one program, others where they
    /// are taken for a gang. More completions than pods at once are tasks.
    fn is_gang(&self, taken_for: ParallelJobs) -> bool {
        let is_all = self.completions == Some(self.parallelism);
        let starts_at_once = match self.is_indexed {
            true => is_all,
            // Without completions the first that ends well ends the Job: a gang too.
            false => taken_for == ParallelJobs::Gang && (is_all || self.completions.is_none()),
        };
        starts_at_once && self.parallelism > 1
    }

    /// What was assumed of a Job that runs pods at once and does not say whether they need each other: an Indexed one with more
    /// completions says that its indexes are tasks.
    fn assumed(&self, taken_for: ParallelJobs) -> Option<String> {
        let (num, name, namespace) = (self.parallelism, self.name, self.namespace);
        let assumed = match self.is_gang(taken_for) {
            true => "it is assumed that they start together",
            false => {
                "it is assumed that each of them is a job of its own, and some may run while others wait"
            }
        };
        (num > 1 && !self.is_indexed).then(|| {
            format!(
                "Job {namespace}/{name} runs {num} pods at once and is not Indexed: {assumed}; the annotation {} of its pods says it \
                 (gang, alone), and so does `completionMode: Indexed` with as many completions",
                names::PARALLEL
            )
        })
    }
}

/// The least number of nodes of `4` or `2:4`: with so many an elastic job begins.
fn fewest_nodes(text: &str) -> Option<u32> {
    text.split(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: Job<'_> = Job {
        namespace: "a",
        name: "fit",
        parallelism: 4,
        completions: Some(4),
        succeeded: 0,
        is_indexed: true,
        asks_for_devices: true,
        set: None,
    };

    /// Key and size of a pod with these labels beside Jobs.
    fn of(
        jobs: &[Job<'static>],
        words: &[(&str, &'static str)],
        native_group: Option<&str>,
    ) -> (String, Option<u32>) {
        let word = |name: &str| words.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
        let pod = Pod {
            namespace: "a",
            name: "p",
            word: &word,
            native_group,
            torch_nodes: Some("2:4"),
        };
        let gang = Groups::new(jobs.iter().copied(), ParallelJobs::Alone).of(&pod);
        (format!("{} {}", gang.key.by, gang.key.name), gang.size)
    }

    #[test]
    fn each_shape_of_gang_is_told_by_its_owner_and_other_pods_are_alone() {
        for (words, native, expected) in [
            (vec![], None, ("pod p", Some(1))),
            (
                vec![("statefulset.kubernetes.io/pod-name", "p")],
                None,
                ("pod p", Some(1)),
            ),
            (
                vec![(names::GANG, "g"), (names::GANG_SIZE, "3")],
                Some("n"),
                ("pleach/gang g", Some(3)),
            ),
            (
                vec![(names::KUEUE_GROUP, "k"), (names::KUEUE_TOTAL, "5")],
                None,
                ("kueue.x-k8s.io/pod-group-name k", Some(5)),
            ),
            (vec![], Some("pg"), ("spec.schedulingGroup pg", None)),
            (
                vec![(names::POD_GROUP, "s")],
                None,
                ("scheduling.x-k8s.io/pod-group s", None),
            ),
            (
                vec![(names::VOLCANO_GROUP, "v")],
                None,
                ("scheduling.k8s.io/group-name v", None),
            ),
            (vec![(names::GROVE_GANG, "w")], None, ("grove.io/podgang w", None)),
            (
                vec![
                    (names::LEADER_WORKER_SET, "vllm"),
                    (names::LEADER_WORKER_GROUP, "1"),
                    (names::LEADER_WORKER_SIZE, "2"),
                ],
                None,
                ("leaderworkerset.sigs.k8s.io/name vllm-1", Some(2)),
            ),
            (
                vec![(names::TRAINING_JOB, "t")],
                None,
                ("training.kubeflow.org/job-name t", Some(2)),
            ),
            (vec![(names::RAY_CLUSTER, "r")], None, ("ray.io/cluster r", None)),
            (
                vec![(names::JOB_NAME, "fit")],
                None,
                ("batch.kubernetes.io/job-name fit", Some(4)),
            ),
            (vec![(names::JOB_NAME, "other")], None, ("pod p", Some(1))),
        ] {
            let (key, size) = of(&[JOB], &words, native);
            assert_eq!((key.as_str(), size), expected, "{words:?}");
        }
    }

    /// Fields as KubeRay's `RayJob` and the labels of its pods have them.
    #[test]
    fn pods_of_the_cluster_that_a_ray_job_made_are_one_gang_under_its_name() {
        let of = |words: &[(&str, &'static str)]| {
            let word = |name: &str| words.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
            let pod = Pod {
                namespace: "a",
                name: "p",
                word: &word,
                native_group: None,
                torch_nodes: None,
            };
            let groups = Groups::new([], ParallelJobs::Alone).with_ray_jobs([("a", "fit-x2k9q", "fit")]);
            let key = groups.of(&pod).key;
            format!("{} {}", key.by, key.name)
        };
        assert_eq!(of(&[(names::RAY_CLUSTER, "fit-x2k9q")]), "RayJob fit");
        assert_eq!(
            of(&[(names::RAY_CLUSTER, "fit")]),
            "ray.io/cluster fit",
            "a cluster of that name"
        );
        let (kind, name) = names::RAY_MAKER;
        let of_maker = |what| of(&[(names::RAY_CLUSTER, "c"), (kind, what), (name, "fit")]);
        assert_eq!(of_maker("RayJob"), "RayJob fit");
        assert_eq!(of_maker("RayService"), "ray.io/cluster c");
    }

    #[test]
    fn tasks_of_a_job_are_alone_and_an_annotation_says_what_a_plain_one_is() {
        let plain = Job {
            is_indexed: false,
            ..JOB
        };
        let tasks = Job {
            completions: Some(6),
            ..JOB
        };
        let words = vec![(names::JOB_NAME, "fit")];
        assert_eq!(of(&[tasks], &words, None).1, Some(1));
        assert_eq!(of(&[plain], &words, None).1, Some(1));
        let said = vec![(names::JOB_NAME, "fit"), (names::PARALLEL, "gang")];
        assert_eq!(of(&[plain], &said, None).1, Some(4));
        assert_eq!(of(&[Job { succeeded: 3, ..JOB }], &words, None).1, Some(1));
        assert_eq!(
            of(
                &[Job {
                    parallelism: 1,
                    completions: Some(1),
                    ..JOB
                }],
                &words,
                None
            )
            .0,
            "pod p"
        );
    }

    #[test]
    fn completed_initializers_and_launchers_without_devices_are_no_ranks_of_a_job_set() {
        let part = |name, part, replicas| Job {
            name,
            parallelism: 2,
            completions: Some(2),
            set: Some(SetPart {
                set: "llm",
                part,
                replicas,
            }),
            ..JOB
        };
        let words = [(names::JOBSET_NAME, "llm")];
        let initializer = Job {
            succeeded: 2,
            ..part("llm-init-0", "init", 1)
        };
        let launcher = Job {
            asks_for_devices: false,
            ..part("llm-launch-0", "launch", 1)
        };
        let trainers = part("llm-train-0", "train", 3);
        assert_eq!(of(&[initializer, launcher, trainers], &words, None).1, Some(6));
        assert_eq!(of(&[part("llm-init-0", "init", 1)], &words, None).1, Some(2));
        assert_eq!(of(&[], &words, None).1, None, "its Jobs are not known");
    }
}
