//! The API server, through `kube`: every request has a limit of time, every list has pages and an end, every answer a size.

mod ends;
mod events;
mod pages;
mod rights;
mod stops;
mod volumes;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use http_body_util::Limited;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::client::ClientBuilder;
use kube::{Api, Client, Config, Resource};
use pleach_daemon::pulse::Pulse;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::util::MapResponseLayer;

use self::pages::{Pages, is_too_long};
use crate::config::Settings;
use crate::error::Error;
use crate::kueue::{Workload, WorkloadSpec};
use crate::names;
use crate::observe::Lists;
use crate::pod::{self, PodSeen};
use crate::workload_queue::{KueueLists, Place};

/// Who changes pods, for the API server's own notes about fields.
const MANAGER: &str = "pleach-kubernetes";
/// Selects pods that have ended.
const ENDED: &str = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown";
/// Jobs that are asked for one by one in a round; more are listed all at once. *Ours*.
const MISSING_MAX: usize = 50;

/// The API server.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    settings: Arc<Settings>,
    pages: Pages,
    pulse: Option<Pulse>,
}

impl Debug for Cluster {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Cluster")
            .field("limit", &self.settings.request_limit_s)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// By the ServiceAccount of the pod that this runs in, or by `KUBECONFIG`.
    ///
    /// # Errors
    /// Neither is there, or it cannot be used.
    pub async fn infer(settings: &Settings) -> Result<Cluster, Error> {
        let config = Config::infer().await.map_err(|error| Error::Access {
            reason: error.to_string(),
        })?;
        Cluster::new(config, settings)
    }

    /// By a configuration of the client.
    ///
    /// # Errors
    /// A configuration that cannot be used.
    pub fn new(mut config: Config, settings: &Settings) -> Result<Cluster, Error> {
        let limit = settings.request_limit();
        config.connect_timeout = Some(limit);
        config.read_timeout = Some(limit);
        config.write_timeout = Some(limit);
        config.default_retry = false;
        let most = usize::try_from(settings.answer_bytes_max).unwrap_or(usize::MAX);
        let builder = ClientBuilder::try_from(config).map_err(|error| Error::Access {
            reason: error.to_string(),
        })?;
        let bound = MapResponseLayer::new(move |answer: axum::http::Response<_>| {
            answer.map(|body| Limited::new(body, most))
        });
        Ok(Cluster::by(builder.with_layer(&bound).build(), settings))
    }

    /// By a client, whose answers have whatever size they have.
    #[must_use]
    pub fn by(client: Client, settings: &Settings) -> Cluster {
        Cluster {
            client,
            settings: Arc::new(settings.clone()),
            pages: Pages::default(),
            pulse: None,
        }
    }

    /// The same, for which each answer is a life sign of the loop that asks.
    #[must_use]
    pub fn beating(self, pulse: &Pulse) -> Cluster {
        Cluster {
            pulse: Some(pulse.clone()),
            ..self
        }
    }

    /// All nodes, all pods that have not ended, and the Jobs that those which may be driven are of.
    ///
    /// # Errors
    /// A list that cannot be had, or is too long.
    pub async fn lists(&self) -> Result<Lists, Error> {
        let (nodes, pods) = (self.nodes().await?, self.pods().await?);
        let jobs = self.jobs_of(&pods).await?;
        let kueue = match self.settings.drive.is_order() {
            true => Some(self.kueue().await?),
            false => None,
        };
        let mut lists = Lists {
            nodes,
            pods,
            jobs,
            kueue,
            ..Lists::default()
        };
        if !self.settings.drive.is_order() {
            self.read_volumes(&mut lists).await?;
        }
        Ok(lists)
    }

    /// What Kueue has.
    ///
    /// # Errors
    /// As [`Cluster::lists`]; 404 where Kueue is not installed, or one before 0.15.
    pub async fn kueue(&self) -> Result<KueueLists, Error> {
        let all = ListParams::default;
        let trim = |workload: &mut Workload| {
            bare(&mut workload.metadata);
            if !workload.is_pending() {
                workload.spec = WorkloadSpec::default();
            }
        };
        Ok(KueueLists {
            workloads: self.list("workloads", all(), trim).await?,
            cluster_queues: self.list("clusterqueues", all(), |_| ()).await?,
            local_queues: self.list("localqueues", all(), |_| ()).await?,
            classes: self.list("workloadpriorityclasses", all(), |_| ()).await?,
            pod_classes: self.list("priorityclasses", all(), |_| ()).await?,
        })
    }

    /// Gives a workload that waits a priority, if it is the one that was read and waits still; whether it is.
    ///
    /// # Errors
    /// A refusal, no answer.
    pub async fn rank(&self, place: &Place, priority: i32) -> Result<bool, Error> {
        let what = format!("priority of workload {}/{}", place.namespace, place.name);
        let api: Api<Workload> = Api::namespaced(self.client.clone(), &place.namespace);
        let params = PatchParams {
            field_manager: Some(MANAGER.into()),
            ..PatchParams::default()
        };
        let mut version = place.resource_version.clone();
        // Kueue writes into workloads that wait: why they do. So one that has changed is read again, once.
        for is_last in [false, true] {
            let metadata = json!({ "uid": place.uid, "resourceVersion": version });
            let patch = Patch::Merge(json!({ "metadata": metadata, "spec": { "priority": priority } }));
            let sent = self.ask(&what, api.patch(&place.name, &params, &patch)).await;
            match sent {
                Ok(_) => return Ok(true),
                Err(error) if error.code() == Some(404) => return Ok(false),
                Err(error) if error.code() != Some(409) || is_last => return Err(error),
                Err(_) => {}
            }
            let now = self.ask(&what, api.get_opt(&place.name)).await?;
            let is_it = |now: &Workload| now.metadata.uid.as_deref() == Some(&place.uid) && now.is_pending();
            match now.filter(is_it) {
                Some(now) => version = now.metadata.resource_version.unwrap_or_default(),
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// All pods that have ended and are still listed, and all Jobs where one of those pods is of one.
    ///
    /// # Errors
    /// As [`Cluster::lists`].
    pub async fn ended(&self) -> Result<(Vec<Pod>, Vec<Job>), Error> {
        let pods = self.pods_with(ENDED).await?;
        let jobs = self.all_jobs_of(&pods).await?;
        Ok((pods, jobs))
    }

    /// The Jobs that live pods are of, and whose pods count with theirs. Those that ended well stay in the list for as long as nobody
    /// deletes them, so Jobs without a success are listed, Jobs of JobSets, and of the others those that are missing are asked for
    /// one by one; all, where they are many.
    ///
    /// # Source
    /// `status.successful` is a field that Jobs can be selected by: `JobToSelectableFields` of Kubernetes' `pkg/registry/batch/job`.
    async fn jobs_of(&self, pods: &[Pod]) -> Result<Vec<Job>, Error> {
        let asked: BTreeSet<(&str, &str)> = pods.iter().filter_map(|pod| self.job_of(pod)).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let trim = |job: &mut Job| bare(&mut job.metadata);
        let begun = ListParams::default().fields("status.successful=0");
        let mut jobs = self.list("jobs", begun, trim).await?;
        let key = |job: &Job| {
            let of = |text: &Option<String>| text.clone().unwrap_or_default();
            (of(&job.metadata.namespace), of(&job.metadata.name))
        };
        let mut known: BTreeSet<(String, String)> = jobs.iter().map(key).collect();
        if pods
            .iter()
            .any(|pod| pod::word(pod, names::JOBSET_NAME).is_some())
        {
            let of_sets = ListParams::default().labels(names::JOBSET_NAME);
            let of_sets = self.list("jobs", of_sets, trim).await?;
            jobs.extend(of_sets.into_iter().filter(|job| known.insert(key(job))));
        }
        let is_missing =
            |(namespace, name): &(&str, &str)| !known.contains(&((*namespace).into(), (*name).into()));
        let missing: Vec<(&str, &str)> = asked.into_iter().filter(is_missing).collect();
        if missing.len() > MISSING_MAX {
            return self.list("jobs", ListParams::default(), trim).await;
        }
        for (namespace, name) in missing {
            let api: Api<Job> = Api::namespaced(self.client.clone(), namespace);
            let what = format!("job {namespace}/{name}");
            if let Some(mut job) = self.ask(&what, api.get_opt(name)).await? {
                trim(&mut job);
                jobs.push(job);
            }
        }
        Ok(jobs)
    }

    /// All Jobs, where a pod is of one.
    async fn all_jobs_of(&self, pods: &[Pod]) -> Result<Vec<Job>, Error> {
        let trim = |job: &mut Job| bare(&mut job.metadata);
        match pods.iter().any(|pod| self.job_of(pod).is_some()) {
            true => self.list("jobs", ListParams::default(), trim).await,
            false => Ok(Vec::new()),
        }
    }

    /// Namespace and name of the Job of a pod that a round looks at; none of others.
    fn job_of<'a>(&self, pod: &'a Pod) -> Option<(&'a str, &'a str)> {
        let name = pod::word(pod, names::JOB_NAME).or_else(|| pod::word(pod, names::JOB_NAME_OLD))?;
        pod::read(pod, &self.settings)?;
        Some((pod.metadata.namespace.as_deref()?, name))
    }

    /// All pods that have not ended.
    ///
    /// # Errors
    /// As [`Cluster::lists`].
    pub async fn pods(&self) -> Result<Vec<Pod>, Error> {
        self.pods_with("status.phase!=Succeeded,status.phase!=Failed")
            .await
    }

    async fn pods_with(&self, fields: &str) -> Result<Vec<Pod>, Error> {
        let trim = |pod: &mut Pod| pod::trim(pod, self.settings.tenant_label.as_deref());
        self.list("pods", ListParams::default().fields(fields), trim)
            .await
    }

    /// All nodes.
    ///
    /// # Errors
    /// As [`Cluster::lists`].
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        let trim = |node: &mut Node| bare(&mut node.metadata);
        self.list("nodes", ListParams::default(), trim).await
    }

    /// All pages of a list; of each object what `trim` leaves is kept. A page that is too long is asked for again, half as long; so
    /// is one that does not come in time, once.
    async fn list<K>(&self, what: &str, params: ListParams, trim: impl Fn(&mut K)) -> Result<Vec<K>, Error>
    where
        K: Clone + DeserializeOwned + Debug + Resource<DynamicType = ()>,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let what = format!("list of {what}");
        let most = self.settings.page;
        let mut size = self.pages.size(&what, most);
        let mut params = params.limit(size);
        let mut items: Vec<K> = Vec::new();
        let mut is_late = false;
        // With a selector pages may be empty and yet not the last ones.
        for _ in 0..=self.settings.objects_max {
            let mut page = match self.ask(&what, api.list(&params)).await {
                Err(error) if is_too_long(&error) || !is_late && matches!(error, Error::Deadline { .. }) => {
                    is_late |= matches!(error, Error::Deadline { .. });
                    size = self.pages.halve(&what, size).ok_or(error)?;
                    params = params.limit(size);
                    continue;
                }
                page => page?,
            };
            page.items.iter_mut().for_each(&trim);
            items.extend(page.items);
            if items.len() > self.settings.objects_max as usize {
                break;
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => {
                    self.pages.complete(&what, most);
                    return Ok(items);
                }
            }
        }
        Err(Error::TooMany {
            what,
            most: self.settings.objects_max,
        })
    }

    /// A pod as it is now; none where it is gone.
    ///
    /// # Errors
    /// No answer, or a strange one.
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Pod>, Error> {
        let what = format!("pod {namespace}/{name}");
        self.ask(&what, self.pods_of(namespace).get_opt(name)).await
    }

    /// Writes a mark on a pod that stays held, with the same preconditions as [`Cluster::lift`]; its new version.
    ///
    /// # Errors
    /// As [`Cluster::lift`].
    pub async fn mark(&self, pod: &PodSeen, mark: &str) -> Result<String, Error> {
        let what = format!("mark of {}/{}", pod.namespace, pod.name);
        let patch = Patch::Merge(json!({ "metadata": metadata(pod, &json!({ names::DECIDED: mark })) }));
        let params = PatchParams {
            field_manager: Some(MANAGER.into()),
            ..PatchParams::default()
        };
        let api = self.pods_of(&pod.namespace);
        let new: Pod = self.ask(&what, api.patch(&pod.name, &params, &patch)).await?;
        Ok(new.metadata.resource_version.unwrap_or_default())
    }

    /// Lifts our gate in one request, which holds only for the very pod and version that was read: with a node and a mark, or
    /// without a node and with a reason.
    ///
    /// # Errors
    /// A refusal; 409 where the pod has changed, 404 where it is gone.
    pub async fn lift(&self, pod: &PodSeen, how: &Lift<'_>) -> Result<(), Error> {
        let what = format!("release of {}/{}", pod.namespace, pod.name);
        let patch = Patch::Merge(body(pod, how));
        let params = PatchParams {
            field_manager: Some(MANAGER.into()),
            ..PatchParams::default()
        };
        let api = self.pods_of(&pod.namespace);
        self.ask(&what, api.patch(&pod.name, &params, &patch))
            .await
            .map(drop)
    }

    /// A Lease as it is now; none where there is none.
    ///
    /// # Errors
    /// No answer, or a strange one.
    pub async fn lease(&self, namespace: &str, name: &str) -> Result<Option<Lease>, Error> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        self.ask(&format!("lease {namespace}/{name}"), api.get_opt(name))
            .await
    }

    /// Writes a Lease: the version that it has, or a new one where it has none.
    ///
    /// # Errors
    /// A refusal; 409 where somebody else was sooner.
    pub async fn take_lease(&self, lease: &Lease) -> Result<(), Error> {
        let of = |text: &Option<String>| text.clone().unwrap_or_default();
        let (namespace, name) = (of(&lease.metadata.namespace), of(&lease.metadata.name));
        let api: Api<Lease> = Api::namespaced(self.client.clone(), &namespace);
        let (what, params) = (format!("lease {namespace}/{name}"), PostParams::default());
        match lease.metadata.resource_version {
            None => self.ask(&what, api.create(&params, lease)).await.map(drop),
            Some(_) => self
                .ask(&what, api.replace(&name, &params, lease))
                .await
                .map(drop),
        }
    }

    fn pods_of(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn ask<T>(&self, what: &str, request: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
        let limit = self.settings.request_limit();
        match tokio::time::timeout(limit, request).await {
            Ok(Ok(answer)) => {
                self.pulse.iter().for_each(Pulse::beat);
                Ok(answer)
            }
            Ok(Err(source)) => Err(Error::Api {
                what: what.to_owned(),
                source: Box::new(source),
            }),
            Err(_) => Err(Error::Deadline {
                what: what.to_owned(),
                limit,
            }),
        }
    }
}

/// Takes off what nobody here reads of nodes and Jobs.
fn bare(meta: &mut ObjectMeta) {
    (meta.annotations, meta.managed_fields) = (None, None);
}

/// How a gate is lifted.
#[derive(Clone, Copy, Debug)]
pub enum Lift<'a> {
    /// To a node, by its label [`names::HOSTNAME`], with the text of a mark.
    To {
        /// The label's value.
        hostname: &'a str,
        /// The annotation [`names::DECIDED`].
        mark: &'a str,
    },
    /// To kube-scheduler, for a reason.
    Free {
        /// The annotation [`names::LEFT`].
        reason: &'a str,
    },
}

/// UID and version are preconditions.
fn metadata(pod: &PodSeen, annotations: &Value) -> Value {
    json!({ "uid": pod.uid, "resourceVersion": pod.resource_version, "annotations": annotations })
}

/// The merge patch. UID and version in it are preconditions: the API server refuses another pod or a newer one with 409.
fn body(pod: &PodSeen, how: &Lift<'_>) -> Value {
    let gates: Vec<Value> = pod
        .gates
        .iter()
        .filter(|gate| *gate != names::GATE)
        .map(|gate| json!({ "name": gate }))
        .collect();
    let mut spec = json!({ "schedulingGates": gates });
    let annotations = match how {
        Lift::To { hostname, mark } => {
            spec["nodeSelector"] = json!({ names::HOSTNAME: hostname });
            json!({ names::DECIDED: mark })
        }
        // A gang that was marked and not let go must not look as if it had a place.
        Lift::Free { reason } => json!({ names::LEFT: reason, names::DECIDED: null }),
    };
    json!({
        "metadata": metadata(pod, &annotations),
        "spec": spec,
    })
}
