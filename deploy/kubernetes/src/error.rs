//! What can go wrong while a cluster is driven. None of it stops Kubernetes: a round that fails is reported and tried again.

use std::path::PathBuf;
use std::time::Duration;

use pleach_scheduler::Problem;
use thiserror::Error;

/// An error of the controller or of its server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting that cannot be used.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// Tables, policies, rounds and the state folder.
    #[error(transparent)]
    Daemon(#[from] pleach_daemon::Error),
    /// The API server refused, or could not be asked.
    #[error("{what}: {source}")]
    Api {
        /// The request in words.
        what: String,
        /// What the client says.
        source: Box<kube::Error>,
    },
    /// No answer of the API server.
    #[error("{what}: no answer within {limit:?}")]
    Deadline {
        /// The request in words.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// More objects than a round may read.
    #[error("{what}: more than {most}; raise objects_max, or limit namespaces")]
    TooMany {
        /// The list in words.
        what: String,
        /// The most that is read.
        most: u32,
    },
    /// An object or a list of the API server that has no name or no version.
    #[error("{what}: an object without a name, or without a version that is a number")]
    Strange {
        /// The request in words.
        what: String,
    },
    /// What is kept by a watch is too old to decide on.
    #[error(
        "the watch of {what} has shown nothing for {age_s} s, and nothing is started until it does: {reason}"
    )]
    Stale {
        /// The kind of objects.
        what: &'static str,
        /// Since when, s.
        age_s: u64,
        /// What went wrong last.
        reason: String,
    },
    /// The first list of what is kept failed.
    #[error("{reason}")]
    Unfilled {
        /// What went wrong.
        reason: String,
    },
    /// No way to the API server.
    #[error("no way to the API server: {reason}; in a pod a ServiceAccount tells it, elsewhere KUBECONFIG")]
    Access {
        /// What is missing.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file whose text is not what it should be.
    #[error("{}: {reason}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// TLS that cannot be set up.
    #[error("TLS: {reason}")]
    Tls {
        /// What is wrong.
        reason: String,
    },
    /// An address where the server cannot listen.
    #[error("server.address {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another controller drives.
    #[error("stands by: {holder} drives, by the Lease {lease}")]
    StandsBy {
        /// Namespace and name.
        lease: String,
        /// The controller that has it.
        holder: String,
    },
    /// A pod or a job that is not there.
    #[error("{what}: not found; name it NAMESPACE/POD")]
    Unknown {
        /// What was asked for.
        what: String,
    },
}

impl Error {
    /// The status code of an answer of the API server, if it is one.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Error::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }
}
