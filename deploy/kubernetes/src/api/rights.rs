//! What this program may do, and whose pods the webhook is to see.

use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ListParams, PostParams};

use super::Cluster;
use super::trim::bare;
use crate::error::Error;
use crate::names;

impl Cluster {
    /// Names of the namespaces whose pods the webhook is to see, by their label.
    ///
    /// # Errors
    /// As [`Cluster::lists`]; 403 without the right to it.
    pub async fn labelled(&self) -> Result<BTreeSet<String>, Error> {
        let params = ListParams::default().labels(&format!("{}=true", names::DRIVE));
        let found = self
            .list("namespaces", params, |one: &mut Namespace| {
                bare(&mut one.metadata)
            })
            .await?;
        Ok(found.into_iter().filter_map(|one| one.metadata.name).collect())
    }

    /// Whether the API server lets this program do something in a namespace, or in all.
    ///
    /// # Errors
    /// No answer, or a strange one.
    pub async fn may(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        subresource: &str,
        namespace: Option<&str>,
    ) -> Result<bool, Error> {
        let of = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: of(verb),
                    group: of(group),
                    resource: of(resource),
                    subresource: of(subresource),
                    namespace: namespace.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let what = format!("right to {verb} {resource}");
        let answer = self
            .ask(&what, api.create(&PostParams::default(), &review))
            .await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
