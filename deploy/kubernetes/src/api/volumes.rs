//! Claims of pods that wait, and the volumes that these are bound to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::ListParams;

use super::picked::Names;
use super::trim::{bare, is_noted};
use super::{Cluster, key, shared};
use crate::error::Error;
use crate::observe::{Lists, without_pods};
use crate::suspended::maker::Maker;
use crate::suspended::{self, Classes, Owners};
use crate::{pod, volume};

/// Claims, and volumes, that are asked for one by one in a round; more are listed all at once. *Ours*.
const SINGLE_MAX: usize = 20;

impl Cluster {
    /// Reads them for the pods of the lists. Without the right to it a round goes on, and says so.
    pub(super) async fn read_volumes(&self, lists: &mut Lists) -> Result<(), Error> {
        let names = self.picked.claims(lists, || self.claims_of(lists));
        let claims = match self.claims(&names, &mut lists.unread).await {
            Err(error) if error.code() == Some(403) => {
                let why = "volumes are not read, and pods go where these may not be";
                lists.unread.push(format!("{why}: {error}"));
                return Ok(());
            }
            claims => claims?,
        };
        let bound = claims
            .iter()
            .filter_map(|claim| claim.spec.as_ref()?.volume_name.clone());
        lists.volumes = self.volumes(&bound.collect(), &mut lists.unread).await?;
        lists.claims = claims;
        Ok(())
    }

    /// The claims of pods that wait, and of those that Jobs would make.
    fn claims_of(&self, lists: &Lists) -> Names {
        let may_claim = |job: &Arc<Job>| is_noted(&job.metadata) && Maker::of_job(job).may_claim();
        let unmade: Vec<Pod> = match lists.others.is_empty() && !lists.jobs.iter().any(may_claim) {
            true => Vec::new(),
            false => {
                let owners = Owners::new((&lists.jobs, &lists.others), &BTreeMap::new(), &self.settings);
                let classes = Classes::default();
                let unmade = without_pods(&lists.pods, &owners);
                let may_claim = unmade.filter(|(_, maker)| maker.may_claim());
                may_claim
                    .flat_map(|(owner, maker)| suspended::pods(maker, owner, &classes, &self.settings))
                    .collect()
            }
        };
        let waiting = lists.pods.iter().map(|pod| &**pod);
        let waiting = waiting.filter(|pod| volume::has_claims(pod) && self.waits(pod));
        let of = |pod: &Pod| {
            let namespace = pod.metadata.namespace.clone().unwrap_or_default();
            volume::claims(pod)
                .into_iter()
                .map(move |claim| (namespace.clone(), claim))
        };
        waiting.chain(&unmade).flat_map(of).collect()
    }

    /// Whether it is a pod whose place is still to be decided.
    fn waits(&self, pod: &Pod) -> bool {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.is_none() && self.settings.drives(namespace) && pod::read(pod, &self.settings).is_some()
    }

    /// Those of these names. What is kept may not show one yet: it keeps its pod nowhere, as one that is not bound.
    async fn claims(
        &self,
        names: &Names,
        unread: &mut Vec<String>,
    ) -> Result<Vec<Arc<PersistentVolumeClaim>>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let trim = |claim: &mut PersistentVolumeClaim| bare(&mut claim.metadata);
        let all = match self.kept_claims(unread).await? {
            None if names.len() > SINGLE_MAX => {
                let all = self.list("persistentvolumeclaims", ListParams::default(), trim);
                Some(shared(all.await?))
            }
            kept => kept,
        };
        if let Some(mut all) = all {
            let owned = |(namespace, name): (&str, &str)| (namespace.to_owned(), name.to_owned());
            all.retain(|claim| names.contains(&owned(key(&**claim))));
            return Ok(all);
        }
        let mut claims = Vec::new();
        for (namespace, name) in names {
            let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
            let what = format!("claim {namespace}/{name}");
            claims.extend(self.ask(&what, api.get_opt(name)).await?);
        }
        claims.iter_mut().for_each(trim);
        Ok(shared(claims))
    }

    async fn volumes(
        &self,
        names: &BTreeSet<String>,
        unread: &mut Vec<String>,
    ) -> Result<Vec<Arc<PersistentVolume>>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let trim = |volume: &mut PersistentVolume| bare(&mut volume.metadata);
        let all = match self.kept_volumes(unread).await? {
            None if names.len() > SINGLE_MAX => {
                let all = self.list("persistentvolumes", ListParams::default(), trim);
                Some(shared(all.await?))
            }
            kept => kept,
        };
        if let Some(mut all) = all {
            all.retain(|volume| names.contains(key(&**volume).1));
            return Ok(all);
        }
        let mut volumes = Vec::new();
        for name in names {
            let api: Api<PersistentVolume> = Api::all(self.client.clone());
            let what = format!("volume {name}");
            volumes.extend(self.ask(&what, api.get_opt(name)).await?);
        }
        volumes.iter_mut().for_each(trim);
        Ok(shared(volumes))
    }
}
