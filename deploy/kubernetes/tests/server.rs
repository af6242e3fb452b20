//! The server over TLS: which clients are let in, what is answered, and what a client cannot make it do.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::objects::{NOW_S, lists, node, pod};
use pleach_kubernetes::config::ServerSettings;
use pleach_kubernetes::let_go::LetGo;
use pleach_kubernetes::observe::observe;
use pleach_kubernetes::server::{Server, Shared};
use pleach_kubernetes::view::View;
use pleach_kubernetes::{Error, Settings, webhook};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Two authorities, a server's certificate by the first, and a client's by each.
struct Keys {
    folder: tempfile::TempDir,
}

impl Keys {
    fn new() -> Keys {
        let keys = Keys {
            folder: tempfile::tempdir().unwrap(),
        };
        for name in ["ours", "theirs"] {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
            keys.write(&format!("{name}-authority"), &authority.pem());
            for end in ["server", "client"] {
                let key = KeyPair::generate().unwrap();
                let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
                let certificate = params.signed_by(&key, &authority).unwrap();
                keys.write(&format!("{name}-{end}"), &certificate.pem());
                keys.write(&format!("{name}-{end}-key"), &key.serialize_pem());
            }
        }
        keys.write("token", TOKEN);
        keys
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).unwrap();
    }

    fn settings(&self, with_token: bool) -> ServerSettings {
        ServerSettings {
            address: "127.0.0.1:0".parse().unwrap(),
            certificate: self.at("ours-server"),
            key: self.at("ours-server-key"),
            client_authority: (!with_token).then(|| self.at("ours-authority")),
            token: with_token.then(|| self.at("token")),
            body_bytes_max: 64 << 10,
            connections_max: 8,
            requests_max: 2,
            request_limit_s: 1,
            patience_s: 60,
        }
    }

    fn connector(&self, client: Option<&str>) -> TlsConnector {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(self.at("ours-authority")).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match client {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let certificate = CertificateDer::from_pem_file(self.at(&format!("{name}-client"))).unwrap();
                let key = PrivateKeyDer::from_pem_file(self.at(&format!("{name}-client-key"))).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        TlsConnector::from(Arc::new(config))
    }
}

struct Running {
    address: std::net::SocketAddr,
    view: View,
    keys: Keys,
}

async fn start(with_token: bool) -> Running {
    start_with(with_token, |_| {}).await
}

async fn start_with(with_token: bool, change: impl FnOnce(&mut ServerSettings)) -> Running {
    let keys = Keys::new();
    let mut server = keys.settings(with_token);
    change(&mut server);
    let settings = Settings {
        server: Some(server),
        ..Settings::default()
    };
    let view = View::default();
    let metrics = Arc::new(Mutex::new("# EOF\n".to_owned()));
    let shared = Shared::new(&settings, view.clone(), metrics, false)
        .unwrap()
        .unwrap();
    let server = Server::listen(shared).await.unwrap();
    let address = server.address().unwrap();
    tokio::spawn(server.run());
    Running { address, view, keys }
}

impl Running {
    async fn connect(&self, client: Option<&str>) -> std::io::Result<TlsStream<TcpStream>> {
        let tcp = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        self.keys.connector(client).connect(name, tcp).await
    }

    /// The code and the body of an answer; none where the connection breaks.
    async fn ask(&self, client: Option<&str>, head: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = self.connect(client).await.ok()?;
        let (line, header) = head.split_once(" | ").unwrap_or((head, "X-None: 1"));
        let text = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\n{header}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // The server may close without a goodbye of TLS once it has said what it thinks.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let code = answer.get(9..12)?.parse().ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        Some((code, body.to_owned()))
    }
}

fn review(pod: &Value) -> String {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "r1", "kind": { "group": "", "version": "v1", "kind": "Pod" },
        "resource": { "group": "", "version": "v1", "resource": "pods" },
        "name": "p", "namespace": "team", "operation": "CREATE", "userInfo": {}, "object": pod } })
    .to_string()
}

fn ungated() -> Value {
    let mut pod = pod("p", 1);
    pod["spec"].as_object_mut().unwrap().remove("schedulingGates");
    pod
}

#[tokio::test]
async fn only_clients_with_a_certificate_of_the_authority_get_in() {
    let running = start(false).await;
    let get = "GET /metrics";
    assert_eq!(
        running.ask(Some("ours"), get, "").await.unwrap(),
        (200, "# EOF\n".into())
    );
    for stranger in [None, Some("theirs")] {
        assert_eq!(running.ask(stranger, get, "").await, None, "{stranger:?}");
    }
    // No TLS at all.
    let mut plain = TcpStream::connect(running.address).await.unwrap();
    plain.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(running.ask(Some("ours"), "GET /", "").await.unwrap().0, 404);
    assert_eq!(
        running.ask(Some("ours"), "GET /webhook", "").await.unwrap().0,
        405
    );
}

#[tokio::test]
async fn a_token_lets_in_by_header_or_path_and_nothing_else_does() {
    let running = start(true).await;
    let by_head = format!("GET /metrics | Authorization: Bearer {TOKEN}");
    let by_path = format!("GET /token/{TOKEN}/metrics");
    for head in [by_head.as_str(), by_path.as_str()] {
        assert_eq!(running.ask(None, head, "").await.unwrap().0, 200, "{head}");
    }
    let wrong = TOKEN.replace('0', "1");
    for head in [
        "GET /metrics",
        &format!("GET /token/{wrong}/metrics"),
        "GET /token//metrics",
        &format!("GET /metrics | Authorization: Bearer {wrong}"),
        &format!("GET /metrics | Authorization: {TOKEN}"),
        &format!("GET /metrics?token={TOKEN}"),
    ] {
        assert_eq!(running.ask(None, head, "").await.unwrap().0, 401, "{head}");
    }
}

#[tokio::test]
async fn the_webhook_holds_pods_only_while_the_controller_lives() {
    let running = start(false).await;
    let (code, body) = running
        .ask(Some("ours"), "POST /webhook", &review(&ungated()))
        .await
        .unwrap();
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (code, &answer["response"]),
        (200, &json!({ "uid": "r1", "allowed": true }))
    );
    running.view.show(Arc::new(observe(
        &lists(&[], &[], &[]),
        &Settings::default(),
        NOW_S,
    )));
    let (_, body) = running
        .ask(Some("ours"), "POST /webhook", &review(&ungated()))
        .await
        .unwrap();
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    let (code, _) = running.ask(Some("ours"), "POST /webhook", "{").await.unwrap();
    assert_eq!(code, 400);
}

#[tokio::test]
async fn kube_scheduler_that_still_asks_the_extender_is_answered_with_what_to_do() {
    let running = start(true).await;
    for verb in ["filter", "prioritize"] {
        let path = format!("POST /token/{TOKEN}/{verb}");
        let (code, body) = running.ask(None, &path, "{}").await.unwrap();
        assert!(
            code == 410 && body.contains("take `extenders` out"),
            "{code} {body}"
        );
    }
}

#[tokio::test]
async fn bodies_are_read_up_to_their_own_bound_and_to_no_other() {
    let running = start_with(false, |server| {
        server.body_bytes_max = 4 << 20;
        server.request_limit_s = 60;
    })
    .await;
    let mut big = ungated();
    big["metadata"]["annotations"] = json!({ "x": "y".repeat(3 << 20) });
    let (code, _) = running
        .ask(Some("ours"), "POST /webhook", &review(&big))
        .await
        .unwrap();
    assert_eq!(code, 200);
    big["metadata"]["annotations"] = json!({ "x": "y".repeat(5 << 20) });
    let answer = running.ask(Some("ours"), "POST /webhook", &review(&big)).await;
    // It may close before the client has sent all of it.
    assert!(answer.is_none_or(|(code, _)| code == 413));
}

#[tokio::test]
async fn a_client_cannot_make_it_read_or_wait_without_end() {
    let running = start(false).await;
    let long = "x".repeat((64 << 10) + 1);
    assert_eq!(
        running.ask(Some("ours"), "POST /webhook", &long).await.unwrap().0,
        413
    );
    let head = format!("GET /metrics | X-Long: {}", "y".repeat(1 << 20));
    let code = running.ask(Some("ours"), &head, "").await.map(|(code, _)| code);
    assert!(matches!(code, None | Some(431 | 400)), "{code:?}");
    // Two that send half a body take both places; a third one gets 503, and after the limit there is room again.
    let began = Instant::now();
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut stream = running.connect(Some("ours")).await.unwrap();
        stream
            .write_all(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            .await
            .unwrap();
        slow.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        running.ask(Some("ours"), "GET /metrics", "").await.unwrap().0,
        503
    );
    for mut stream in slow {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(
            answer.starts_with(b"HTTP/1.1 408"),
            "{:?}",
            String::from_utf8_lossy(&answer)
        );
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(
        running.ask(Some("ours"), "GET /metrics", "").await.unwrap().0,
        200
    );
    // Connections that say nothing take their places only until the handshake's limit.
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(TcpStream::connect(running.address).await.unwrap());
    }
    assert_eq!(
        running.ask(Some("ours"), "GET /metrics", "").await.unwrap().0,
        200
    );
}

#[tokio::test]
async fn whoever_connects_and_says_nothing_keeps_nobody_out() {
    // With client certificates and with a token: silent in TCP, and, where TLS asks for no certificate, silent after it.
    for with_token in [false, true] {
        let running = start(with_token).await;
        let mut silent = Vec::new();
        for _ in 0..300 {
            silent.push(TcpStream::connect(running.address).await.unwrap());
        }
        let (client, head) = match with_token {
            true => (None, format!("POST /token/{TOKEN}/webhook")),
            false => (Some("ours"), "POST /webhook".to_owned()),
        };
        let mut guests = Vec::new();
        for _ in 0..if with_token { 12 } else { 0 } {
            guests.push(running.connect(None).await.unwrap());
        }
        // Eight places, a second for each: in turn it would be half a minute. The API server waits 2 s for a webhook.
        let began = Instant::now();
        let (code, _) = running.ask(client, &head, &review(&ungated())).await.unwrap();
        assert_eq!(code, 200, "{with_token}");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

/// A request whose body is begun and not ended.
async fn begun(running: &Running, body: &str) -> TlsStream<TcpStream> {
    let mut stream = running.connect(Some("ours")).await.unwrap();
    let num = body.len() + 1;
    let head = format!(
        "POST /webhook HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {num}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

#[tokio::test]
async fn requests_beyond_the_bound_are_refused_one_by_one_and_none_is_lost() {
    const CLIENTS: usize = 64;
    let running = start_with(false, |server| {
        server.connections_max = CLIENTS + 4;
        server.request_limit_s = 60;
    })
    .await;
    let running = Arc::new(running);
    running.view.show(Arc::new(observe(
        &lists(&[node("g1", 8)], &[], &[]),
        &Settings::default(),
        NOW_S,
    )));
    let args = review(&ungated());
    // Two requests take both places, and are not over before they are ended.
    let (text, last) = args.split_at(args.len() - 1);
    let mut begun = [begun(&running, text).await, begun(&running, text).await];
    let limit = Instant::now() + Duration::from_secs(60);
    while running.ask(Some("ours"), "GET /metrics", "").await.unwrap().0 != 503 {
        assert!(Instant::now() < limit, "the two requests take no places");
    }
    let ask_all = async |until_right: bool| {
        let tasks: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (running, args) = (Arc::clone(&running), args.clone());
                tokio::spawn(async move {
                    loop {
                        let answer = running.ask(Some("ours"), "POST /webhook", &args).await.unwrap();
                        if answer.0 != 503 || !until_right {
                            return answer;
                        }
                    }
                })
            })
            .collect();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        answers
    };
    // All others get 503 at once.
    let refused = ask_all(false).await;
    assert!(
        refused.iter().all(|answer| *answer == (503, String::new())),
        "{refused:?}"
    );
    let reviewed = webhook::review(args.as_bytes(), &Settings::default(), true, &LetGo::default());
    let reviewed = reviewed.unwrap().to_string();
    let right = (200, reviewed.as_str());
    for stream in &mut begun {
        stream.write_all(last.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with(right.1),
            "{answer}"
        );
    }
    // A client that asks again until there is room gets the right answer, once.
    let answers = ask_all(true).await;
    assert_eq!(answers.len(), CLIENTS);
    assert!(
        answers.iter().all(|(code, body)| (*code, body.as_str()) == right),
        "{answers:?}"
    );
}

#[tokio::test]
async fn short_tokens_strange_certificates_and_taken_addresses_are_refused_with_the_reason() {
    let keys = Keys::new();
    let refuse = |server: ServerSettings| {
        let settings = Settings {
            server: Some(server),
            ..Settings::default()
        };
        async move {
            let shared = Shared::new(&settings, View::default(), Arc::default(), false);
            let served = match shared {
                Ok(shared) => Server::listen(shared.unwrap()).await.map(drop),
                Err(error) => Err(error),
            };
            served.unwrap_err()
        }
    };
    keys.write("token", "short");
    let error = refuse(keys.settings(true)).await.to_string();
    assert!(error.contains("32 to 512"), "{error}");
    let mut server = keys.settings(false);
    server.key = keys.at("theirs-server-key");
    let error = refuse(server).await.to_string();
    assert!(error.contains("certificate and key"), "{error}");
    let mut server = keys.settings(false);
    server.client_authority = Some(keys.at("ours-server-key"));
    let error = refuse(server).await.to_string();
    assert!(error.contains("client_authority"), "{error}");
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut server = keys.settings(false);
    server.address = taken.local_addr().unwrap();
    assert!(matches!(refuse(server).await, Error::Listen { .. }));
}
