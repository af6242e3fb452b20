//! What a running daemon serves under `/v1/when`, in the words of an answer.

use std::collections::BTreeMap;

use pleach_forecast::learn::Method;
use pleach_tables::is_printable;
use serde::{Deserialize, Serialize};

use super::words::held_words;
use super::{Ask, Forecast, best};
use crate::error::Error;
use crate::evaluate::metric::show_seconds;

/// Longest wait that is believed, s, as in `deploy/daemon/src/starts.rs`.
const WAIT_S_MAX: f64 = 1e9;

/// A forecast as it is served.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Told {
    at_once: f64,
    median_s: f64,
    within_s: [f64; 2],
}

/// A usual request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Request {
    gpus: u32,
    time_s: Option<f64>,
    forecast: Told,
}

/// An answer of a daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Served {
    method: Method,
    policy: String,
    held: f64,
    num_held: usize,
    age_s: u64,
    is_fresh: bool,
    jobs: BTreeMap<String, Told>,
    requests: Vec<Request>,
}

impl Told {
    fn forecast(self, what: String) -> Forecast {
        let ([from_s, to_s], median_s) = (self.within_s, self.median_s);
        Forecast {
            what,
            at_once: self.at_once,
            median_s,
            within_s: self.within_s,
            // No other levels are served.
            quantiles_s: [
                from_s, from_s, from_s, median_s, median_s, median_s, to_s, to_s, to_s,
            ],
        }
    }

    fn is_well(&self) -> bool {
        let [from_s, to_s] = self.within_s;
        let waits = [0.0, from_s, self.median_s, to_s, WAIT_S_MAX];
        (0.0..=1.0).contains(&self.at_once) && waits.is_sorted()
    }
}

impl Request {
    fn forecast(&self) -> Forecast {
        let ask = Ask {
            gpus: self.gpus,
            time_s: self.time_s,
            ..Ask::default()
        };
        self.forecast.forecast(ask.words())
    }

    /// Its limit, s; without one longer than any.
    fn most_s(&self) -> f64 {
        self.time_s.unwrap_or(f64::INFINITY)
    }
}

impl Served {
    /// What stands in the body of an answer.
    ///
    /// # Errors
    /// What no daemon serves, in words.
    pub fn read(body: &[u8]) -> Result<Served, String> {
        let served: Served = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let requests = served.requests.iter().map(|request| &request.forecast);
        let are_well = served.jobs.values().chain(requests).all(Told::is_well);
        let times = served.requests.iter().filter_map(|request| request.time_s);
        let is_well = are_well
            && (0.0..=1.0).contains(&served.held)
            && times
                .into_iter()
                .all(|time_s| (0.0..=WAIT_S_MAX).contains(&time_s))
            && is_printable(&served.policy);
        match is_well {
            true => Ok(served),
            false => Err("a number or a name is none that a daemon serves".into()),
        }
    }

    /// One screen of plain words about a job that waits, or about the least usual request that is as large and as long as what is asked.
    ///
    /// # Errors
    /// Nothing like it is served.
    pub fn words(&self, ask: &Ask) -> Result<String, Error> {
        let mut lines = match &ask.job {
            Some(id) => {
                let told = self.jobs.get(id).ok_or_else(|| {
                    let hint = "It may be new: forecasts are made each minute.";
                    Error::config("job", id, "a job that waits and has a forecast", hint)
                })?;
                vec![format!("job {id}: {}", told.forecast(String::new()).line())]
            }
            None => self.of_request(ask)?,
        };
        let age = show_seconds(self.age_s as f64);
        lines.push(match self.is_fresh {
            true => format!("forecast {age} ago"),
            false => format!("forecast {age} ago: too old to go by, the forecaster may have stopped"),
        });
        lines.push(held_words(self.held, self.num_held));
        lines.push(match self.method {
            Method::Replay => format!("how: the queue is replayed under {}", self.policy),
            Method::Trees => "how: history by the state of the queue".into(),
            Method::History => "how: plain history".into(),
        });
        Ok(lines.join("\n"))
    }

    fn of_request(&self, ask: &Ask) -> Result<Vec<String>, Error> {
        let most_s = ask.time_s.unwrap_or(f64::INFINITY);
        let holds = |request: &&Request| request.gpus >= ask.gpus && request.most_s() >= most_s;
        let found = self.requests.iter().filter(holds).min_by(|one, other| {
            let by_time = one.most_s().total_cmp(&other.most_s());
            one.gpus.cmp(&other.gpus).then(by_time)
        });
        let found = found.ok_or_else(|| {
            let most = self.requests.iter().map(|request| request.gpus).max();
            let allowed = format!("1 to {}", most.unwrap_or(0));
            Error::config("gpus", ask.gpus, allowed, "No job here had more.")
        })?;
        let is_less = |other: &&Request| {
            let is_same = (other.gpus, other.time_s) == (found.gpus, found.time_s);
            !is_same && other.gpus <= found.gpus && other.most_s() <= found.most_s()
        };
        let others = self.requests.iter().filter(is_less).map(Request::forecast);
        let of = found.forecast();
        let mut lines = vec![format!("{}: {}", of.what, of.line())];
        let others = best(&of, others.collect());
        lines.extend(
            others
                .iter()
                .map(|other| format!("  instead {}: {}", other.what, other.line())),
        );
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(median_s: f64) -> String {
        format!(
            r#"{{"at_once":0.1,"median_s":{median_s:?},"within_s":[0.0,{:?}]}}"#,
            2.0 * median_s
        )
    }

    fn body(median_s: f64) -> String {
        let requests = [(1, "3600.0", 0.0), (4, "3600.0", 7200.0), (4, "null", 14_400.0)];
        let request = |(gpus, time_s, median_s)| {
            format!(
                r#"{{"gpus":{gpus},"time_s":{time_s},"forecast":{}}}"#,
                told(median_s)
            )
        };
        let requests = requests.map(request).join(",");
        format!(
            r#"{{"version":1,"made_s":5,"method":"trees","policy":"sjf","held":0.75,"num_held":12,"jobs":{{"7":{}}},
            "requests":[{requests}],"age_s":40,"is_fresh":true,"bucket":null}}"#,
            told(median_s)
        )
    }

    fn words(gpus: u32, time_s: Option<f64>) -> Result<String, Error> {
        let ask = Ask {
            gpus,
            time_s,
            ..Ask::default()
        };
        Served::read(body(60.0).as_bytes()).unwrap().words(&ask)
    }

    #[test]
    fn a_request_is_the_least_that_holds_what_is_asked_and_what_is_less_stands_beside_it() {
        let said = words(3, Some(1800.0)).unwrap();
        assert!(said.starts_with("4 GPUs for 1.0 h: starts in 2.0 h"), "{said}");
        assert!(said.contains("instead 1 GPU for 1.0 h: starts at once"), "{said}");
        assert!(
            said.contains("forecast 40 s ago") && said.contains("75 %"),
            "{said}"
        );
        let said = words(2, None).unwrap();
        assert!(said.starts_with("4 GPUs: starts in 4.0 h"), "{said}");
        assert!(words(5, None).unwrap_err().to_string().contains("1 to 4"));
    }

    #[test]
    fn a_job_has_an_answer_of_its_own_and_what_cannot_be_is_refused() {
        let of = |id: &str| {
            let ask = Ask {
                job: Some(id.into()),
                ..Ask::default()
            };
            Served::read(body(60.0).as_bytes()).unwrap().words(&ask)
        };
        assert!(
            of("7").unwrap().starts_with("job 7: starts in 60 s"),
            "{:?}",
            of("7")
        );
        assert!(of("8").unwrap_err().to_string().contains("has a forecast"));
        for (from, to) in [
            ("\"trees\"", "\"magic\""),
            ("0.75", "7.5"),
            ("sjf", "s\\u001bf"),
            ("3600.0", "-1.0"),
        ] {
            assert!(
                Served::read(body(60.0).replace(from, to).as_bytes()).is_err(),
                "{to}"
            );
        }
        assert!(Served::read(body(-1.0).as_bytes()).is_err());
        assert!(Served::read(b"").is_err());
    }
}
