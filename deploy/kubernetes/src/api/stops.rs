//! Evictions: of one pod, and the question whether all pods of a job could be evicted.

use k8s_openapi::api::policy::v1::{Eviction, PodDisruptionBudget};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    DeleteOptions, LabelSelector, LabelSelectorRequirement, ObjectMeta, Preconditions,
};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::Value;

use super::Cluster;
use crate::error::Error;
use crate::pod::PodSeen;

/// Most bytes of an eviction's name in a message.
const NAME_MAX: usize = 300;

/// Most budgets of one namespace that are looked at. *Ours*.
const BUDGETS_MAX: u32 = 1000;

impl Cluster {
    /// Evicts the very pod that was read: disruption budgets hold, and its Job can tell it from a failure.
    ///
    /// # Errors
    /// A refusal; 429 where a budget forbids it, 404 where it is gone, 409 where another pod has its name.
    pub async fn evict(&self, pod: &PodSeen) -> Result<(), Error> {
        self.send_eviction(pod, false).await
    }

    /// Asks whether the pod could be evicted, and does nothing.
    ///
    /// # Errors
    /// As [`Cluster::evict`].
    pub async fn could_evict(&self, pod: &PodSeen) -> Result<(), Error> {
        self.send_eviction(pod, true).await
    }

    async fn send_eviction(&self, pod: &PodSeen, is_dry: bool) -> Result<(), Error> {
        let what = format!("eviction of {}/{}", pod.namespace, pod.name);
        let what: String = what.chars().take(NAME_MAX).collect();
        // `Api::evict` writes `delete_options`, which the API server does not read: the precondition would be lost.
        let eviction = Eviction {
            delete_options: Some(DeleteOptions {
                preconditions: Some(Preconditions {
                    uid: Some(pod.uid.clone()),
                    resource_version: None,
                }),
                dry_run: is_dry.then(|| vec!["All".into()]),
                ..DeleteOptions::default()
            }),
            metadata: ObjectMeta {
                name: Some(pod.name.clone()),
                namespace: Some(pod.namespace.clone()),
                ..ObjectMeta::default()
            },
        };
        let api = self.pods_of(&pod.namespace);
        let params = PostParams {
            dry_run: is_dry,
            ..PostParams::default()
        };
        let sent = api.create_subresource::<Eviction, Value>("eviction", &pod.name, &params, &eviction);
        self.ask(&what, sent).await?;
        // The answer does not show the pod, and the next round has to know that it ends. Where this fails the watch tells it.
        if !is_dry
            && self.keeps_pods()
            && let Ok(Some(now)) = self.pod(&pod.namespace, &pod.name).await
        {
            self.answered(now);
        }
        Ok(())
    }

    /// The budget of a namespace that does not allow all these pods of it to be evicted at once, and what it allows; none where
    /// there is no such one. A dry run asks about one pod at a time, and each of them may pass.
    ///
    /// # Errors
    /// A list that cannot be had; 403 without the right to it.
    pub async fn budget_against(&self, pods: &[PodSeen]) -> Result<Option<String>, Error> {
        let Some(first) = pods.first() else {
            return Ok(None);
        };
        let api: Api<PodDisruptionBudget> = Api::namespaced(self.client.clone(), &first.namespace);
        let what = format!("disruption budgets of {}", first.namespace);
        let params = ListParams::default().limit(BUDGETS_MAX);
        let budgets = self.ask(&what, api.list(&params)).await?;
        let against = |budget: PodDisruptionBudget| {
            let selector = budget.spec?.selector?;
            let num = pods.iter().filter(|pod| selects(&selector, pod)).count();
            let allowed = budget
                .status
                .and_then(|status| status.disruptions_allowed)
                .unwrap_or(0);
            let allowed = usize::try_from(allowed).unwrap_or(0);
            let name = budget.metadata.name.unwrap_or_default();
            (num > allowed).then(|| {
                format!("the disruption budget {name} allows {allowed} of the {num} evictions that it takes to stop all of it")
            })
        };
        Ok(budgets.items.into_iter().find_map(against))
    }
}

/// Whether a selector of labels takes a pod.
fn selects(selector: &LabelSelector, pod: &PodSeen) -> bool {
    let is_like = |one: &LabelSelectorRequirement| {
        let value = pod.labels.get(&one.key);
        let is_in = || value.is_some_and(|value| one.values.iter().flatten().any(|other| other == value));
        match one.operator.as_str() {
            "In" => is_in(),
            "NotIn" => !is_in(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    let mut labels = selector.match_labels.iter().flatten();
    labels.all(|(key, value)| pod.labels.get(key) == Some(value))
        && selector.match_expressions.iter().flatten().all(is_like)
}
