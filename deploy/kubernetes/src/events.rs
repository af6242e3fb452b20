//! What a user of the cluster sees with `kubectl describe`: Events on a job's first pod and on its Job, when where it stands changes.
//!
//! Events are courtesy: they are sent beside the rounds, at most `SENT_MAX` at once and `PER_S` a second, and what is refused is dropped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use pleach_daemon::forecasts::News;
use pleach_daemon::snapshot::{JobSeen, Phase};
use pleach_scheduler::ExternalId;
use pleach_scheduler::tree::span;
use pleach_site::starts::Forecast;

use crate::api::Cluster;
use crate::job_pods::JobPods;
use crate::names;
use crate::observe::Observed;

/// Most events at once; the others come later, if they are still true. *Ours*.
const SENT_MAX: i64 = 100;
/// Events a second beyond these. *Ours*: each is a write of the API server, as those that start a job are.
const PER_S: i64 = 10;
/// The place of a job that still waits is shown again after so long, if it has changed, s. *Ours*.
const AGAIN_S: i64 = 600;
/// Longest message, letters: the API server takes 1,024 bytes.
const MESSAGE_MAX: usize = 250;
/// An hour, s.
const HOUR_S: i64 = 3600;

/// What was said of jobs.
#[derive(Debug, Default)]
pub struct Events {
    said: BTreeMap<ExternalId, Said>,
    /// Events that were sent and not made up for by time, and until when that is counted, Unix time, s.
    sent: (i64, i64),
    /// Whether those of the last round are still under way.
    is_sending: Arc<AtomicBool>,
    /// Whether the API server refuses them.
    is_refused: Arc<AtomicBool>,
}

/// What was last said of a job.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    what: What,
    /// Its place among those that wait.
    place: usize,
    at_s: i64,
    /// How often the same was said.
    num: u32,
}

/// Where a job stands, for its user.
#[derive(Clone, Debug, PartialEq)]
enum What {
    Waits,
    Held(String),
    Started,
    Left(String),
}

impl What {
    /// The reason of the event, in the API's form.
    fn reason(&self) -> &'static str {
        match self {
            What::Waits => "PleachWaits",
            What::Held(_) => "PleachHeld",
            What::Started => "PleachStarted",
            What::Left(_) => "PleachLeft",
        }
    }
}

impl Events {
    /// Events of what has changed since the last look, and a note where they cannot be written.
    pub fn changes(&mut self, observed: &Observed) -> (Vec<Event>, Option<String>) {
        if self.is_refused.load(Ordering::Relaxed) {
            let note = "users see no Events: this program may not create them (deploy/kubernetes/deploy/shadow/rbac.yaml)";
            return (Vec::new(), Some(note.into()));
        }
        let now_s = observed.snapshot.taken_s;
        let jobs = &observed.snapshot.jobs;
        self.said.retain(|id, _| observed.jobs.contains_key(id));
        let num_waiting = jobs.iter().filter(|job| job.phase == Phase::Waiting).count();
        let (mut events, mut place) = (Vec::new(), 0);
        let (sent, since_s) = self.sent;
        let made_up = now_s.saturating_sub(since_s).clamp(0, SENT_MAX) * PER_S;
        let mut num_sent = (sent - made_up).max(0);
        // Jobs are listed by arrival.
        for job in jobs {
            place += usize::from(job.phase == Phase::Waiting);
            let Some(pods) = observed.jobs.get(&job.id) else {
                continue;
            };
            let before = self.said.get(&job.id);
            let Some(what) = what(job, before.map(|said| &said.what)) else {
                continue;
            };
            let num = match before {
                None => 0,
                Some(said) if said.what != what => 0,
                Some(said) if what == What::Waits && said.place != place && now_s - said.at_s >= AGAIN_S => {
                    said.num + 1
                }
                Some(_) => continue,
            };
            if num_sent >= SENT_MAX || self.is_sending.load(Ordering::Relaxed) {
                break;
            }
            let message = message(&what, (job, pods), (place, num_waiting), now_s);
            let of_job = of_objects(pods, what.reason(), num, &message, now_s);
            num_sent += of_job.len() as i64;
            events.extend(of_job);
            let at_s = now_s;
            self.said.insert(
                job.id,
                Said {
                    what,
                    place,
                    at_s,
                    num,
                },
            );
        }
        self.sent = (num_sent, now_s);
        (events, None)
    }

    /// Whether those of the last round are still under way.
    #[must_use]
    pub fn are_sent(&self) -> bool {
        !self.is_sending.load(Ordering::Relaxed)
    }

    /// Sends events beside the rounds.
    pub fn send(&self, cluster: &Cluster, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let (cluster, is_sending, is_refused) = (
            cluster.clone(),
            Arc::clone(&self.is_sending),
            Arc::clone(&self.is_refused),
        );
        is_sending.store(true, Ordering::Relaxed);
        tokio::spawn(async move {
            for event in events {
                let sent = cluster.tell(&event).await;
                if sent.is_err_and(|error| error.code() == Some(403)) {
                    is_refused.store(true, Ordering::Relaxed);
                    break;
                }
            }
            is_sending.store(false, Ordering::Relaxed);
        });
    }
}

/// What is new of when a job would start. The same bucket in the same hour has the same name, so that a controller that begins anew
/// says nothing twice.
#[must_use]
pub fn of_forecast(pods: &JobPods, news: &News, now_s: i64) -> Vec<Event> {
    let Forecast {
        at_once,
        median_s,
        within_s: [from_s, to_s],
    } = news.forecast;
    let bucket = news.forecast.bucket();
    let message = format!(
        "Median wait {}: {} from now, 80 % between {} and {}, {:.0} % at once.",
        bucket.name(),
        span(median_s),
        span(from_s),
        span(to_s),
        100.0 * at_once
    );
    let hours = now_s / HOUR_S;
    let num = u32::try_from(hours * 8).unwrap_or(0) + bucket.0 as u32;
    of_objects(pods, "PleachForecast", num, &message, now_s)
}

/// Where a job stands, if its user is to hear of it: what never waited here is nothing new.
fn what(job: &JobSeen, before: Option<&What>) -> Option<What> {
    match &job.phase {
        Phase::Waiting => Some(What::Waits),
        Phase::Blocked { reason } => Some(What::Held(reason.clone())),
        Phase::Released { .. } => Some(What::Started),
        Phase::Running => before.map(|_| What::Started),
        Phase::Foreign { reason } => before.map(|_| What::Left(reason.clone())),
        Phase::Loose => None,
    }
}

fn message(
    what: &What,
    (job, pods): (&JobSeen, &JobPods),
    (place, num_waiting): (usize, usize),
    now_s: i64,
) -> String {
    let waited_s = now_s.saturating_sub(job.submit_s).max(0);
    let text = match what {
        What::Waits => format!(
            "Waits for {} GPUs: number {place} of {num_waiting} jobs that wait, by arrival. The policy may start later ones first.",
            job.num_gpus()
        ),
        What::Held(reason) => format!("Held: {reason}."),
        What::Started => {
            let seats = pods.seats.iter().map(|(unit, num)| format!("{unit} ({num})"));
            let seats: Vec<String> = seats.collect();
            format!(
                "Starts after {waited_s} s; pods on each node: {}.",
                seats.join(", ")
            )
        }
        What::Left(reason) => format!("Left to kube-scheduler: it {reason}."),
    };
    text.chars().take(MESSAGE_MAX).collect()
}

/// The event on the first pod and on its Job. The name is the same for the same news, so that a controller that begins anew says
/// nothing twice.
fn of_objects(pods: &JobPods, reason: &str, num: u32, message: &str, now_s: i64) -> Vec<Event> {
    let Some(pod) = pods.pods.first() else {
        return Vec::new();
    };
    let reference = |api_version: &str, kind: &str, name: &str, uid: &str| ObjectReference {
        api_version: Some(api_version.into()),
        kind: Some(kind.into()),
        name: Some(name.into()),
        namespace: Some(pod.namespace.clone()),
        uid: Some(uid.into()),
        ..ObjectReference::default()
    };
    let job = pod.labels.get(names::JOB_NAME).zip(pod.owner.as_ref());
    let job = job.map(|(name, uid)| reference("batch/v1", "Job", name, uid));
    let of_pod = reference("v1", "Pod", &pod.name, &pod.uid);
    let objects: Vec<ObjectReference> = match pods.is_made {
        true => std::iter::once(of_pod).chain(job).collect(),
        false => pods
            .owners
            .iter()
            .map(|owner| {
                reference(
                    &owner.kind.api_version(),
                    owner.kind.kind,
                    &owner.name,
                    &owner.uid,
                )
            })
            .collect(),
    };
    let event = |of: ObjectReference| event(of, reason, num, message, now_s);
    objects.into_iter().map(event).collect()
}

/// A warning on the Lease of the controller: the fallback decides from now on.
#[must_use]
pub fn of_lease((namespace, name): (&str, &str), news: &str, now_s: i64) -> Event {
    let of = ObjectReference {
        api_version: Some("coordination.k8s.io/v1".into()),
        kind: Some("Lease".into()),
        name: Some(name.into()),
        namespace: Some(namespace.into()),
        ..ObjectReference::default()
    };
    let message: String = news.chars().take(MESSAGE_MAX).collect();
    let num = u32::try_from(now_s).unwrap_or_default();
    Event {
        type_: Some("Warning".into()),
        ..event(of, "PleachFallsBack", num, &message, now_s)
    }
}

fn event(of: ObjectReference, reason: &str, num: u32, message: &str, now_s: i64) -> Event {
    let (name, uid) = (
        of.name.clone().unwrap_or_default(),
        of.uid.clone().unwrap_or_default(),
    );
    let short: String = uid.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    // Names of objects have at most 253 letters.
    let name: String = name.chars().take(190).collect();
    let time = Timestamp::from_second(now_s).ok().map(Time);
    Event {
        metadata: ObjectMeta {
            name: Some(format!(
                "{name}.{}-{num}.{}",
                reason.to_ascii_lowercase(),
                // A Lease is named without its number.
                match short.as_str() {
                    "" => "0".into(),
                    short => short.to_ascii_lowercase(),
                }
            )),
            namespace: of.namespace.clone(),
            ..ObjectMeta::default()
        },
        involved_object: of,
        reason: Some(reason.into()),
        message: Some(message.into()),
        type_: Some("Normal".into()),
        source: Some(EventSource {
            component: Some("pleach".into()),
            host: None,
        }),
        first_timestamp: time.clone(),
        last_timestamp: time,
        count: Some(1),
        ..Event::default()
    }
}
