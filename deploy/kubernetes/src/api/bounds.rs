//! Classes of priority and quotas of namespaces, for Jobs that wait without pods.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use kube::Resource;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

use super::kept::{Kept, Watched};
use super::trim::{bare, is_noted};
use super::{Cluster, shared};
use crate::error::Error;
use crate::observe::Lists;

impl Cluster {
    /// Reads both where Jobs wait without pods. Without the right to it a round goes on, and says so.
    pub(super) async fn read_bounds(&self, lists: &mut Lists) -> Result<(), Error> {
        if lists.others.is_empty() && !lists.jobs.iter().any(|job| is_noted(&job.metadata)) {
            return Ok(());
        }
        let unread = &mut lists.unread;
        match self
            .all_of(|watched| &watched.classes, "priorityclasses", unread)
            .await
        {
            Err(error) if error.code() == Some(403) => lists
                .unread
                .push(format!("priorities of suspended Jobs are not read: {error}")),
            classes => lists.classes = classes?,
        }
        let unread = &mut lists.unread;
        match self
            .all_of(|watched| &watched.quotas, "resourcequotas", unread)
            .await
        {
            Err(error) if error.code() == Some(403) => lists.unread.push(format!(
                "quotas are not read, and Jobs are let go whose pods these refuse: {error}"
            )),
            quotas => lists.quotas = quotas?,
        }
        Ok(())
    }

    /// All objects of a kind: as they are kept, else by a list.
    async fn all_of<K>(
        &self,
        place: fn(&Watched) -> &OnceLock<Arc<Kept<K>>>,
        what: &'static str,
        unread: &mut Vec<String>,
    ) -> Result<Vec<Arc<K>>, Error>
    where
        K: Clone + PartialEq + Debug + DeserializeOwned + Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        let trim = |_: &Cluster, object: &mut K| bare(object.meta_mut());
        let of = |watched| place(watched).get_or_init(|| self.follow(watched, what, "", trim, |_, _| false));
        match self.kept(of, unread).await? {
            Some(all) => Ok(all),
            None => {
                let all = self.list(what, ListParams::default(), |object| trim(self, object));
                Ok(shared(all.await?))
            }
        }
    }
}
