//! The API server, through `kube`: every request has a limit of time, every list has pages and an end, every answer a size.

mod absent;
mod bounds;
mod events;
mod follow;
mod kept;
mod lists;
mod pages;
mod picked;
mod rights;
mod stops;
mod suspend;
mod trim;
mod volumes;
mod watch;

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use http_body_util::Limited;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::client::ClientBuilder;
use kube::{Api, Client, Config, Resource};
use pleach_daemon::pulse::Pulse;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::util::MapResponseLayer;

use self::absent::Absent;
use self::kept::Watched;
use self::pages::{Pages, is_too_long};
use self::picked::Picked;
use self::trim::bare;
use crate::config::Settings;
use crate::error::Error;
use crate::kueue::{Workload, WorkloadSpec};
use crate::names;
use crate::pod::{self, PodSeen};
use crate::workload_queue::{KueueLists, Place};

/// The name under which the API server notes the fields that this program changes.
const MANAGER: &str = "pleach-kubernetes";
/// Selects pods that have not ended.
const LIVE: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// Selects pods that have ended.
const ENDED: &str = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown";

/// The API server.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    settings: Arc<Settings>,
    pages: Pages,
    pulse: Option<Pulse>,
    /// What is kept by watches; empty: all is listed.
    watched: Arc<OnceLock<Watched>>,
    absent: Arc<Absent>,
    picked: Arc<Picked>,
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
            watched: Arc::default(),
            absent: Arc::default(),
            picked: Arc::default(),
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

    /// All pods that have not ended.
    ///
    /// # Errors
    /// As [`Cluster::lists`].
    pub async fn pods(&self) -> Result<Vec<Pod>, Error> {
        self.pods_with(LIVE).await
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
        self.list("nodes", ListParams::default(), trim::node).await
    }

    /// All pages of a list; of each object what `trim` leaves is kept.
    async fn list<K>(&self, what: &str, params: ListParams, trim: impl Fn(&mut K)) -> Result<Vec<K>, Error>
    where
        K: Clone + DeserializeOwned + Debug + Resource<DynamicType = ()>,
    {
        let (items, _) = self.list_at(what, params, trim).await?;
        Ok(items)
    }

    /// The same, with the version of the list. A page that is too long is asked for again, half as long; so is one that does not
    /// come in time, once.
    async fn list_at<K>(
        &self,
        what: &str,
        params: ListParams,
        trim: impl Fn(&mut K),
    ) -> Result<(Vec<K>, String), Error>
    where
        K: Clone + DeserializeOwned + Debug + Resource<DynamicType = ()>,
    {
        let api: Api<K> = Api::all(self.client.clone());
        self.list_of(&api, what, params, trim).await
    }

    async fn list_of<K: Clone + DeserializeOwned + Debug>(
        &self,
        api: &Api<K>,
        what: &str,
        params: ListParams,
        trim: impl Fn(&mut K),
    ) -> Result<(Vec<K>, String), Error> {
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
                    return Ok((items, page.metadata.resource_version.unwrap_or_default()));
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

    /// Writes a mark on a pod that stays held, or takes it off, with the same preconditions as [`Cluster::lift`]; its new version.
    ///
    /// # Errors
    /// As [`Cluster::lift`].
    pub async fn mark(&self, pod: &PodSeen, mark: Option<&str>) -> Result<String, Error> {
        let what = format!("mark of {}/{}", pod.namespace, pod.name);
        let note = json!({ names::DECIDED: mark });
        let patch = Patch::Merge(json!({ "metadata": metadata(pod, &self.version_of(pod), &note) }));
        let params = PatchParams {
            field_manager: Some(MANAGER.into()),
            ..PatchParams::default()
        };
        let api = self.pods_of(&pod.namespace);
        let new: Pod = self.ask(&what, api.patch(&pod.name, &params, &patch)).await?;
        let version = new.metadata.resource_version.clone().unwrap_or_default();
        self.answered(new);
        Ok(version)
    }

    /// Lifts our gate in one request, which holds only for the very pod and version that was read: with a node and a mark, or
    /// without a node and with a reason.
    ///
    /// # Errors
    /// A refusal; 409 where the pod has changed, 404 where it is gone.
    pub async fn lift(&self, pod: &PodSeen, how: &Lift<'_>) -> Result<(), Error> {
        let what = format!("release of {}/{}", pod.namespace, pod.name);
        let patch = Patch::Merge(body(pod, &self.version_of(pod), how));
        let params = PatchParams {
            field_manager: Some(MANAGER.into()),
            ..PatchParams::default()
        };
        let api = self.pods_of(&pod.namespace);
        let new: Pod = self.ask(&what, api.patch(&pod.name, &params, &patch)).await?;
        self.answered(new);
        Ok(())
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
    /// A refusal; 409 where another controller was sooner.
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

/// For readers of one round and more.
fn shared<K>(objects: Vec<K>) -> Vec<Arc<K>> {
    objects.into_iter().map(Arc::new).collect()
}

/// Namespace and name.
fn key<K: Resource>(object: &K) -> (&str, &str) {
    let meta = object.meta();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    (namespace, meta.name.as_deref().unwrap_or_default())
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
fn metadata(pod: &PodSeen, version: &str, annotations: &Value) -> Value {
    json!({ "uid": pod.uid, "resourceVersion": version, "annotations": annotations })
}

/// The merge patch. UID and version in it are preconditions: the API server refuses another pod or a newer one with 409.
fn body(pod: &PodSeen, version: &str, how: &Lift<'_>) -> Value {
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
        "metadata": metadata(pod, version, &annotations),
        "spec": spec,
    })
}
