//! A formula of the site's own. Where jobs are stopped, GPUs are dealt anew by an order of all jobs, and the weights of that order are
//! searched for; elsewhere candidates are scored, and the whole expression is searched for ([`crate::formula_search`]).

use std::path::PathBuf;

use pleach_dealing::reference_formula;

use super::site::{ARTEFACT_BYTES_MAX, FORMULA, Say, step};
use super::trials::Trials;
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::workload_source::WorkloadSource;
use crate::formula_search::{FormulaInput, FormulaSearch, search_formula};
use crate::index_search::{IndexSearch, by_hand, by_hand_of_rest};
use crate::run_folder::atomic_file;

/// Formulas of a generation, and lists that each of them plays.
const POPULATION: usize = 12;
const LISTS: usize = 8;
/// Lists that choose among generations, as many as the command draws.
const VALIDATION_LISTS: usize = 3;

impl Trials<'_> {
    pub(super) fn formula_file(&self) -> PathBuf {
        self.site.file("formula.json")
    }

    /// The formula that the search begins with, where `pleach index --from` finds it.
    fn first_file(&self) -> PathBuf {
        self.site.file("first-formula.json")
    }

    fn index_search(&self) -> IndexSearch {
        let lists_a_generation = (POPULATION * LISTS) as u64;
        let generations = (self.site.config.search.simulations / lists_a_generation).max(1);
        IndexSearch {
            kinds: vec![self.site.file("learn.csv").display().to_string()],
            scheduling: Some(self.scheduling.clone()),
            conditions: IndexSearch::default().conditions[..1].to_vec(),
            num_jobs: self.num_jobs_learned() as u32,
            generations: u32::try_from(generations).unwrap_or(u32::MAX).min(100_000),
            population: POPULATION,
            lists: LISTS,
            validation_lists: VALIDATION_LISTS,
            seed: self.site.config.seed,
            // A window begins with what runs and waits then: empty clusters teach no queue.
            source: WorkloadSource {
                keep_running: true,
                ..WorkloadSource::default()
            },
            ..IndexSearch::default()
        }
    }

    fn formula_search(&self) -> FormulaSearch {
        let search = self.site.config.search;
        FormulaSearch {
            simulations: search.simulations,
            accept_lists: search.accept_lists,
            ..FormulaSearch::default()
        }
    }

    pub(super) fn formula_command(&self) -> String {
        if !self.scheduling.preemption {
            let search = self.formula_search();
            return format!(
                "pleach distill --search --form formula --workload {} --num-jobs {} --simulations {} --accept-lists {}{} --seed {} --out {}",
                self.site.file("learn.csv").display(),
                self.num_jobs_learned(),
                search.simulations,
                search.accept_lists,
                self.conditions(),
                self.site.config.seed,
                self.site.file("formula-search").display()
            );
        }
        let search = self.index_search();
        format!(
            "pleach index --from {} --workload {} --num-jobs {} --keep-running --generations {} --population {POPULATION} \
             --lists {LISTS}{} --seed {} --to {}",
            self.first_file().display(),
            search.kinds[0],
            search.num_jobs,
            search.generations,
            self.conditions(),
            search.seed,
            self.formula_file().display()
        )
    }

    /// The formula; none where nothing is searched for.
    pub(super) fn searched_formula(&self, say: Say<'_>) -> Result<Option<PolicySpec>, Error> {
        say(&step(5, "and for a formula", &self.formula_command()))?;
        if let Some(reason) = self.no_search() {
            say(&format!("left out: {reason}"))?;
            return Ok(None);
        }
        if !self.scheduling.preemption {
            return self.searched_expression(say).map(Some);
        }
        let gain = self.site.kept("formula-gain.json", || self.search_formula())?;
        say(&format!(
            "the search began with the best of three formulas; what it found is {:.1} % ahead of it on lists of these days",
            100.0 * gain
        ))?;
        let file = format!("{FORMULA}={}", self.formula_file().display());
        Ok(Some(DOOR.open_one(&file)?))
    }

    /// An expression that scores candidates, with what the search says of it.
    fn searched_expression(&self, say: Say<'_>) -> Result<PolicySpec, Error> {
        let file = self.formula_file();
        if !file.is_file() {
            let env = self.env_learned()?;
            let (search, input) = (self.formula_search(), FormulaInput::default());
            let found = search_formula(&env, &search, &input, self.site.config.seed, self.site.watcher)?;
            let report = format!("{}\n{}\n", found.report.markdown(), found.report.verdict);
            atomic_file::write(&self.site.file("formula.md"), report.as_bytes())?;
            // Last of all: it says that the search is over.
            atomic_file::write(&file, found.formula.to_json().as_bytes())?;
        }
        let text = atomic_file::read_text(&self.site.file("formula.md"), ARTEFACT_BYTES_MAX)?;
        let spec = DOOR.open_one(&format!("{FORMULA}={}", file.display()))?;
        let line = spec
            .formula_policy()
            .map_or(String::new(), |policy| policy.formula().text());
        let verdict = text.lines().last().unwrap_or_default();
        say(&format!("{line}; what the search changed was {verdict}"))?;
        Ok(spec)
    }

    /// By how much the best formula is ahead of the one with which the search began, on the lists that choose it, as a share. Both are
    /// written.
    fn search_formula(&self) -> Result<f64, Error> {
        let search = self.index_search();
        search.check()?;
        let first = search.best_of(vec![reference_formula()?, by_hand(), by_hand_of_rest()])?;
        atomic_file::write_json(&self.first_file(), &first)?;
        let found = search.run(&first, |_, _| {})?;
        let mut formula = found.best;
        formula.origin = format!(
            "evolution from \"{}\": seed {}, {} generations of {POPULATION} on {LISTS} lists of {} jobs of this site",
            first.origin, search.seed, search.generations, search.num_jobs
        );
        atomic_file::write_json(&self.formula_file(), &formula)?;
        Ok(-found.validation_loss)
    }
}
