//! What all requests share: settings, the token, the last view.

use std::sync::{Arc, Mutex};

use pleach_daemon::files;
use pleach_daemon::forecasts::Served;
use tokio::sync::{Notify, Semaphore};

use crate::config::{ServerSettings, Settings};
use crate::error::Error;
use crate::view::View;

/// Largest token file, bytes.
const TOKEN_MAX: u64 = 1024;

/// What all requests share.
#[derive(Clone, Debug)]
pub struct Shared {
    pub(super) settings: Arc<Settings>,
    pub(super) server: Arc<ServerSettings>,
    pub(super) token: Option<Arc<str>>,
    pub(super) view: View,
    pub(super) metrics: Arc<Mutex<String>>,
    pub(super) requests: Arc<Semaphore>,
    pub(super) is_shadow: bool,
    pub(super) arrivals: Arc<Notify>,
    pub(super) forecasts: Served,
}

impl Shared {
    /// Reads the token.
    ///
    /// # Errors
    /// Settings without a server, a token that is too short or has other letters.
    pub fn new(
        settings: &Settings,
        view: View,
        metrics: Arc<Mutex<String>>,
        is_shadow: bool,
    ) -> Result<Option<Shared>, Error> {
        let Some(server) = &settings.server else {
            return Ok(None);
        };
        let token = server.token.as_ref().map(|path| -> Result<Arc<str>, Error> {
            let text = files::text(path, TOKEN_MAX)?;
            let token = text.trim();
            let is_plain = token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
            match is_plain && (32..=512).contains(&token.len()) {
                true => Ok(token.into()),
                false => Err(Error::Text {
                    path: path.clone(),
                    reason:
                        "a token has 32 to 512 letters, digits, - or _; for example of `openssl rand -hex 32`"
                            .into(),
                }),
            }
        });
        Ok(Some(Shared {
            settings: Arc::new(settings.clone()),
            server: Arc::new(server.clone()),
            token: token.transpose()?,
            view,
            metrics,
            requests: Arc::new(Semaphore::new(server.requests_max)),
            is_shadow,
            arrivals: Arc::default(),
            forecasts: Served::default(),
        }))
    }

    /// The same with forecasts of starts.
    #[must_use]
    pub fn with_forecasts(self, forecasts: Served) -> Shared {
        Shared { forecasts, ..self }
    }

    /// Notified when the webhook has held a pod.
    #[must_use]
    pub fn arrivals(&self) -> Arc<Notify> {
        Arc::clone(&self.arrivals)
    }
}
