//! The first steps: the list, what is in it, and its twin.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pleach_env::workload::Workload;
use pleach_env::workload::file::sidecar_path;
use pleach_env::workload::import::site::{Mapping, NodeTable, SiteImport, SiteOptions, import_site};
use pleach_env::workload::import::{ImportOptions, import};

use super::Parts;
use super::found::TwinStep;
use super::site::{ARTEFACT_BYTES_MAX, Say, Site, TWIN_PLOTS, flags_of, left_out_of_commands, step};
use crate::error::Error;
use crate::evaluate::cluster_flag::cluster_of;
use crate::evaluate::table::Table;
use crate::run_folder::atomic_file;
use crate::twin::{self, FitInput, Twin};
use crate::workload_report::load::by_type;
use crate::workload_report::{Inspection, tables};

/// A site's jobs: its accounting, with its nodes, how it is read and its cluster as far as they are given, or a list that was
/// imported. Jobs that wait at its end start so long after, s, or are left out.
///
/// # Errors
/// Files that cannot be used.
pub fn site_list(
    jobs: &Path,
    nodes: Option<&Path>,
    mapping: Option<&Path>,
    cluster: Option<&Path>,
    later_s: Option<f64>,
) -> Result<SiteImport, Error> {
    let cluster = cluster.map(cluster_of).transpose()?;
    let (cluster, assumed) = cluster.map_or((None, None), |(cluster, assumed)| (Some(cluster), assumed));
    let options = ImportOptions {
        cluster,
        ..ImportOptions::default()
    };
    let mut found = if sidecar_path(jobs).is_file() {
        let (workload, report) = import(jobs, &options)?;
        SiteImport {
            workload,
            report,
            mapping: None,
        }
    } else {
        let mapping = mapping.map(|path| {
            let text = atomic_file::read_text(path, ARTEFACT_BYTES_MAX)?;
            Ok::<_, Error>(Mapping::of_text(&path.display().to_string(), &text)?)
        });
        let options = SiteOptions {
            mapping: mapping.transpose()?,
            nodes: nodes.map(NodeTable::read).transpose()?,
            import: options,
            later_s,
            ..SiteOptions::default()
        };
        import_site(jobs, &options)?
    };
    found.report.notes.extend(assumed);
    Ok(found)
}

impl Site<'_> {
    /// The list, as it is read from the run's folder, and its parts.
    pub(super) fn list(&self, say: Say<'_>) -> Result<(Workload, Parts), Error> {
        let (config, path) = (self.config, self.file("list.csv"));
        say(&step(1, "the list", &self.import_command()))?;
        if !path.is_file() {
            let (workload, words) = self.imported()?;
            atomic_file::write(&self.file("import.txt"), words.as_bytes())?;
            workload.write(&path)?;
        }
        say(atomic_file::read_text(&self.file("import.txt"), ARTEFACT_BYTES_MAX)?.trim_end())?;
        let (workload, _) = import(&path, &ImportOptions::default())?;
        let parts = Parts::of(&workload, config.parts);
        let early = parts.early(&workload);
        Error::refuse_if(
            early.jobs.is_empty() || parts.before_judging(&workload).jobs.len() == workload.jobs.len(),
            "jobs",
            config.jobs.display(),
            "a list of some weeks, with jobs in each of its three parts",
            format_args!("It has {} jobs.", workload.jobs.len()),
        )?;
        if !self.file("learn.csv").is_file() {
            early.write(&self.file("learn.csv"))?;
        }
        say(&format!(
            "{} jobs; searched in until day {}, chosen until day {}, judged after it",
            workload.jobs.len(),
            parts.learn_days,
            parts.choose_days
        ))?;
        Ok((workload, parts))
    }

    pub(super) fn import_command(&self) -> String {
        let config = self.config;
        let flag = |name: &str, path: &Option<PathBuf>| {
            path.as_ref()
                .map(|path| format!(" --{name} {}", path.display()))
                .unwrap_or_default()
        };
        format!(
            "pleach workload import {}{}{}{} --to {}",
            config.jobs.display(),
            flag("nodes", &config.nodes),
            flag("mapping", &config.mapping),
            flag("cluster", &config.cluster),
            self.file("list.csv").display()
        )
    }

    /// The site's list and what its import has to say.
    fn imported(&self) -> Result<(Workload, String), Error> {
        let config = self.config;
        let SiteImport {
            workload,
            report,
            mapping,
        } = site_list(
            &config.jobs,
            config.nodes.as_deref(),
            config.mapping.as_deref(),
            config.cluster.as_deref(),
            None,
        )?;
        if let Some(mapping) = mapping {
            atomic_file::write(&self.file("list.mapping.toml"), mapping.text().as_bytes())?;
        }
        let (mut words, num) = (report.to_string(), workload.jobs.len());
        if num <= config.jobs_max {
            return Ok((workload, words));
        }
        words.push_str(&format!(
            "\nof {num} jobs the last {} are taken (jobs_max)",
            config.jobs_max
        ));
        Ok((workload.slice(num - config.jobs_max, config.jobs_max), words))
    }

    pub(super) fn described(&self, workload: &Workload, say: Say<'_>) -> Result<Vec<(String, Table)>, Error> {
        let list = self.file("list.csv");
        say(&step(
            2,
            "what is in it",
            &format!("pleach workload describe --workload {}", list.display()),
        ))?;
        let found = self.kept("describe.json", || {
            let sections = tables::sections(&Inspection::of(workload));
            let sections = sections
                .into_iter()
                .map(|section| (section.heading, section.table));
            Ok(sections.collect::<Vec<_>>())
        })?;
        let of_types: Vec<String> = by_type(workload)
            .iter()
            .map(|of| format!("{} {:.2}", of.name, of.offered.unwrap_or(f64::INFINITY)))
            .collect();
        let of_types = match of_types.is_empty() {
            true => String::new(),
            false => format!(" ({})", of_types.join(", ")),
        };
        say(&format!(
            "{} nodes, {} GPUs, offered load {:.2}{of_types}",
            workload
                .cluster
                .node_groups
                .iter()
                .map(|group| group.count)
                .sum::<u32>(),
            workload.cluster.num_gpus(),
            workload.offered_load()
        ))?;
        Ok(found)
    }

    pub(super) fn twin(&self, workload: &Workload, say: Say<'_>) -> Result<TwinStep, Error> {
        let command = format!(
            "pleach twin --workload {} --policy {} --fit{}",
            self.file("list.csv").display(),
            self.config.policies(&workload.cluster.seen).join(","),
            flags_of(&self.config.scheduling)
        );
        say(&step(3, "the twin", &command))?;
        if let Some(line) = left_out_of_commands(&self.config.scheduling) {
            say(&line)?;
        }
        let found = self.kept("twin.json", || self.fitted(workload))?;
        if let Some(fit) = &found.fit {
            say(&fit.line())?;
        }
        say(&found.verdict)?;
        if found.start_delay_s > 0.0 {
            let text = format!("start_delay_s = {:?}\n", found.start_delay_s);
            atomic_file::write(&self.file("delay.toml"), text.as_bytes())?;
        }
        Ok(found)
    }

    fn fitted(&self, workload: &Workload) -> Result<TwinStep, Error> {
        let config = self.config;
        let policies = self.own_policies(&workload.cluster.seen)?;
        let sim = self.sim(&config.scheduling, workload);
        for policy in &policies {
            policy.check(sim.capabilities)?;
        }
        let estimates = twin::believed(workload, config.scheduling.estimates);
        if !twin::is_record(workload) {
            return Ok(TwinStep {
                policy: policies[0].name().to_owned(),
                estimates: estimates[0],
                start_delay_s: 0.0,
                trust: None,
                verdict: "no twin: the list does not say when jobs began (sacct's Start), so nothing can be held against it".into(),
                fit: None,
                tables: Vec::new(),
            });
        }
        let input = FitInput {
            workload,
            sim: &sim,
            policies: &policies,
            estimates: &estimates,
        };
        let (fit, jobs) = twin::fit(&input, self.watcher)?;
        let policy = self.own_policy(&fit.policy, &workload.cluster.seen)?;
        let found = Twin::since(&policy, workload, &fit.sim(&sim), &jobs, fit.until_s)?;
        atomic_file::write_json(&self.file(TWIN_PLOTS), &twin::plots(&found))?;
        Ok(TwinStep {
            policy: fit.policy.clone(),
            estimates: fit.estimates,
            start_delay_s: fit.start_delay_s,
            trust: Some(found.trust),
            verdict: found.verdict(),
            tables: twin::sections(&found),
            fit: Some(fit),
        })
    }

    /// GPU types' names in the accounting by their names in the cluster, where they differ.
    pub(super) fn slurm_names(&self) -> Result<BTreeMap<String, String>, Error> {
        let path = self.file("list.mapping.toml");
        if !path.is_file() {
            return Ok(BTreeMap::new());
        }
        let text = atomic_file::read_text(&path, ARTEFACT_BYTES_MAX)?;
        let mapping = Mapping::of_text(&path.display().to_string(), &text)?;
        let names = mapping.gpu_types.into_iter();
        Ok(names
            .map(|(in_table, in_cluster)| (in_cluster, in_table))
            .collect())
    }
}
