//! What is answered on which path, and to which clients.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{DefaultBodyLimit, RawQuery, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Serialize;
use subtle::ConstantTimeEq;

use super::room::Guest;
use super::shared::Shared;
use crate::webhook;

/// The answer to a kube-scheduler that still asks the extender of earlier versions.
const NO_EXTENDER: &str =
    "there is no scheduler extender any more: take `extenders` out of the configuration of kube-scheduler";

/// All routes, with their bounds before them.
pub fn router(shared: Shared) -> Router {
    let routes = Router::new()
        .route("/webhook", post(hold))
        .route("/filter", post(gone))
        .route("/prioritize", post(gone))
        .route("/metrics", get(metrics))
        .route("/v1/when", get(when));
    Router::new()
        .merge(routes.clone())
        .nest("/token/{token}", routes)
        // The guard bounds bodies by the settings; axum's own limit of 2 MB may be less.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

/// Lets in clients that prove their identity, as many at once as there is room for; reads the body, within bounds of size and
/// time.
async fn guard(
    State(shared): State<Shared>,
    Extension(guest): Extension<Arc<Guest>>,
    request: Request,
    next: Next,
) -> Response {
    if !is_let_in(&shared, &request) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let limit = Duration::from_secs(u64::from(shared.server.request_limit_s));
    if !guest.stay(limit).await {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let Ok(_permit) = shared.requests.try_acquire() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let answer = async {
        let (head, body) = request.into_parts();
        match to_bytes(body, shared.server.body_bytes_max).await {
            Ok(bytes) => next.run(Request::from_parts(head, Body::from(bytes))).await,
            Err(_) => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        }
    };
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

/// Where there is a token, it has to be right. Where there is none, TLS has checked the client's certificate.
fn is_let_in(shared: &Shared, request: &Request) -> bool {
    let Some(token) = &shared.token else { return true };
    let by_path = request
        .uri()
        .path()
        .strip_prefix("/token/")
        .and_then(|rest| rest.split('/').next());
    let by_head = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let by_head = by_head.and_then(|text| text.strip_prefix("Bearer "));
    let is_right = |given: &str| bool::from(given.as_bytes().ct_eq(token.as_bytes()));
    by_head.or(by_path).is_some_and(is_right)
}

fn answer(result: Result<impl Serialize, String>) -> Response {
    match result {
        Ok(answer) => match serde_json::to_vec(&answer) {
            Ok(bytes) => ([(header::CONTENT_TYPE, "application/json")], bytes).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        },
        Err(reason) => {
            tracing::warn!(reason, "a body that cannot be read");
            (StatusCode::BAD_REQUEST, reason).into_response()
        }
    }
}

async fn hold(State(shared): State<Shared>, body: Bytes) -> Response {
    let patience = Duration::from_secs(u64::from(shared.server.patience_s));
    // In shadow mode no gate would be lifted.
    let is_alive = !shared.is_shadow && shared.view.last(patience).is_some();
    let reviewed = webhook::review(&body, &shared.settings, is_alive, &shared.view.let_go);
    if reviewed
        .as_ref()
        .is_ok_and(|review| review["response"]["patch"].is_string())
    {
        shared.arrivals.notify_one();
    }
    answer(reviewed)
}

async fn gone() -> Response {
    tracing::warn!("{NO_EXTENDER}");
    (StatusCode::GONE, NO_EXTENDER).into_response()
}

async fn when(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Response {
    match shared.forecasts.answer(&query.unwrap_or_default()) {
        Some(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let text = shared
        .metrics
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
