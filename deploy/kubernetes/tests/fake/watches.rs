//! Watches of the server: streams of events from a version on, bookmarks, and all that goes wrong with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{World, status};

/// What goes wrong with one watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    /// It ends before its first event.
    Cut,
    /// The version is forgotten: an event says so, or the answer itself.
    Gone,
    GoneStatus,
    /// The right to it is missing.
    Forbidden,
    /// 500.
    Error,
    /// A line that is no JSON.
    Garbage,
    /// Half of an event, and the end.
    Half,
    /// The connection breaks after the first events.
    Break,
    /// It is accepted, and nothing comes, not even an end.
    Silent,
    /// All that ever happened comes once more, and then what is new.
    Replay,
    /// An object without a name.
    Nameless,
    /// Bookmarks of long ago, without a version, and of no version.
    Bookmarks,
    /// Events come so late, s.
    Late(u64),
}

/// The stream of one watch.
struct Stream(mpsc::UnboundedReceiver<std::io::Result<Bytes>>);

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        let polled = self.0.poll_recv(context);
        polled.map(|next| next.map(|bytes| bytes.map(http_body::Frame::data)))
    }
}

/// One watch, and where it stands.
struct Watch {
    world: Arc<Mutex<World>>,
    kind: &'static str,
    selector: String,
    version: u64,
    until: Instant,
    fault: Option<WatchFault>,
    to: mpsc::UnboundedSender<std::io::Result<Bytes>>,
}

/// Answers a request for a watch.
pub fn watch(world: &Arc<Mutex<World>>, kind: &'static str, query: &HashMap<String, String>) -> Response {
    let text = &query["resourceVersion"];
    let fault = {
        let mut world = world.lock().unwrap();
        assert!(world.journal.is_kept, "a watch of {kind} where all is listed");
        world.journal.watches.push((kind, text.clone()));
        let faults = &mut world.journal.faults;
        let at = faults.iter().position(|(of, _)| *of == kind);
        at.and_then(|at| faults.remove(at)).map(|(_, fault)| fault)
    };
    match fault {
        Some(WatchFault::GoneStatus) => return status(410, "Expired", "too old resource version"),
        Some(WatchFault::Forbidden) => return status(403, "Forbidden", "cannot watch"),
        Some(WatchFault::Error) => return status(500, "InternalError", "on purpose"),
        _ => {}
    }
    let limit_s = query["timeoutSeconds"].parse().unwrap();
    let (to, from) = mpsc::unbounded_channel();
    let watch = Watch {
        world: Arc::clone(world),
        kind,
        selector: query.get("fieldSelector").cloned().unwrap_or_default(),
        version: text.parse().unwrap(),
        until: Instant::now() + Duration::from_secs(limit_s),
        fault,
        to,
    };
    tokio::spawn(watch.run());
    Body::new(Stream(from)).into_response()
}

impl Watch {
    /// Sends a line; whether there is a reader.
    fn line(&self, text: String) -> bool {
        self.to.send(Ok(Bytes::from(text))).is_ok()
    }

    fn bookmark(&self, version: &str) -> bool {
        let object =
            json!({ "apiVersion": "v1", "kind": self.kind, "metadata": { "resourceVersion": version } });
        self.line(format!("{}\n", json!({ "type": "BOOKMARK", "object": object })))
    }

    fn expired(&self) {
        let object = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too old resource version", "reason": "Expired", "code": 410 });
        self.line(format!("{}\n", json!({ "type": "ERROR", "object": object })));
    }

    async fn run(mut self) {
        match self.fault {
            Some(WatchFault::Cut) => return,
            Some(WatchFault::Gone) => return self.expired(),
            Some(WatchFault::Garbage) => {
                self.line("<html>502 Bad Gateway</html>\n".into());
            }
            Some(WatchFault::Nameless) => {
                let object = json!({ "metadata": { "resourceVersion": "999999" } });
                self.line(format!("{}\n", json!({ "type": "ADDED", "object": object })));
            }
            Some(WatchFault::Bookmarks) => {
                for version in ["1", "", "x"] {
                    self.bookmark(version);
                }
            }
            Some(WatchFault::Replay) => {
                let again = self
                    .world
                    .lock()
                    .unwrap()
                    .events_after(self.kind, &self.selector, 0);
                self.line(again.map_or(String::new(), |(lines, _)| lines));
            }
            Some(WatchFault::Silent) => {
                while !self.to.is_closed() {
                    sleep(Duration::from_millis(50)).await;
                }
                return;
            }
            Some(WatchFault::Late(seconds)) => sleep(Duration::from_secs(seconds)).await,
            _ => {}
        }
        let look = self.world.lock().unwrap().journal.look;
        let look = look.unwrap_or(Duration::from_millis(20));
        while Instant::now() < self.until {
            let next = self
                .world
                .lock()
                .unwrap()
                .events_after(self.kind, &self.selector, self.version);
            let Some((lines, last)) = next else {
                return self.expired();
            };
            if !lines.is_empty() {
                if self.fault == Some(WatchFault::Half) {
                    let half: String = lines.chars().take(lines.len() / 2).collect();
                    self.line(half);
                    return;
                }
                if !self.line(lines) {
                    return;
                }
                if self.fault == Some(WatchFault::Break) {
                    drop(self.to.send(Err(std::io::ErrorKind::ConnectionReset.into())));
                    return;
                }
            }
            self.version = last;
            if self.to.is_closed() {
                return;
            }
            sleep(look).await;
        }
        let mut world = self.world.lock().unwrap();
        if let Some((lines, _)) = world.events_after(self.kind, &self.selector, self.version) {
            self.line(lines);
            self.bookmark(&world.version.to_string());
        }
    }
}
