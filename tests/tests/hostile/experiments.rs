//! Settings and results: what a command is given in TOML, and what a run left in its folder.

use std::path::Path;

use clap::{Args as _, Command};
use pleach_experiments::JobsWorld;
use pleach_experiments::decide::SiteConfig;
use pleach_experiments::run_folder::{Existing, RunDescription, RunFolder, is_finished};
use pleach_experiments::sweep::gather::{GatherConfig, gather};
use pleach_experiments::sweep::grid::Grid;
use pleach_experiments::sweep::manifest::Manifest;
use pleach_experiments::train::{CurvePoint, settings_file};
use pleach_experiments::when::{Ask, Served};
use pleach_experiments::{EvaluationConfig, SchedulingConfig, TrainSettings};

use pleach_experiments::site_policy;
use pleach_experiments::{kube_scheduler, kueue_objects};
use pleach_site::slurm::{Conf, associations, printed};

use super::Reader;

fn flag(flag: &str, path: &Path) -> Result<(), String> {
    let command = SchedulingConfig::augment_args(Command::new("pleach"));
    let path = path.display().to_string();
    let parsed = command.try_get_matches_from(["pleach", flag, &path]);
    parsed.map(drop).map_err(|error| error.to_string())
}

pub const READERS: [Reader; 18] = [
    Reader {
        name: "served-forecasts",
        beside: &[],
        sources: &["experiments/src/when/served.rs"],
        read: |path| {
            let served = Served::read(&std::fs::read(path).unwrap())?;
            let asks = [(Some("47"), 1, None), (None, 2, None), (None, 1, Some(60.0))];
            for (job, gpus, time_s) in asks {
                let job = job.map(str::to_owned);
                let ask = Ask {
                    job,
                    gpus,
                    time_s,
                    ..Ask::default()
                };
                served.words(&ask).map_err(|error| error.to_string())?;
            }
            Ok(())
        },
    },
    Reader {
        name: "kueue-objects",
        beside: &[("kube-scheduler.yaml", "kube-scheduler/packed.yaml")],
        sources: &[],
        read: |path| {
            kueue_objects::read(path)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "kube-scheduler",
        beside: &[],
        sources: &["experiments/src/kube_scheduler.rs"],
        read: |path| {
            kube_scheduler::read(path)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "kube-classes",
        beside: &[],
        sources: &[],
        read: |path| {
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
            kube_scheduler::classes(&text).map(drop)
        },
    },
    Reader {
        name: "slurm-conf",
        beside: &[],
        sources: &["experiments/src/slurm_conf.rs"],
        read: |path| {
            site_policy::read(path)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "slurm-accounts",
        beside: &[("slurm.conf", "slurm-conf/site.conf")],
        sources: &[],
        read: |path| {
            let conf = std::fs::read_to_string(path.with_file_name("slurm.conf")).unwrap();
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
            let dump = associations(&text).ok_or("more associations than are read")?;
            let conf = Conf::of_text(&conf).map_err(|error| error.to_string())?;
            site_policy::of(&conf, &dump, &printed(&text))
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "sshare",
        beside: &[
            ("slurm.conf", "slurm-conf/site.conf"),
            ("site.cfg", "slurm-accounts/site.cfg"),
        ],
        sources: &[],
        read: |path| {
            let read = site_policy::read(&path.with_file_name("slurm.conf"));
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "sprio",
        beside: &[("slurm.conf", "slurm-conf/site.conf")],
        sources: &[],
        read: |path| {
            let read = site_policy::read(&path.with_file_name("slurm.conf"));
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "training",
        beside: &[],
        sources: &["experiments/src/train/settings_file.rs"],
        read: |path| {
            let settings: TrainSettings = settings_file::read(path).map_err(|error| error.to_string())?;
            settings.validate().map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "evaluations",
        beside: &[],
        sources: &["experiments/src/run_folder/atomic_file.rs"],
        read: |path| {
            let read = pleach_experiments::run_folder::atomic_file::read_toml(path, 1 << 20);
            let config: EvaluationConfig = read.map_err(|error| error.to_string())?;
            JobsWorld::open(&config)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "grids",
        beside: &[],
        sources: &["experiments/src/sweep/grid.rs"],
        read: |path| {
            let grid = Grid::read(path).map_err(|error| error.to_string())?;
            grid.plan().map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "manifests",
        beside: &[],
        sources: &["experiments/src/sweep/manifest.rs"],
        read: |path| Manifest::read(path).map(drop).map_err(|error| error.to_string()),
    },
    Reader {
        name: "unit-results",
        beside: &[
            ("sweep.json", "manifests/sweep.json"),
            ("other.json", "unit-results/result.json"),
        ],
        sources: &[],
        read: |path| {
            let folder = path.parent().unwrap();
            let manifest = Manifest::read(&folder.join("sweep.json")).unwrap();
            for unit in manifest.units() {
                let place = folder.join(format!("units/{}", unit.index));
                std::fs::create_dir_all(&place).unwrap();
                let from = if unit.index == 0 {
                    path.to_owned()
                } else {
                    folder.join("other.json")
                };
                std::fs::copy(from, place.join("result.json")).unwrap();
            }
            let config = GatherConfig {
                partial: true,
                ..GatherConfig::default()
            };
            gather(&manifest, folder, &config)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "sites",
        beside: &[
            ("sacct.txt", "accounting/sacct.txt"),
            ("nodes.txt", "nodes/scontrol.txt"),
        ],
        sources: &[],
        read: |path| {
            SiteConfig::read(path)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "runs",
        beside: &[("config.toml", "training/settings.toml")],
        sources: &["experiments/src/run_folder/existing.rs"],
        read: |path| {
            let folder = path.parent().unwrap();
            std::fs::copy(path, folder.join("run.json")).unwrap();
            let _ = is_finished(folder);
            let described = RunDescription::read(folder).map_err(|error| error.to_string())?;
            let Some(described) = described else { return Ok(()) };
            let config = EvaluationConfig::default();
            let (command, seed) = (&described.command, described.seed);
            let opened = RunFolder::open(command, &config, seed, Some(folder), Existing::Resume);
            // It is a run of other settings.
            let words = opened.err().map(|error| error.to_string());
            assert!(words.is_none_or(|words| !words.is_empty()));
            Ok(())
        },
    },
    Reader {
        name: "curves",
        beside: &[],
        sources: &[],
        read: |path| {
            let read = pleach_experiments::run_folder::atomic_file::read_json(path, 1 << 20);
            let read: Result<Vec<CurvePoint>, _> = read;
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "capacities",
        beside: &[],
        sources: &[],
        read: |path| flag("--capacity", path),
    },
    Reader {
        name: "batch-systems",
        beside: &[],
        sources: &[],
        read: |path| flag("--batch-system", path),
    },
];
