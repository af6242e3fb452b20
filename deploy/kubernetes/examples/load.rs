//! Many clients at once ask the webhook over mutual TLS:
//!
//! ```sh
//! cargo run -p pleach-kubernetes --example load -- [CLIENTS] [REQUESTS]
//! ```
//!
//! The server is a process of its own, so that its memory is its own; both are on this machine and share its cores. Every answer
//! is held to the one that the same functions give without a server. A refusal (503) is counted and asked again.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pleach_kubernetes::config::ServerSettings;
use pleach_kubernetes::let_go::LetGo;
use pleach_kubernetes::observe::{Lists, observe};
use pleach_kubernetes::server::{Server, Shared};
use pleach_kubernetes::view::View;
use pleach_kubernetes::{Settings, webhook};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

type Error = Box<dyn std::error::Error + Send + Sync>;

const NOW_S: i64 = 1_795_000_000;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|word| word == "serve") {
        return serve(Path::new(&args[1]), args[2].parse()?);
    }
    let number = |at: usize, default: usize| args.get(at).map_or(Ok(default), |text| text.parse());
    let (clients, requests) = (number(0, 64)?, number(1, 20)?);
    let folder = tempfile::tempdir()?;
    make_keys(folder.path())?;
    let mut server = Command::new(std::env::current_exe()?)
        .arg("serve")
        .arg(folder.path())
        .arg(clients.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(server.stdout.take().ok_or("no output")?).lines();
    let address: SocketAddr = lines.next().ok_or("the server has ended")??.parse()?;
    let ran = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(ask_all(folder.path(), address, clients, requests));
    // Its end of the pipe is closed: the server tells its memory and ends.
    drop(server.stdin.take());
    for line in lines {
        println!("{}", line?);
    }
    server.wait()?;
    ran
}

/// The process of the server: the real one, beside a controller that lives.
fn serve(folder: &Path, clients: usize) -> Result<(), Error> {
    let settings = Settings {
        server: Some(ServerSettings {
            address: "127.0.0.1:0".parse()?,
            certificate: folder.join("server"),
            key: folder.join("server-key"),
            client_authority: Some(folder.join("authority")),
            token: None,
            body_bytes_max: 64 << 20,
            connections_max: clients.max(1),
            requests_max: clients.max(1),
            request_limit_s: 60,
            patience_s: 60,
        }),
        ..Settings::default()
    };
    let view = View::default();
    let seen = Arc::new(observe(&Lists::default(), &settings, NOW_S));
    view.show(Arc::clone(&seen));
    let shared = Shared::new(&settings, view.clone(), Arc::default(), false)?.ok_or("no server")?;
    std::thread::spawn(move || {
        let run = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let served: Result<(), Error> = run.map_err(Error::from).and_then(|run| {
            run.block_on(async {
                let server = Server::listen(shared).await?;
                println!("{}", server.address()?);
                server.run().await;
                Ok(())
            })
        });
        if let Err(error) = served {
            eprintln!("{error}");
            std::process::exit(1);
        }
    });
    let before = memory("VmRSS:");
    // As the controller does in each round.
    std::thread::spawn(move || {
        loop {
            view.show(Arc::clone(&seen));
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new())?;
    println!(
        "memory of the server: {before} at first, {} at most",
        memory("VmHWM:")
    );
    Ok(())
}

fn memory(key: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.map_or("unknown".into(), |kib| format!("{:.0} MiB", kib as f64 / 1024.0))
}

fn make_keys(folder: &Path) -> Result<(), Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    std::fs::write(folder.join("authority"), authority.pem())?;
    for end in ["server", "client"] {
        let key = KeyPair::generate()?;
        let certificate =
            CertificateParams::new(vec!["localhost".to_owned()])?.signed_by(&key, &authority)?;
        std::fs::write(folder.join(end), certificate.pem())?;
        std::fs::write(folder.join(format!("{end}-key")), key.serialize_pem())?;
    }
    Ok(())
}

fn pod() -> Value {
    json!({
        "metadata": { "name": "p", "namespace": "team", "uid": "u-1", "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "schedulerName": "default-scheduler", "containers": [{ "name": "main", "image": "train:1", "resources": {
            "requests": { "cpu": "4", "memory": "16Gi" }, "limits": { "nvidia.com/gpu": "4" } } }] },
        "status": { "phase": "Pending" },
    })
}

/// What is asked: the body, and the answer that is right.
struct Question {
    body: String,
    answer: Value,
}

fn question() -> Result<Question, Error> {
    let body = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "r1", "kind": { "group": "", "version": "v1", "kind": "Pod" },
        "resource": { "group": "", "version": "v1", "resource": "pods" },
        "name": "p", "namespace": "team", "operation": "CREATE", "userInfo": {}, "object": pod() } })
    .to_string();
    let answer = webhook::review(body.as_bytes(), &Settings::default(), true, &LetGo::default())?;
    Ok(Question { body, answer })
}

async fn ask_all(folder: &Path, address: SocketAddr, clients: usize, requests: usize) -> Result<(), Error> {
    let connector = connector(folder)?;
    println!("{clients} clients, {requests} requests each");
    println!("body bytes, answers, all right, refused, p50 ms, p99 ms, most ms, answers/s");
    let question = Arc::new(question()?);
    let began = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|_| tokio::spawn(ask(connector.clone(), address, Arc::clone(&question), requests)))
        .collect();
    let (mut times, mut num_refused) = (Vec::new(), 0);
    for task in tasks {
        let (part, refused) = task.await??;
        times.extend(part);
        num_refused += refused;
    }
    let took_s = began.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] * 1e3;
    println!(
        "{}, {}, yes, {num_refused}, {:.1}, {:.1}, {:.1}, {:.0}",
        question.body.len(),
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        times.len() as f64 / took_s
    );
    Ok(())
}

/// One client with one connection: the times of its answers, s, and how often it was refused.
async fn ask(
    connector: TlsConnector,
    address: SocketAddr,
    question: Arc<Question>,
    requests: usize,
) -> Result<(Vec<f64>, usize), Error> {
    let name = ServerName::try_from("localhost")?;
    let tcp = TcpStream::connect(address).await?;
    // As the clients of Kubernetes do.
    tcp.set_nodelay(true)?;
    let mut stream = connector.connect(name, tcp).await?;
    let (mut times, mut num_refused) = (Vec::with_capacity(requests), 0);
    while times.len() < requests {
        let began = Instant::now();
        let (code, body) = exchange(&mut stream, &question).await?;
        match code {
            200 => times.push(began.elapsed().as_secs_f64()),
            503 => {
                num_refused += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
            _ => return Err(format!("the webhook answers {code}").into()),
        }
        if serde_json::from_slice::<Value>(&body)? != question.answer {
            return Err("another answer than without a server".into());
        }
    }
    Ok((times, num_refused))
}

async fn exchange(stream: &mut TlsStream<TcpStream>, question: &Question) -> Result<(u16, Vec<u8>), Error> {
    let num = question.body.len();
    let head = format!("POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: {num}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(question.body.as_bytes()).await?;
    stream.flush().await?;
    let (mut read, mut part) = (Vec::new(), [0; 16 << 10]);
    loop {
        let end = read.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(end) = end {
            let head = std::str::from_utf8(&read[..end])?.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let (code, length): (u16, usize) =
                (head[9..12].parse()?, length.ok_or("no length")?.trim().parse()?);
            while read.len() < end + 4 + length {
                match stream.read(&mut part).await? {
                    0 => return Err("the answer breaks off".into()),
                    num => read.extend_from_slice(&part[..num]),
                }
            }
            return Ok((code, read.split_off(end + 4)));
        }
        match stream.read(&mut part).await? {
            0 => return Err("no answer".into()),
            num => read.extend_from_slice(&part[..num]),
        }
    }
}

fn connector(folder: &Path) -> Result<TlsConnector, Error> {
    let at = |name: &str| -> PathBuf { folder.join(name) };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(at("authority"))?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_file(at("client"))?],
            PrivateKeyDer::from_pem_file(at("client-key"))?,
        )?;
    Ok(TlsConnector::from(Arc::new(config)))
}
