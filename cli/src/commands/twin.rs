//! `pleach twin`: a site's list as it went and as it is simulated, and as it would have gone under other policies.

use pleach_env::workload::Workload;
use pleach_env::{SimConfig, simulate_planner};
use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::day::DAY_S;
use pleach_experiments::evaluate::day::Day;
use pleach_experiments::evaluate::instances::seeds;
use pleach_experiments::twin::{
    Fit, FitInput, Span, Twin, Under, UnderInput, believed, candidates_beside, fit, is_record, sections,
    under, under_table,
};
use pleach_scheduler::cluster_spec::SiteScheduler;
use serde::Serialize;

use crate::commands::Context;
use crate::flags::TwinArgs;
use crate::progress::bars;

/// What is found beside the twin.
#[derive(Serialize)]
struct Found<'a> {
    #[serde(flatten)]
    twin: Option<&'a Twin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<&'a Fit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    under: Option<&'a Under>,
    world: String,
}

/// Simulates and compares.
///
/// # Errors
/// Flags that name nothing, a list of which nothing was observed, a simulation that fails.
pub fn run(args: &TwinArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let source = &args.workload;
    let name = source.only("simulated")?;
    let scheduling = args.scheduling.realistic_by_default();
    let mut sim = scheduling.sim(&source.workload);
    let seed = seeds(args.report.seed(), "test", 1)[0];
    let (workload, report) = source.workload(name, seed)?;
    let policies = policies(args, &workload, &sim)?;
    let since_s = since_s(args.since_day, &workload)?;
    if let Some(day) = args.since_day.filter(|_| args.under.is_empty()) {
        let hint = "It is for a comparison: give --under sjf.";
        return Err(Error::config("since_day", day, "given with --under", hint));
    }
    sim.seed = seed.0;
    if scheduling.realistic {
        sim.estimates = believed(&workload, scheduling.estimates)[0].model();
    }
    let quiet = args.report.quiet();
    if let Some(report) = report.filter(|_| !quiet) {
        context.say(report.to_string().trim_end())?;
    }
    let (site, twin, fitted) = match args.fit {
        true => {
            let (fitted, twin) = fitted(args, &workload, &sim, &policies)?;
            sim = fitted.sim(&sim);
            let site = policies.into_iter().find(|policy| policy.name() == fitted.policy);
            let site = site.ok_or_else(|| Error::Failed("the fitted policy is not there".into()))?;
            (site, Some(twin), Some(fitted))
        }
        false => {
            let site = policies[0].clone();
            // Under other policies a list may be played of which nothing was observed.
            let twin = match is_record(&workload) || args.under.is_empty() {
                true => {
                    let result = simulate_planner(&workload, &sim, site.make_planner()?.as_mut())?;
                    Some(Twin::since(&site, &workload, &sim, &result.jobs, 0.0)?)
                }
                false => None,
            };
            (site, twin, None)
        }
    };
    let other = match args.under.as_slice() {
        [] => None,
        names => Some(others(args, names, (&workload, &sim, &site), since_s)?),
    };
    if !quiet {
        context.say(&sim.in_words())?;
        if let Some(twin) = &twin {
            // Where other policies were asked for, the tables of the twin are left out.
            if other.is_none() {
                for (heading, table) in sections(twin) {
                    context.say(&format!("\n{heading}\n{}", table.to_terminal().trim_end()))?;
                }
            }
            if let Some(fitted) = &fitted {
                context.say(&format!("\n{}", fitted.line()))?;
            }
            context.say(&format!("\n{}", twin.verdict()))?;
        }
        if let Some(other) = &other {
            context.say(&format!("\n{}", under_table(other).to_terminal().trim_end()))?;
        }
    }
    match args.report.json() {
        Some(path) => context.write_json(
            path,
            &Found {
                twin: twin.as_ref(),
                fit: fitted.as_ref(),
                under: other.as_ref(),
                world: sim.in_words(),
            },
        ),
        None => Ok(()),
    }
}

/// The site's policy; with `--fit` those that it may be like.
fn policies(args: &TwinArgs, workload: &Workload, sim: &SimConfig) -> Result<Vec<PolicySpec>, Error> {
    Error::refuse_if(
        args.policy.len() > 1 && !args.fit,
        "policy",
        args.policy.join(","),
        "one policy",
        "Give --fit for the one that is most like the site, or --under for what others would have made of the jobs.",
    )?;
    let policies = match args.policy.as_slice() {
        [] => {
            let own = workload.cluster.seen.scheduler;
            vec![DOOR.open_one(own.map_or("easy", SiteScheduler::policy))?]
        }
        named => DOOR.open_all(named)?,
    };
    for policy in &policies {
        policy.check(sim.capabilities)?;
    }
    Ok(policies)
}

fn fitted(
    args: &TwinArgs,
    workload: &Workload,
    sim: &SimConfig,
    policies: &[PolicySpec],
) -> Result<(Fit, Twin), Error> {
    let input = FitInput {
        workload,
        sim,
        policies,
        estimates: &believed(workload, args.scheduling.estimates),
    };
    let (found, jobs) = fit(&input, &bars(args.report.quiet()))?;
    let policy = policies.iter().find(|policy| policy.name() == found.policy);
    let policy = policy.ok_or_else(|| Error::Failed("the fitted policy is not there".into()))?;
    let twin = Twin::since(policy, workload, &found.sim(sim), &jobs, found.until_s)?;
    Ok((found, twin))
}

/// From when on jobs are compared, s: a day of the list, else its beginning.
///
/// # Errors
/// A day on which no jobs came, or a date where the list does not say which date its day 0 is.
pub fn since_s(day: Option<Day>, workload: &Workload) -> Result<f64, Error> {
    let Some(day) = day else {
        return Ok(0.0);
    };
    let time_0 = workload.cluster.seen.time_0_unix_s;
    let last_s = workload.jobs.last().map_or(0.0, |job| job.submit.as_secs_f64());
    let mut allowed = format!("0 to {:.1}, the days of the list", last_s / DAY_S);
    if let Some(time_0) = time_0 {
        let (first, last) = (Day::Date(time_0), Day::Date(time_0 + last_s));
        allowed.push_str(&format!(", or {first} to {last}"));
    }
    let hint = match day.on_clock(time_0) {
        // The first date may begin before the list does.
        Some(at_s) if (-DAY_S..=last_s).contains(&at_s) => return Ok(at_s.max(0.0)),
        Some(_) => "Give a day on which jobs came.",
        None => "The list does not say which date its day 0 is.",
    };
    Err(Error::config("since_day", day, allowed, hint))
}

fn others(
    args: &TwinArgs,
    names: &[String],
    (workload, sim, site): (&Workload, &SimConfig, &PolicySpec),
    since_s: f64,
) -> Result<Under, Error> {
    let named: Vec<String> = names.iter().filter(|name| *name != "all").cloned().collect();
    let mut others = match named.len() == names.len() {
        true => Vec::new(),
        false => candidates_beside(workload, sim, site)?,
    };
    if !named.is_empty() {
        for policy in DOOR.open_all(&named)? {
            policy.check(sim.capabilities)?;
            policy.join(&mut others);
        }
    }
    let input = UnderInput {
        workload,
        sim,
        site,
        others: &others,
        span: Span::since(workload, since_s),
    };
    under(&input, &bars(args.report.quiet()))
}
