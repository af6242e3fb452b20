//! Events on objects of users.

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::PostParams;

use super::Cluster;
use crate::error::Error;

impl Cluster {
    /// Writes an event; one that is there already is no error.
    ///
    /// # Errors
    /// A refusal, no answer.
    pub async fn tell(&self, event: &Event) -> Result<(), Error> {
        let space = event.metadata.namespace.as_deref().unwrap_or_default();
        let what = format!("event of {space}");
        let api: Api<Event> = Api::namespaced(self.client.clone(), space);
        match self.ask(&what, api.create(&PostParams::default(), event)).await {
            Err(error) if error.code() != Some(409) => Err(error),
            _ => Ok(()),
        }
    }
}
