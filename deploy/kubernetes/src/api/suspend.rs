//! Suspends Jobs and the like, and lets them go.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{Cluster, MANAGER, shared, trim};
use crate::error::Error;
use crate::names;
use crate::suspended::maker::{Kind, OTHERS};
use crate::suspended::{Other, Owner};

impl Cluster {
    /// Lets a Job make its pods, if it is the very one and the version that was read, with the text of a mark where its nodes are
    /// decided.
    ///
    /// # Errors
    /// A refusal; 409 where the Job has changed, 404 where it is gone.
    pub async fn resume(&self, owner: &Owner, mark: Option<&str>) -> Result<(), Error> {
        let notes = json!({ names::SUSPENDED: null, names::DECIDED: mark });
        self.change(owner, &notes, false).await
    }

    /// Suspends a Job, not to be let go before Unix time `not_before_s`: the Job controller takes its pods away.
    ///
    /// # Errors
    /// As [`Cluster::resume`].
    pub async fn suspend(&self, owner: &Owner, not_before_s: i64) -> Result<(), Error> {
        let notes = json!({ names::SUSPENDED: not_before_s.to_string(), names::DECIDED: null });
        self.change(owner, &notes, true).await
    }

    async fn change(&self, owner: &Owner, notes: &Value, suspend: bool) -> Result<(), Error> {
        let what = format!("{} {}/{}", owner.kind.kind, owner.namespace, owner.name);
        let version = self.version_of_owner(owner);
        let metadata = json!({ "uid": owner.uid, "resourceVersion": version, "annotations": notes });
        let mut patch = json!({ "metadata": metadata });
        let mut within = &mut patch;
        for key in owner.kind.within {
            within = &mut within[*key];
        }
        within["suspend"] = json!(suspend);
        let params = PatchParams {
            field_manager: Some(MANAGER.into()),
            ..PatchParams::default()
        };
        let resource = owner.kind.resource();
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &owner.namespace, &resource);
        let patch = Patch::Merge(patch);
        let sent = api.patch(&owner.name, &params, &patch);
        let new = self.ask(&what, sent).await?;
        self.answered_of(owner.kind, new);
        Ok(())
    }

    /// The newest version of an object of which the same is read.
    fn version_of_owner(&self, owner: &Owner) -> String {
        let own = &owner.resource_version;
        let object = (&*owner.namespace, &*owner.name, &*owner.uid);
        let newest = self.watched.get().and_then(|watched| {
            let place = OTHERS.iter().position(|other| other == owner.kind);
            match place {
                Some(place) => Some(watched.others[place].get()?.newest(object, own)),
                None => Some(watched.jobs.get()?.newest(object, own)),
            }
        });
        newest.unwrap_or_else(|| own.clone())
    }

    /// Keeps an object as the API server answers it.
    fn answered_of(&self, kind: &Kind, mut new: DynamicObject) {
        let Some(watched) = self.watched.get() else {
            return;
        };
        if let Some(place) = OTHERS.iter().position(|other| other == kind) {
            if let Some(kept) = watched.others[place].get() {
                trim::other(&mut new);
                kept.answered(new);
            }
        } else if let (Some(kept), Ok(mut new)) = (watched.jobs.get(), new.try_parse::<Job>()) {
            trim::job(&mut new, self.settings.tenant_label.as_deref());
            kept.answered(new);
        }
    }

    /// All Jobs.
    ///
    /// # Errors
    /// As [`Cluster::lists`].
    pub async fn jobs(&self) -> Result<Vec<Job>, Error> {
        let trim = |job: &mut Job| trim::job(job, self.settings.tenant_label.as_deref());
        self.list("jobs", ListParams::default(), trim).await
    }

    /// Objects of other kinds that are suspended by us, or were let go; of kinds that the API server does not have, or does not show,
    /// none. A kind is watched once a list has shown that it is there.
    ///
    /// # Errors
    /// As [`Cluster::lists`].
    pub async fn others(&self, unread: &mut Vec<String>) -> Result<Vec<Other>, Error> {
        let mut others: Vec<Other> = Vec::new();
        for (place, kind) in OTHERS.iter().enumerate() {
            let kept = self.watched.get().and_then(|watched| watched.others[place].get());
            let kept = match kept {
                Some(kept) => self.kept(|_| kept, unread).await?,
                None => None,
            };
            let found = match kept {
                Some(kept) => kept,
                None => self.listed_others(place, kind).await?,
            };
            let noted = found
                .into_iter()
                .filter(|object| trim::is_noted(&object.metadata));
            others.extend(noted.map(|object| (kind, object)));
        }
        Ok(others)
    }

    async fn listed_others(
        &self,
        place: usize,
        kind: &'static Kind,
    ) -> Result<Vec<Arc<DynamicObject>>, Error> {
        if self.absent.is_absent(kind.plural) {
            return Ok(Vec::new());
        }
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind.resource());
        match self
            .list_of(&api, kind.plural, ListParams::default(), trim::other)
            .await
        {
            Err(error) if matches!(error.code(), Some(403 | 404)) => {
                self.absent.note(kind.plural);
                Ok(Vec::new())
            }
            found => {
                if let Some(watched) = self.watched.get() {
                    watched.others[place].get_or_init(|| {
                        let trim = |_: &Cluster, object: &mut DynamicObject| trim::other(object);
                        self.follow_of(watched, (kind.plural, kind.resource()), "", trim, |_, change| {
                            let is_noted = |new: &Arc<DynamicObject>| trim::is_noted(&new.metadata);
                            change.old.is_none() && change.new.as_ref().is_some_and(is_noted)
                        })
                    });
                }
                Ok(shared(found?.0))
            }
        }
    }
}
