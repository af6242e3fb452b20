//! Where the volumes of pods are: a claim that is bound to a volume of one zone or one node keeps its pod there.
//!
//! A claim that is not bound yet keeps its pod nowhere. kube-scheduler binds it, and a node that refuses is remembered.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeSelector, PersistentVolume, PersistentVolumeClaim, Pod};

/// Whether a pod has volumes that are claimed.
#[must_use]
pub fn has_claims(pod: &Pod) -> bool {
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.any(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some())
}

/// Names of the claims of a pod, in its namespace.
#[must_use]
pub fn claims(pod: &Pod) -> Vec<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let of = |volume: &k8s_openapi::api::core::v1::Volume| match (
        &volume.persistent_volume_claim,
        &volume.ephemeral,
    ) {
        (Some(claim), _) => Some(claim.claim_name.clone()),
        // The claim that is made for a generic ephemeral volume.
        (None, Some(_)) => Some(format!("{name}-{}", volume.name)),
        (None, None) => None,
    };
    volumes.filter_map(of).collect()
}

/// The nodes from which bound claims can be reached, by namespace and name.
#[derive(Debug, Default)]
pub struct Volumes<'a>(BTreeMap<(&'a str, &'a str), &'a NodeSelector>);

impl<'a> Volumes<'a> {
    /// From lists of both.
    #[must_use]
    pub fn new(
        claims: &'a [Arc<PersistentVolumeClaim>],
        volumes: &'a [Arc<PersistentVolume>],
    ) -> Volumes<'a> {
        let near = |volume: &'a Arc<PersistentVolume>| {
            let affinity = volume.spec.as_ref()?.node_affinity.as_ref()?;
            Some((volume.metadata.name.as_deref()?, affinity.required.as_ref()?))
        };
        let near: BTreeMap<&str, &NodeSelector> = volumes.iter().filter_map(near).collect();
        let of = |claim: &'a Arc<PersistentVolumeClaim>| {
            let meta = &claim.metadata;
            let key = (meta.namespace.as_deref()?, meta.name.as_deref()?);
            let volume = claim.spec.as_ref()?.volume_name.as_deref()?;
            Some((key, *near.get(volume)?))
        };
        Volumes(claims.iter().filter_map(of).collect())
    }

    /// What the volumes of claims ask of a node; nothing of those that can be reached from everywhere.
    #[must_use]
    pub fn of(&self, namespace: &str, claims: &[String]) -> Vec<&'a NodeSelector> {
        let of = |claim: &String| self.0.get(&(namespace, claim.as_str())).copied();
        claims.iter().filter_map(of).collect()
    }
}
