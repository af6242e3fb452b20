//! Why a tree or a formula did what it did, on a list of jobs that is simulated: one decision in words, why a job was passed over and what
//! would have had to differ, and where a tree and a heuristic part.
//!
//! The list is simulated from its start under the tree, so a decision has the same number in every question; numbers count the
//! points at which there was something to choose, from 1.

mod against;
mod decision;
mod formula;
mod replay;
mod subject;
mod why_not;

use std::fmt;

use serde::Serialize;

pub use against::{Difference, Differences};
pub use decision::{DecisionReport, RivalReport};
pub use formula::FormulaReport;
pub use subject::{ExplainConfig, Moment};
pub use why_not::WhyNotReport;

use self::formula::Asked;
use self::subject::{ListOf, Subject, Told};
use crate::door::DOOR;
use crate::error::Error;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Why this job was started when it was.
    Job(String),
    /// Why this decision.
    Decision(Moment),
    /// Why the first decision in which a job overtook one that waited longer.
    Overtaking,
    /// Why this job was passed over: the first time, or at a decision.
    WhyNot(String, Option<Moment>),
    /// Where this heuristic would have done something else.
    Against(String),
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// One decision.
    Decision(Box<DecisionReport>),
    /// A job that was passed over, or was not.
    WhyNot(Box<WhyNotReport>),
    /// The decisions of a list against a heuristic's.
    Against(Box<Differences>),
    /// One decision of a formula.
    Formula(Box<FormulaReport>),
    /// There is nothing to explain.
    Nothing {
        /// Why not.
        reason: String,
    },
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Decision(report) => report.fmt(out),
            Answer::WhyNot(report) => report.fmt(out),
            Answer::Against(report) => report.fmt(out),
            Answer::Formula(report) => report.fmt(out),
            Answer::Nothing { reason } => out.write_str(reason),
        }
    }
}

/// Answers a question; `note` receives what importers mended.
///
/// # Errors
/// [`Error::Problem`] for a policy that is no tree, a list that is not one, a job or a decision that is not there; files that
/// cannot be used.
pub fn explain(
    config: &ExplainConfig,
    question: &Question,
    note: &mut dyn FnMut(String),
) -> Result<Answer, Error> {
    let opened = DOOR.open(&config.tree)?;
    let formula = opened
        .iter()
        .find_map(|spec| Some((spec, spec.formula_policy()?)));
    if let Some((spec, policy)) = formula {
        let asked = match question {
            Question::Job(name) => Asked {
                job: Some(name),
                is_start: true,
                ..Asked::default()
            },
            Question::WhyNot(name, moment) => Asked {
                job: Some(name),
                moment: *moment,
                ..Asked::default()
            },
            Question::Decision(moment) => Asked {
                moment: Some(*moment),
                ..Asked::default()
            },
            Question::Overtaking => Asked::default(),
            Question::Against(name) => {
                let hint = "pleach evaluate compares the two.";
                return Err(Error::config("against", name, "none beside a formula", hint));
            }
        };
        let found = formula::answer(&ListOf::open(config, spec, note)?, policy, asked)?;
        return Ok(of(found, Answer::Formula));
    }
    let subject = Subject::open(config, note)?;
    Ok(match question {
        Question::Job(name) => of(decision::of_job(&subject, name)?, Answer::Decision),
        Question::Decision(moment) => of(decision::at(&subject, *moment)?, Answer::Decision),
        Question::Overtaking => of(decision::overtaking(&subject)?, Answer::Decision),
        Question::WhyNot(name, moment) => of(why_not::answer(&subject, name, *moment)?, Answer::WhyNot),
        Question::Against(name) => Answer::Against(Box::new(against::answer(&subject, name)?)),
    })
}

fn of<R>(told: Told<R>, answer: impl Fn(Box<R>) -> Answer) -> Answer {
    match told {
        Told::Report(report) => answer(report),
        Told::Nothing { reason } => Answer::Nothing { reason },
    }
}
