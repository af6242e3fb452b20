//! TLS of the server: its certificate, and the clients that it lets in.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use pleach_daemon::files;

use crate::config::ServerSettings;
use crate::error::Error;

/// Largest file of certificates or keys, bytes.
const PEM_MAX: u64 = 1 << 20;

/// The files that TLS is made of.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
    clients: Option<Vec<u8>>,
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Pem").finish_non_exhaustive()
    }
}

impl Pem {
    /// Reads them.
    ///
    /// # Errors
    /// A file that cannot be read, or is too long.
    pub fn read(settings: &ServerSettings) -> Result<Pem, Error> {
        let clients = settings.client_authority.as_ref();
        Ok(Pem {
            certificate: files::bytes(&settings.certificate, PEM_MAX)?,
            key: files::bytes(&settings.key, PEM_MAX)?,
            clients: clients.map(|path| files::bytes(path, PEM_MAX)).transpose()?,
        })
    }

    /// What connections are accepted with: where clients need certificates, none comes in without one.
    ///
    /// # Errors
    /// Files without certificates, a key that is not the certificate's.
    pub fn config(&self) -> Result<Arc<ServerConfig>, Error> {
        let wrong = |what: &str, reason: String| Error::Tls {
            reason: format!("{what}: {reason}"),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("protocol", error.to_string()))?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(pem, "client_authority")? {
                    roots
                        .add(certificate)
                        .map_err(|error| wrong("client_authority", error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| wrong("client_authority", error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key =
            PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| wrong("key", error.to_string()))?;
        let mut config = builder
            .with_single_cert(certificates(&self.certificate, "certificate")?, key)
            .map_err(|error| wrong("certificate and key", error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match list {
        Ok(list) if !list.is_empty() => Ok(list),
        Ok(_) => Err(Error::Tls {
            reason: format!("{what}: no certificate in it"),
        }),
        Err(error) => Err(Error::Tls {
            reason: format!("{what}: {error}"),
        }),
    }
}
