//! What a column of a site's table can mean, and the names by which that is guessed.

use serde::{Deserialize, Serialize};

/// What a column can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Name of the job.
    JobId,
    /// When it was submitted.
    Submit,
    /// From when on it could have run; then its wait begins.
    Eligible,
    /// When it began.
    Start,
    /// When it ended.
    End,
    /// How long it ran.
    RunTime,
    /// What its user asked for.
    TimeLimit,
    /// GPUs that it had: a number, or a text of Slurm's (`gres/gpu=2,gres/gpu:a100=2`).
    Gpus,
    /// GPUs that it asked for, likewise.
    GpusAsked,
    /// Nodes that it had.
    NumNodes,
    /// GPU type on which it ran.
    GpuType,
    /// Names of its nodes.
    Nodes,
    /// To whom it is charged.
    Tenant,
    /// Who submitted it.
    User,
    /// What kind of job it is.
    Class,
    /// How it ended.
    State,
    /// Partition or queue.
    Partition,
    /// Quality of service.
    Qos,
}

impl Role {
    /// Each with the names that columns for it have, letters and digits alone; the first that a header has is taken. `""` stands
    /// for any name that begins so.
    ///
    /// # Source
    /// `sacct --helpformat` of Slurm 22.05 to 26.05; headers of published lists; the rest *assumed*.
    pub const NAMES: [(Role, &'static [&'static str]); 18] = [
        (
            Role::JobId,
            &[
                "jobid", "id", "job", "jobname", "name", "uid", "jobidraw", "taskid",
            ],
        ),
        (
            Role::Submit,
            &[
                "submit",
                "submittime",
                "submits",
                "submission",
                "submissiontime",
                "submitted",
                "submittedat",
                "submittedtime",
                "arrival",
                "arrivaltime",
                "arrivals",
                "created",
                "createdat",
                "creationtime",
                "creationtimestamp",
                "ctime",
                "queuetime",
                "queued",
                "queuedat",
                "qtime",
                "enqueued",
                "enqueuetime",
                "requesttime",
            ],
        ),
        (Role::Eligible, &["eligible", "eligibletime", "etime"]),
        (
            Role::Start,
            &[
                "start",
                "starttime",
                "starts",
                "started",
                "startedat",
                "begin",
                "begintime",
                "begun",
                "startts",
                "scheduledtime",
            ],
        ),
        (
            Role::End,
            &[
                "end",
                "endtime",
                "ends",
                "ended",
                "endedat",
                "finish",
                "finishtime",
                "finished",
                "finishedat",
                "completed",
                "completedat",
                "completiontime",
                "stoptime",
                "deletiontime",
                "endts",
            ],
        ),
        (
            Role::RunTime,
            &[
                "elapsedraw",
                "elapsed",
                "runtime",
                "runtimes",
                "duration",
                "durations",
                "durationsec",
                "durationsecs",
                "durationseconds",
                "walltime",
                "wallclock",
                "wall",
                "service",
                "services",
                "servicetime",
                "executiontime",
                "runtimesec",
                "runtimeseconds",
                "runtimemin",
                "runtimeh",
                "durationmin",
                "durationh",
                "durationhours",
                "durationms",
                "jobtime",
            ],
        ),
        (
            Role::TimeLimit,
            &[
                "timelimit",
                "timelimitraw",
                "limit",
                "timelimits",
                "walltimelimit",
                "requestedtime",
                "requestedwalltime",
                "reqtime",
                "walltimerequested",
                "maxtime",
                "estimate",
                "estimates",
            ],
        ),
        (
            Role::Gpus,
            &[
                "alloctres",
                "gpus",
                "numgpus",
                "gpunum",
                "numgpu",
                "ngpus",
                "ngpu",
                "gpucount",
                "gpu",
                "gpusallocated",
                "allocgpus",
                "gpusused",
                "gangsize",
                "numaccelerators",
                "accelerators",
                "allocgres",
                "alloctresgpu",
            ],
        ),
        (
            Role::GpusAsked,
            &[
                "reqtres",
                "gpusrequested",
                "requestedgpus",
                "reqgpus",
                "gpurequest",
                "reqgres",
            ],
        ),
        (
            Role::NumNodes,
            &["nnodes", "allocnodes", "numnodes", "nodecount", "nodesnum"],
        ),
        (
            Role::GpuType,
            &[
                "gputype",
                "gpumodel",
                "gpuname",
                "accelerator",
                "acceleratortype",
                "devicetype",
                "gpukind",
            ],
        ),
        (
            Role::Nodes,
            &[
                "nodelist",
                "nodes",
                "hosts",
                "hostlist",
                "exechost",
                "execnodes",
                "hostnames",
                "node",
            ],
        ),
        (
            Role::Tenant,
            &[
                "account",
                "project",
                "group",
                "tenant",
                "team",
                "vc",
                "virtualcluster",
                "organization",
                "department",
                "namespace",
            ],
        ),
        (Role::User, &["user", "username", "owner", "userid", "submitter"]),
        (
            Role::Class,
            &[
                "class",
                "model",
                "modelname",
                "jobtype",
                "application",
                "workloadtype",
            ],
        ),
        (
            Role::State,
            &[
                "state",
                "status",
                "jobstate",
                "jobstatus",
                "exitstate",
                "outcome",
                "finalstate",
                "result",
                "phase",
            ],
        ),
        (Role::Partition, &["partition", "queue", "queuename", "pool"]),
        (Role::Qos, &["qos", "priorityclass", "priority"]),
    ];

    /// The word in files.
    #[must_use]
    pub fn word(self) -> String {
        let value = toml::Value::try_from(self).ok();
        value
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}
