//! What a running daemon serves under `/v1/when`, in the words of an answer.

use pleach_site::starts::{self, Request, Starts};
use pleach_tables::is_printable;
use serde_json::Value;

use super::words::held_words;
use super::{Ask, Forecast, best};
use crate::error::Error;
use crate::evaluate::metric::show_seconds;

/// An answer of a daemon: its file of forecasts, of one job or of requests, with what it knows beside them.
#[derive(Clone, Debug)]
pub struct Served {
    starts: Starts,
    age_s: u64,
    is_fresh: bool,
    /// All of it, as it came.
    pub body: Value,
}

fn forecast(of: starts::Forecast, what: String) -> Forecast {
    let ([from_s, to_s], median_s) = (of.within_s, of.median_s);
    Forecast {
        what,
        at_once: of.at_once,
        median_s,
        within_s: of.within_s,
        // No other levels are served.
        quantiles_s: [
            from_s, from_s, from_s, median_s, median_s, median_s, to_s, to_s, to_s,
        ],
    }
}

fn of_request(request: &Request) -> Forecast {
    let ask = Ask {
        gpus: request.gpus,
        time_s: request.time_s,
        ..Ask::default()
    };
    forecast(request.forecast, ask.words())
}

/// Its limit, s; without one longer than any.
fn most_s(request: &Request) -> f64 {
    request.time_s.unwrap_or(f64::INFINITY)
}

impl Served {
    /// What stands in the body of an answer.
    ///
    /// # Errors
    /// What no daemon serves, in words.
    pub fn read(body: &[u8]) -> Result<Served, String> {
        let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let mut of_file = body.clone();
        let mut beside = |key: &str| of_file.as_object_mut().and_then(|keys| keys.remove(key));
        let (age_s, is_fresh) = (beside("age_s"), beside("is_fresh"));
        // It follows from the median.
        beside("bucket");
        let age_s = age_s.and_then(|value| value.as_u64()).ok_or("no age_s")?;
        let is_fresh = is_fresh.and_then(|value| value.as_bool()).ok_or("no is_fresh")?;
        let starts: Starts = serde_json::from_value(of_file).map_err(|error| error.to_string())?;
        starts.check()?;
        if !is_printable(&starts.policy) {
            return Err("the name of its policy cannot be printed".into());
        }
        Ok(Served {
            starts,
            age_s,
            is_fresh,
            body,
        })
    }

    /// One screen of plain words about a job that waits, or about the least usual request that is as large and as long as what is asked.
    ///
    /// # Errors
    /// Nothing like it is served.
    pub fn words(&self, ask: &Ask) -> Result<String, Error> {
        let mut lines = match &ask.job {
            Some(id) => {
                let of = self.starts.jobs.get(id).ok_or_else(|| {
                    let hint = "It may be new: forecasts are made each minute.";
                    Error::config("job", id, "a job that waits and has a forecast", hint)
                })?;
                vec![format!("job {id}: {}", forecast(*of, String::new()).line())]
            }
            None => self.of_request(ask)?,
        };
        let age = show_seconds(self.age_s as f64);
        lines.push(match self.is_fresh {
            true => format!("forecast {age} ago"),
            false => format!("forecast {age} ago: too old to go by, the forecaster may have stopped"),
        });
        lines.push(held_words(self.starts.held, self.starts.num_held));
        lines.push(match self.starts.method.as_str() {
            "replay" => format!("how: the queue is replayed under {}", self.starts.policy),
            "trees" => "how: history by the state of the queue".into(),
            _ => "how: plain history".into(),
        });
        Ok(lines.join("\n"))
    }

    fn of_request(&self, ask: &Ask) -> Result<Vec<String>, Error> {
        let longest_s = ask.time_s.unwrap_or(f64::INFINITY);
        let holds = |request: &&Request| request.gpus >= ask.gpus && most_s(request) >= longest_s;
        let found = self.starts.requests.iter().filter(holds).min_by(|one, other| {
            let by_time = most_s(one).total_cmp(&most_s(other));
            one.gpus.cmp(&other.gpus).then(by_time)
        });
        let found = found.ok_or_else(|| {
            let most = self.starts.requests.iter().map(|request| request.gpus).max();
            let allowed = format!("1 to {}", most.unwrap_or(0));
            Error::config("gpus", ask.gpus, allowed, "No job here had more.")
        })?;
        let is_less = |other: &&Request| {
            let is_same = (other.gpus, other.time_s) == (found.gpus, found.time_s);
            !is_same && other.gpus <= found.gpus && most_s(other) <= most_s(found)
        };
        let others = self.starts.requests.iter().filter(is_less).map(of_request);
        let of = of_request(found);
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
