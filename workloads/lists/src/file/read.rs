//! Reads the project's own workload file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_scheduler::problem::files;
use pleach_scheduler::{Problem, Tasks, Time};

use super::trainings::TrainingEntry;
use super::{
    HELD_COLUMN, OBSERVED_COLUMNS, REQUIRED, RESOURCE_COLUMNS, Sidecar, TASK_COLUMNS, WISH_COLUMNS,
    sidecar_beside, sidecar_path,
};
use crate::Error;
use crate::import::{Draft, ImportOptions, RawRow, Site, SiteOf, Tenancy};
use crate::table::Table;
use crate::{NUM_JOBS_MAX, Observed, Outcome, RUN_TIME_S_MAX, RUN_TIME_S_MIN, SUBMIT_S_MAX, config};

/// Largest sidecar, bytes; one for 10,000 tenants is below 1 MB.
const SIDECAR_BYTES_MAX: u64 = 1 << 24;

/// Latest time that a site can have observed, s: a job that came last and ran longest.
const OBSERVED_S_MAX: f64 = SUBMIT_S_MAX + RUN_TIME_S_MAX;

/// Most trainings of a sidecar.
const TRAININGS_MAX: usize = 1000;

/// Reads the rows; the cluster comes from the caller or else from the sidecar.
pub(crate) fn read_draft(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open_with(path, Table::delimiter(path)?, &REQUIRED)?;
    let sidecar = read_sidecar(path)?;
    let mut notes = Vec::new();
    let (name, classes, trainings, cluster, is_given) = match (sidecar, &options.cluster) {
        (Some((sidecar, trainings)), None) => {
            notes.extend(sidecar.assumed);
            (sidecar.name, sidecar.classes, trainings, sidecar.cluster, false)
        }
        (Some((sidecar, trainings)), Some(cluster)) => {
            let cluster = cluster.clone().with_site_of(&sidecar.cluster);
            (sidecar.name, sidecar.classes, trainings, cluster, true)
        }
        (None, Some(cluster)) => (None, Vec::new(), Vec::new(), cluster.clone(), true),
        (None, None) => {
            let hint = "write the cluster there (pleach cluster init), or give one: --cluster 16x8:A100";
            let value = sidecar_path(path).display().to_string();
            return Err(config(
                "cluster",
                value + " not found",
                "a cluster description",
                hint,
            ));
        }
    };
    let mut classes = classes;
    let first_trained = classes.len();
    for (line, training) in &trainings {
        let class = training.class(&cluster);
        classes.push(class.map_err(|error| refused(path, *line, &error))?);
    }
    // Nothing is known of the jobs, so nothing is assumed: they are as fast on every type and on every placement.
    let classes = if classes.is_empty() {
        vec![ModelClass {
            name: "any".into(),
            speed: vec![1.0; cluster.gpu_types.len()],
            ..ModelClass::default()
        }]
    } else {
        classes
    };
    for class in &classes {
        cluster.validate_class(class)?;
    }
    let class_index: BTreeMap<String, usize> = classes
        .iter()
        .enumerate()
        .map(|(index, class)| (class.name.clone(), index))
        .collect();
    if class_index.len() < classes.len() {
        let names: Vec<_> = classes.iter().map(|class| class.name.as_str()).collect();
        let hint = "rename one of the two";
        return Err(config(
            "classes.name",
            names.join(", "),
            "names used only once",
            hint,
        ));
    }
    let clock_0_unix_s = cluster.seen.time_0_unix_s;
    let site = site(cluster, classes.clone(), is_given, notes);
    let mut draft = Draft::new(path, site);
    draft.clock_0_unix_s = clock_0_unix_s;
    draft.strict = true;
    draft.name = name.unwrap_or(draft.name);
    while table.next_row()? {
        let row = read_row(&table, &mut draft, &class_index)?;
        let training = usize::from(row.class).checked_sub(first_trained);
        if let Some((_, training)) = training.and_then(|index| trainings.get(index))
            && !training.can_ask(row.num_gpus, &classes[usize::from(row.class)])
        {
            let allowed = training.allowed();
            let fix = "its plan is for that many; give another number its own [[trainings]]";
            return Err(table.refuse(table.column("num_gpus"), &allowed, fix));
        }
        if draft.rows.len() == NUM_JOBS_MAX {
            let message = format!("more than {NUM_JOBS_MAX} jobs; cut the list");
            return Err(table.error("-", message));
        }
        draft.rows.push(row);
        draft.account.rows_read += 1;
    }
    Ok(draft)
}

fn read_row(
    table: &Table,
    draft: &mut Draft,
    class_index: &BTreeMap<String, usize>,
) -> Result<RawRow, Error> {
    let column = |name: &str| table.column(name);
    let id = match column("job_id") {
        Some(_) => table.name(column("job_id"))?,
        None => draft.account.rows_read.to_string(),
    };
    let fix = "give seconds from the start of the workload";
    let submit_s = table.number(column("submit_s"), 0.0, SUBMIT_S_MAX, fix)?;
    let num_gpus = table.count(column("num_gpus"), "give the size of the gang")?;
    if num_gpus == 0 {
        let fix = "jobs without GPUs take no part";
        return Err(table.refuse(column("num_gpus"), "1 or more", fix));
    }
    let resources = read_resources(table)?;
    let each = u32::from(resources.tasks.gpus_per_task);
    if !num_gpus.is_multiple_of(each) {
        let allowed = format!("a multiple of gpus_per_task, {each}");
        let fix = "a gang is made of whole tasks";
        return Err(table.refuse(column("num_gpus"), &allowed, fix));
    }
    let run_time_s = table.number(
        column("run_time_s"),
        RUN_TIME_S_MIN,
        RUN_TIME_S_MAX,
        "give seconds, above 0",
    )?;
    let fix = "give seconds or leave it empty";
    let estimate_s = table.optional(column("estimate_s"), RUN_TIME_S_MIN, RUN_TIME_S_MAX, fix)?;
    let class = match table.text(column("class")) {
        "" => 0,
        name => match class_index.get(name) {
            Some(index) => *index,
            None => {
                let names: Vec<_> = class_index.keys().map(String::as_str).collect();
                let allowed = format!("one of {}", crate::table::shorten(&names.join(", ")));
                return Err(table.refuse(column("class"), &allowed, "declare the class in the sidecar"));
            }
        },
    };
    let outcome = match table.text(column("outcome")) {
        "" => Outcome::Unknown,
        word => match Outcome::ALL.into_iter().find(|outcome| outcome.word() == word) {
            Some(outcome) => outcome,
            None => {
                let allowed = "completed, failed, killed, unknown or nothing";
                return Err(table.refuse(column("outcome"), allowed, "use one of these words"));
            }
        },
    };
    let tenant = table.optional_name(column("tenant"))?;
    Ok(RawRow {
        line: table.line(),
        id,
        submit: Time::from_secs_f64(submit_s),
        num_gpus,
        run_time_s,
        estimate_s,
        tenant: tenant.and_then(|name| draft.tenant(&name)),
        class: u16::try_from(class).unwrap_or(u16::MAX),
        user: table.optional_name(column("user"))?,
        outcome,
        resources,
        observed: read_observed(table)?,
    })
}

/// Share, memory, cores of the present row; a whole GPU and nothing else where the columns are absent or empty.
fn read_resources(table: &Table) -> Result<Resources, Error> {
    let whole = Resources::WHOLE_GPU;
    let [gpu_milli, gpu_memory_gib, cpu_cores, memory_gib] = RESOURCE_COLUMNS.map(|name| table.column(name));
    let share = match table.text(gpu_milli) {
        "" => whole.gpu_milli,
        text => match text.parse::<u16>() {
            Ok(share) if (1..=1000).contains(&share) => share,
            _ => {
                let fix = "give thousandths of a GPU; leave it empty for whole GPUs";
                return Err(table.refuse(gpu_milli, "a whole number from 1 to 1000", fix));
            }
        },
    };
    let amount = |column: Option<usize>| {
        let fix = "give the amount per GPU or leave it empty";
        table
            .optional(column, 0.0, 1e6, fix)
            .map(Option::unwrap_or_default)
    };
    Ok(Resources {
        gpu_milli: share,
        gpu_memory_gib: amount(gpu_memory_gib)?,
        cpu_cores: amount(cpu_cores)?,
        memory_gib: amount(memory_gib)?,
        tasks: read_tasks(table)?,
        ..Resources::WHOLE_GPU
    })
}

/// How the present row's job went at its site; none where the columns are absent or its start is empty.
fn read_observed(table: &Table) -> Result<Option<Box<Observed>>, Error> {
    let [start, end, nodes, partition, qos] = OBSERVED_COLUMNS.map(|name| table.column(name));
    let [constraint, licences] = WISH_COLUMNS.map(|name| table.column(name));
    let fix = "give seconds from the start of the workload or leave it empty";
    let time = |column| table.optional(column, 0.0, OBSERVED_S_MAX, fix);
    let Some(start_s) = time(start)? else {
        return Ok(None);
    };
    let text = |column| table.text(column).to_owned();
    Ok(Some(Box::new(Observed {
        start: Time::from_secs_f64(start_s),
        end: time(end)?.map(Time::from_secs_f64),
        nodes: text(nodes),
        partition: text(partition),
        qos: text(qos),
        constraint: text(constraint),
        licences: text(licences),
        held_s: time(table.column(HELD_COLUMN))?.unwrap_or(0.0),
    })))
}

/// How the gang of the present row is cut; as one likes where the columns are absent or empty.
fn read_tasks(table: &Table) -> Result<Tasks, Error> {
    let count = |name: &str, least: u16, most: u16, otherwise: u16| {
        let column = table.column(name);
        match table.text(column) {
            "" => Ok(otherwise),
            text => match text.parse::<u16>() {
                Ok(count) if (least..=most).contains(&count) => Ok(count),
                _ => {
                    let allowed = format!("a whole number from {least} to {most}");
                    Err(table.refuse(column, &allowed, "leave it empty where it does not matter"))
                }
            },
        }
    };
    let [each, on_node, nodes] = TASK_COLUMNS;
    Ok(Tasks {
        gpus_per_task: count(each, 1, 64, 1)? as u8,
        tasks_per_node_max: count(on_node, 0, 64, 0)? as u8,
        nodes_max: count(nodes, 0, u16::MAX, 0)?,
    })
}

fn site(cluster: ClusterSpec, classes: Vec<ModelClass>, is_given: bool, notes: Vec<String>) -> SiteOf {
    Box::new(move |rows, _| {
        let names_tenants = rows.iter().any(|row| row.tenant.is_some());
        let tenancy = if is_given && cluster.tenants.len() == 1 && names_tenants {
            Tenancy::Shared(Vec::new())
        } else {
            Tenancy::ByName
        };
        Site {
            cluster: cluster.clone(),
            classes: classes.clone(),
            tenancy,
            notes: notes.clone(),
        }
    })
}

/// The error for a training that cannot be: the line of its table, its key, and the rest as for a refused setting.
fn refused(jobs: &Path, line: u64, error: &Problem) -> Error {
    Error::at(
        sidecar_path(jobs),
        line,
        &error.key,
        format!(
            "{} = {} is not allowed here: allowed is {}; {}",
            error.key, error.value, error.allowed, error.hint
        ),
    )
}

/// The sidecar, and its trainings with the lines at which they begin.
type SidecarRead = (Sidecar, Vec<(u64, TrainingEntry)>);

/// The cluster beside a list, and its file; none where there is none.
pub(crate) fn cluster_beside(jobs: &Path) -> Result<Option<(PathBuf, ClusterSpec)>, Error> {
    let Some(path) = sidecar_beside(jobs) else {
        return Ok(None);
    };
    let found = read_sidecar(jobs)?;
    Ok(found.map(|(sidecar, _)| (path, sidecar.cluster)))
}

fn read_sidecar(jobs: &Path) -> Result<Option<SidecarRead>, Error> {
    let path = sidecar_beside(jobs).unwrap_or_else(|| sidecar_path(jobs));
    let io = |source| Error::io("read", &path, source);
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(io)?,
    };
    let Some(bytes) = files::at_most(file, SIDECAR_BYTES_MAX).map_err(io)? else {
        return Err(Error::data(
            path,
            format!("the file is larger than {SIDECAR_BYTES_MAX} bytes; is this a cluster?"),
        ));
    };
    let text = String::from_utf8(bytes)
        .map_err(|error| io(std::io::Error::new(ErrorKind::InvalidData, error.utf8_error())))?;
    let line_at = |start: usize| {
        let before = text.get(..start);
        before.map_or(0, |before| before.matches('\n').count() as u64 + 1)
    };
    let all_faults = || crate::cluster::check_several(&path.display().to_string(), &text);
    let parsed = toml::from_str(&text);
    if parsed.is_err() {
        all_faults()?;
    }
    let mut sidecar: Sidecar = parsed.map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        Error::at_byte(
            &path,
            &text,
            start,
            format!("{}; see docs/workload-file.md", error.message()),
        )
    })?;
    sidecar.assumed = crate::cluster::assume(&mut sidecar.cluster);
    if sidecar.cluster.faults().len() > 1 {
        all_faults()?;
    }
    sidecar.cluster.validate()?;
    let trainings = std::mem::take(&mut sidecar.trainings);
    Error::refuse_if(
        trainings.len() > TRAININGS_MAX,
        "trainings",
        trainings.len(),
        format_args!("at most {TRAININGS_MAX}: for each thousands of plans are tried"),
        "give some of them as [[classes]]",
    )?;
    let trainings = trainings.into_iter();
    let trainings = trainings.map(|entry| (line_at(entry.span().start), entry.into_inner()));
    Ok(Some((sidecar, trainings.collect())))
}
