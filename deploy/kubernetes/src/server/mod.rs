//! The server of the webhook and the metrics: TLS only, one address, and a bound on everything that a client can
//! make it do.

mod room;
mod routes;
mod shared;
mod tls;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::config::ServerSettings;
use crate::error::Error;

use self::room::{Guest, Room};

pub use shared::Shared;
pub use tls::Pem;

/// Longest time for a handshake of TLS: a client in the same cluster needs some milliseconds. Assumed.
const HANDSHAKE: Duration = Duration::from_secs(2);
/// How long a connection may wait for its next request: longer than the API server keeps one (90 s, `IdleConnTimeout` of its client).
/// Where this side ended it first, a request that is just coming would find no answer, and its pod no gate.
const IDLE: Duration = Duration::from_secs(120);
/// Largest head of a request, bytes.
const HEAD_MAX: usize = 64 << 10;
/// Time between two looks at the files of certificates.
const LOOK: Duration = Duration::from_secs(30);
/// Pause where no client can be accepted, for the want of file descriptors for example.
const PAUSE: Duration = Duration::from_millis(100);

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    pem: Pem,
    config: Arc<RwLock<Arc<ServerConfig>>>,
    shared: Shared,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Listens on the configured address and on no other.
    ///
    /// # Errors
    /// Certificates that cannot be used, an address that cannot be had.
    pub async fn listen(shared: Shared) -> Result<Server, Error> {
        let pem = Pem::read(&shared.server)?;
        let config = pem.config()?;
        let address = shared.server.address;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| Error::Listen { address, source })?;
        Ok(Server {
            listener,
            pem,
            config: Arc::new(RwLock::new(config)),
            shared,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// A socket that does not know.
    pub fn address(&self) -> std::io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves for ever.
    pub async fn run(mut self) {
        let router = routes::router(self.shared.clone());
        let room = Room::new(self.shared.server.connections_max);
        let mut look = tokio::time::interval(LOOK);
        loop {
            let tcp = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((tcp, _)) => tcp,
                    Err(error) => {
                        tracing::warn!(%error, "no client can be accepted");
                        room.make_space();
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                },
                _ = look.tick() => {
                    self.renew();
                    continue;
                }
            };
            // An answer of several segments must not wait for the client's word about the first ones.
            let _ = tcp.set_nodelay(true);
            let acceptor = TlsAcceptor::from(Arc::clone(
                &self.config.read().unwrap_or_else(PoisonError::into_inner),
            ));
            let (router, server) = (router.clone(), Arc::clone(&self.shared.server));
            room.enter(|guest| serve(tcp, acceptor, router, server, guest));
        }
    }

    /// Takes certificates that were replaced.
    fn renew(&mut self) {
        let read = Pem::read(&self.shared.server);
        match read.and_then(|pem| Ok((pem.config()?, pem))) {
            Ok((_, pem)) if pem == self.pem => {}
            Ok((config, pem)) => {
                *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
                self.pem = pem;
                tracing::info!("the certificates were read again");
            }
            Err(error) => tracing::warn!(%error, "the certificates stay"),
        }
    }
}

/// Serves one client. Until it has proved its identity, by a certificate or by a token, it is a guest, and later guests may take
/// its place.
async fn serve(
    tcp: TcpStream,
    acceptor: TlsAcceptor,
    router: Router,
    server: Arc<ServerSettings>,
    guest: Arc<Guest>,
) {
    // A client without a certificate, and one that is too slow, are none of our errors.
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(tcp)).await else {
        return;
    };
    let limit = Duration::from_secs(u64::from(server.request_limit_s));
    let is_known = server.client_authority.is_some();
    if is_known && !guest.stay(limit).await {
        return;
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(if is_known { IDLE } else { limit })
        .max_buf_size(HEAD_MAX)
        .serve_connection(
            TokioIo::new(stream),
            TowerToHyperService::new(router.layer(Extension(guest))),
        );
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended");
    }
}
