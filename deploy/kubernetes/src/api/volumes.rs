//! Claims of pods that wait, and the volumes that these are bound to.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::ListParams;

use super::{Cluster, bare};
use crate::error::Error;
use crate::observe::Lists;
use crate::{pod, volume};

/// Claims, and volumes, that are asked for one by one in a round; more are listed all at once. *Ours*.
const SINGLE_MAX: usize = 20;

impl Cluster {
    /// Reads them for the pods of the lists. Without the right to it a round goes on, and says so.
    pub(super) async fn read_volumes(&self, lists: &mut Lists) -> Result<(), Error> {
        let waiting = lists.pods.iter().filter(|pod| self.waits(pod));
        let of = |pod: &Pod| {
            let namespace = pod.metadata.namespace.clone().unwrap_or_default();
            volume::claims(pod)
                .into_iter()
                .map(move |claim| (namespace.clone(), claim))
        };
        let names: BTreeSet<(String, String)> = waiting.flat_map(of).collect();
        let claims = match self.claims(&names).await {
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
        lists.volumes = self.volumes(&bound.collect()).await?;
        lists.claims = claims;
        Ok(())
    }

    /// Whether it is a pod whose place is still to be decided.
    fn waits(&self, pod: &Pod) -> bool {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.is_none() && self.settings.drives(namespace) && pod::read(pod, &self.settings).is_some()
    }

    async fn claims(&self, names: &BTreeSet<(String, String)>) -> Result<Vec<PersistentVolumeClaim>, Error> {
        let trim = |claim: &mut PersistentVolumeClaim| bare(&mut claim.metadata);
        let key = |claim: &PersistentVolumeClaim| {
            let of = |text: &Option<String>| text.clone().unwrap_or_default();
            (of(&claim.metadata.namespace), of(&claim.metadata.name))
        };
        if names.len() > SINGLE_MAX {
            let mut all = self
                .list("persistentvolumeclaims", ListParams::default(), trim)
                .await?;
            all.retain(|claim| names.contains(&key(claim)));
            return Ok(all);
        }
        let mut claims = Vec::new();
        for (namespace, name) in names {
            let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
            let what = format!("claim {namespace}/{name}");
            claims.extend(self.ask(&what, api.get_opt(name)).await?);
        }
        claims.iter_mut().for_each(trim);
        Ok(claims)
    }

    async fn volumes(&self, names: &BTreeSet<String>) -> Result<Vec<PersistentVolume>, Error> {
        let trim = |volume: &mut PersistentVolume| bare(&mut volume.metadata);
        let has = |volume: &PersistentVolume| {
            volume
                .metadata
                .name
                .as_ref()
                .is_some_and(|name| names.contains(name))
        };
        if names.len() > SINGLE_MAX {
            let mut all = self
                .list("persistentvolumes", ListParams::default(), trim)
                .await?;
            all.retain(has);
            return Ok(all);
        }
        let mut volumes = Vec::new();
        for name in names {
            let api: Api<PersistentVolume> = Api::all(self.client.clone());
            let what = format!("volume {name}");
            volumes.extend(self.ask(&what, api.get_opt(name)).await?);
        }
        volumes.iter_mut().for_each(trim);
        Ok(volumes)
    }
}
