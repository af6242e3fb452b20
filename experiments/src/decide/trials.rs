//! The later steps: policies on parts of the list, in the site as its twin has it.

use std::fs;
use std::path::{Path, PathBuf};

use pleach_distill::DistillConfig;
use pleach_distill::search::SearchConfig;
use pleach_env::batch_system::BatchSystem;
use pleach_env::workload::Workload;
use pleach_env::{EnvConfig, SimConfig, Source};

use super::Parts;
use super::found::TwinStep;
use super::site::{ARTEFACT_BYTES_MAX, FORMULA, PROMISE, Say, Site, TREE, flags_of, step};
use super::verdict::Choice;
use crate::distill::search::{SearchInput, search_tree, state_file};
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::day::DAY_S;
use crate::evaluate::day::Day;
use crate::evaluate::sim_config::SchedulingConfig;
use crate::evaluate::workload_source::WorkloadSource;
use crate::explain::{ExplainConfig, Question, explain};
use crate::promise::{PromiseInput, Promised, World, promise};
use crate::run_folder::atomic_file;
use crate::twin::{self, Span, Trust, Under, UnderInput, under};

/// Jobs in the first part without which nothing is searched for: less than some lists of the shortest length. *Assumed.*
const JOBS_MIN: usize = 200;

/// Where policies are compared: the site as its twin has it.
pub(super) struct Trials<'a> {
    pub(super) site: &'a Site<'a>,
    workload: &'a Workload,
    parts: Parts,
    twin: &'a TwinStep,
    pub(super) scheduling: SchedulingConfig,
    sim: SimConfig,
    policy: PolicySpec,
}

impl<'a> Trials<'a> {
    /// Where policies are compared.
    pub(super) fn of(
        site: &'a Site<'a>,
        workload: &'a Workload,
        parts: Parts,
        twin: &'a TwinStep,
    ) -> Result<Trials<'a>, Error> {
        let mut scheduling = SchedulingConfig {
            estimates: Some(twin.estimates),
            ..site.config.scheduling.clone()
        };
        if twin.start_delay_s > 0.0 {
            scheduling.batch_system = Some(BatchSystem {
                start_delay_s: twin.start_delay_s,
                ..BatchSystem::default()
            });
        }
        Ok(Trials {
            site,
            workload,
            parts,
            twin,
            sim: site.sim(&scheduling, workload),
            policy: site.own_policy(&twin.policy, &workload.cluster.seen)?,
            scheduling,
        })
    }

    /// What is played, in a line.
    pub(super) fn world(&self) -> String {
        self.sim.in_words()
    }

    /// Flags of the conditions.
    pub(super) fn conditions(&self) -> String {
        let mut flags = flags_of(&SchedulingConfig {
            batch_system: None,
            ..self.scheduling.clone()
        });
        if self.twin.start_delay_s > 0.0 {
            flags += &format!(" --batch-system {}", self.site.file("delay.toml").display());
        }
        flags
    }

    fn under_command(&self, days: Option<f64>, since: f64, others: &str) -> String {
        format!(
            "pleach twin --workload {}{} --policy {}{} --under {others} --since-day {since}",
            self.site.file("list.csv").display(),
            days.map(|days| format!(" --days {days}")).unwrap_or_default(),
            self.site.place_of(&self.twin.policy),
            self.conditions()
        )
    }

    fn compare_command(&self) -> String {
        let (all, parts) = (self.site.all_candidates(), self.parts);
        self.under_command(Some(parts.choose_days), parts.learn_days, &all)
    }

    fn tree_file(&self) -> PathBuf {
        self.site.file("tree.json")
    }

    /// The command of each step, for the page.
    pub(super) fn commands(&self, strongest: &str, learned: Option<&str>) -> Vec<String> {
        let mut all = vec![self.site.import_command(), self.compare_command()];
        all.extend(learned.map(|name| match name {
            TREE => self.search_command(),
            _ => self.formula_command(),
        }));
        all.extend(self.judge_command(strongest, learned));
        all
    }

    fn under(&self, workload: &Workload, since_days: f64, others: &[PolicySpec]) -> Result<Under, Error> {
        let since_s = since_days * DAY_S;
        let input = UnderInput {
            workload,
            sim: &self.sim,
            site: &self.policy,
            others,
            span: Span::since(workload, since_s),
        };
        under(&input, self.site.watcher)
    }

    pub(super) fn compared(&self, say: Say<'_>) -> Result<Under, Error> {
        let parts = self.parts;
        say(&step(4, "candidates", &self.compare_command()))?;
        say(&self.world())?;
        let before = parts.before_judging(self.workload);
        let found = self.site.kept("compare.json", || {
            let others = self.site.candidates(&before, &self.sim, &self.policy)?;
            self.under(&before, parts.learn_days, &others)
        })?;
        say(twin::under_table(&found).to_terminal().trim_end())?;
        Ok(found)
    }

    /// Jobs in the part in which is searched.
    fn num_in_part(&self) -> usize {
        self.parts.early(self.workload).jobs.len()
    }

    /// Jobs of a list of it.
    pub(super) fn num_jobs_learned(&self) -> usize {
        let given = self.site.config.search.num_jobs;
        given.unwrap_or((self.num_in_part() / 8).clamp(20, 200))
    }

    fn search_command(&self) -> String {
        let (site, search) = (self.site, self.site.config.search);
        format!(
            "pleach distill --search --workload {} --num-jobs {} --simulations {} --leaves {} --accept-lists {}{} --seed {} --out {}",
            site.file("learn.csv").display(),
            self.num_jobs_learned(),
            search.simulations,
            search.leaves,
            search.accept_lists,
            self.conditions(),
            site.config.seed,
            site.file("search").display()
        )
    }

    /// Why nothing is searched for, where that is so.
    pub(super) fn no_search(&self) -> Option<&'static str> {
        let search = self.site.config.search;
        let is_believed = !matches!(self.twin.trust, None | Some(Trust::No));
        match self.twin.trust {
            _ if search.simulations == 0 => Some("simulations is 0"),
            _ if self.num_in_part() < JOBS_MIN => {
                Some("the part in which is searched has fewer than 200 jobs")
            }
            _ if !is_believed && !search.without_twin => {
                Some("nothing is learned from a list whose twin is not believable (search.without_twin)")
            }
            Some(Trust::NoQueue) => Some("no job waits"),
            _ => None,
        }
    }

    /// The tree; none where nothing is searched for.
    pub(super) fn searched(&self, say: Say<'_>) -> Result<Option<PolicySpec>, Error> {
        let site = self.site;
        say(&step(5, "the search for a tree", &self.search_command()))?;
        if let Some(reason) = self.no_search() {
            say(&format!("left out: {reason}"))?;
            return Ok(None);
        }
        if !self.tree_file().is_file() {
            self.search()?;
        }
        // Also where a run was killed between the tree and this.
        let state = state_file(site.folder);
        fs::remove_file(&state).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(Error::io("remove", &state, error)),
        })?;
        let spec = DOOR.open_one(&format!("{TREE}={}", self.tree_file().display()))?;
        let text = atomic_file::read_text(&site.file("search.md"), ARTEFACT_BYTES_MAX)?;
        let num_leaves = spec.tree_policy().map_or(0, |policy| policy.tree().num_leaves());
        let found = text.lines().last().unwrap_or_default();
        say(&format!(
            "a tree of {num_leaves} leaves; what the search changed was {found}"
        ))?;
        Ok(Some(spec))
    }

    /// Where is searched: the first part.
    ///
    /// # Errors
    /// A list that cannot be used, here and not after some minutes.
    pub(super) fn env_learned(&self) -> Result<EnvConfig, Error> {
        let source = WorkloadSource {
            num_jobs: Some(self.num_jobs_learned() as u32),
            ..WorkloadSource::of(&self.site.file("learn.csv").display().to_string())
        };
        let env = source.env(&self.scheduling)?;
        Source::open(&env)?;
        Ok(env)
    }

    fn search(&self) -> Result<(), Error> {
        let (site, search) = (self.site, self.site.config.search);
        let env = self.env_learned()?;
        let input = SearchInput {
            config: SearchConfig {
                simulations: search.simulations,
                leaves_max: search.leaves,
                ..SearchConfig::default()
            },
            accept_lists: search.accept_lists,
            teacher: None,
            distill: DistillConfig::default(),
            trees: Vec::new(),
            against: Vec::new(),
            deals: false,
        };
        let state = state_file(site.folder);
        let found = search_tree(&env, &input, site.config.seed, &state, site.watcher)?;
        let report = format!(
            "{}\n{}\n",
            found.report.markdown().trim_end(),
            found.report.verdict
        );
        atomic_file::write(&site.file("search.md"), report.as_bytes())?;
        atomic_file::write(&site.file("tree.txt"), found.tree.to_text().as_bytes())?;
        // Last of all: it says that the search is over.
        atomic_file::write(&self.tree_file(), found.tree.to_json().as_bytes())
    }

    /// Where what was learned here is opened.
    fn place_of_learned(&self, name: &str) -> String {
        let file = if name == TREE {
            self.tree_file()
        } else {
            self.formula_file()
        };
        format!("{name}={}", file.display())
    }

    /// Which of what was learned goes on beside what was chosen: of those that pass the one with the least mean completion time.
    pub(super) fn chosen(
        &self,
        learned: Vec<PolicySpec>,
        choice: &Choice,
        say: Say<'_>,
    ) -> Result<Option<PolicySpec>, Error> {
        let (parts, strongest) = (self.parts, choice.policy.as_str());
        let places = learned.iter().map(|own| self.place_of_learned(own.name()));
        let others: Vec<String> = places.chain([self.site.place_of(strongest)]).collect();
        let command = self.under_command(Some(parts.choose_days), parts.learn_days, &others.join(","));
        say(&step(6, "which goes on", &command))?;
        let before = parts.before_judging(self.workload);
        let found = self.site.kept("choose.json", || {
            let mut others = learned.clone();
            others.extend(self.strongest(strongest)?);
            self.under(&before, parts.learn_days, &others)
        })?;
        let jct = |name: &str| found.row(name).map_or(f64::INFINITY, |row| row.avg_jct_s);
        let mut best: Option<PolicySpec> = None;
        for own in learned {
            let name = own.name();
            let ratio = jct(name) / jct(strongest);
            let goes_on = choice.gives_way(&found, name);
            say(&match (goes_on, ratio < 1.0) {
                (true, _) => {
                    format!("the {name} is at {ratio:.3} of {strongest} where is chosen and may go on")
                }
                (false, true) => format!(
                    "the {name} is at {ratio:.3} of {strongest} where is chosen, but worse than {} in p99, slowdown or fairness",
                    self.policy.name()
                ),
                (false, false) => format!(
                    "the {name} is no gain: {strongest} is {:.1} % ahead where is chosen",
                    100.0 * (ratio - 1.0)
                ),
            })?;
            if goes_on && best.as_ref().is_none_or(|best| jct(name) < jct(best.name())) {
                best = Some(own);
            }
        }
        Ok(best)
    }

    /// The candidate that was chosen, where it is not the site's own policy.
    fn strongest(&self, name: &str) -> Result<Option<PolicySpec>, Error> {
        if name == self.policy.name() {
            return Ok(None);
        }
        Ok(Some(DOOR.open_one(&self.site.place_of(name))?))
    }

    /// The command that judges; none where nothing goes on.
    fn judge_command(&self, strongest: &str, learned: Option<&str>) -> Option<String> {
        let mut others: Vec<String> = learned
            .into_iter()
            .map(|name| self.place_of_learned(name))
            .collect();
        if strongest != self.policy.name() {
            others.push(self.site.place_of(strongest));
        }
        let since = self.parts.choose_days;
        (!others.is_empty()).then(|| self.under_command(None, since, &others.join(",")))
    }

    pub(super) fn judged(
        &self,
        learned: Option<&PolicySpec>,
        strongest: &str,
        say: Say<'_>,
    ) -> Result<Under, Error> {
        let nothing = || format!("nothing goes on beside {}", self.policy.name());
        let command = self.judge_command(strongest, learned.map(PolicySpec::name));
        say(&step(7, "the judge", &command.unwrap_or_else(nothing)))?;
        let found = self.site.kept("judge.json", || {
            let mut others: Vec<PolicySpec> = learned.cloned().into_iter().collect();
            others.extend(self.strongest(strongest)?);
            self.under(self.workload, self.parts.choose_days, &others)
        })?;
        say(twin::under_table(&found).to_terminal().trim_end())?;
        Ok(found)
    }

    /// What is promised of a policy that is to be deployed, on the days that judged.
    pub(super) fn promised(&self, name: &str) -> Result<Promised, Error> {
        let (place, file) = match name {
            TREE | FORMULA => (self.place_of_learned(name), format!("{name}.json")),
            _ => (self.site.place_of(name), self.site.deployed(name)),
        };
        let file = Path::new(&file)
            .strip_prefix(self.site.folder)
            .unwrap_or(Path::new(&file));
        self.site.kept(PROMISE, || {
            promise(&PromiseInput {
                workload: self.workload,
                sim: &self.sim,
                policy: (&DOOR.open_one(&place)?, &file.display().to_string()),
                before: (&self.policy, &self.site.place_of(self.policy.name())),
                span: Span::since(self.workload, self.parts.choose_days * DAY_S),
                world: &World {
                    seed: self.site.config.seed,
                    scheduling: self.scheduling.clone(),
                },
            })
        })
    }

    /// Where the tree and another policy part, on the days in which was chosen: what was chosen where that answers decision by
    /// decision, else the site's policy.
    pub(super) fn explained(&self, strongest: &str, say: Say<'_>) -> Result<String, Error> {
        // A planner chooses among no candidates: what it would have done here in place of the tree cannot be asked.
        let is_planner = strongest == self.policy.name() && self.policy.is_planner();
        let strongest = if is_planner { "easy" } else { strongest };
        let (site, parts) = (self.site, self.parts);
        let place = site.place_of(strongest);
        let rival = match DOOR.open_one(&place)?.is_planner() {
            true if self.policy.is_planner() => return Ok(String::new()),
            true => self.policy.name().to_owned(),
            false => place,
        };
        let list = site.file("list.csv");
        let days = ((parts.choose_days - parts.learn_days) * 10.0).round() / 10.0;
        let command = format!(
            "pleach explain {} --against {rival} --workload {} --from-day {} --days {days}{}",
            self.tree_file().display(),
            list.display(),
            parts.learn_days,
            self.conditions()
        );
        say(&step(8, "what the tree does", &command))?;
        let path = site.file("explain.txt");
        if !path.is_file() {
            let config = ExplainConfig {
                tree: self.tree_file().display().to_string(),
                workload: WorkloadSource {
                    from_day: Some(Day::Number(parts.learn_days)),
                    days: Some(days),
                    ..WorkloadSource::of(&list.display().to_string())
                },
                scheduling: self.scheduling.clone(),
                seed: site.config.seed,
            };
            let question = Question::Against(rival);
            let answer = explain(&config, &question, &mut |_| {})?;
            atomic_file::write(&path, answer.to_string().as_bytes())?;
        }
        let text = atomic_file::read_text(&path, ARTEFACT_BYTES_MAX)?;
        say(text.lines().next().unwrap_or_default())?;
        Ok(text)
    }
}
