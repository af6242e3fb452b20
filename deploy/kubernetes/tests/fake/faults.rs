//! What an API server does on bad days, by the number of the request.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{World, status};

/// A fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 500, nothing is done.
    Error,
    /// 409, nothing is done.
    Conflict,
    /// No answer for longer than any client waits.
    Hang,
    /// The connection breaks, nothing is done.
    Reset,
    /// It is done, and the connection breaks before the answer.
    LateReset,
    /// An answer that is no JSON.
    Garbage,
    /// An answer of half a list.
    HalfJson,
}

pub const ALL: [Fault; 7] = [
    Fault::Error,
    Fault::Conflict,
    Fault::Hang,
    Fault::Reset,
    Fault::LateReset,
    Fault::Garbage,
    Fault::HalfJson,
];

/// A stream of bytes that breaks off.
struct Broken;

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        std::task::Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())))
    }
}

fn reset() -> Response {
    Response::new(Body::new(Broken))
}

pub async fn strike(
    State(world): State<Arc<Mutex<World>>>,
    request: Request,
    next: Next,
) -> Result<Response, Infallible> {
    // Events are sent beside the rounds: counted, they would make the number of every other request one of chance.
    if request.uri().path().ends_with("/events") {
        return Ok(next.run(request).await);
    }
    let fault = {
        let mut world = world.lock().unwrap();
        world.num_requests += 1;
        if request.method() != "GET" {
            world.num_writes += 1;
        }
        if world.kill_at.is_some_and(|number| world.num_requests >= number) {
            world.kill_at = None;
            world.kill.notify_one();
        }
        match world.fault_every {
            0 => None,
            every if world.num_requests % every == 0 => {
                let number = (world.num_requests / every) as usize;
                Some(ALL[number % ALL.len()])
            }
            _ => None,
        }
    };
    Ok(match fault {
        None => next.run(request).await,
        Some(Fault::Error) => status(500, "InternalError", "on purpose"),
        Some(Fault::Conflict) => status(409, "Conflict", "on purpose"),
        Some(Fault::Hang) => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            reset()
        }
        Some(Fault::Reset) => reset(),
        Some(Fault::LateReset) => {
            next.run(request).await;
            reset()
        }
        Some(Fault::Garbage) => "<html>502 Bad Gateway</html>".into_response(),
        Some(Fault::HalfJson) => "{\"kind\":\"List\",\"items\":[{\"metadata\":".into_response(),
    })
}
