//! Published files that are recognised and hold no list of jobs, each with a sentence on what they are.

const MACHINES: &str =
    "this is a list of machines, not of jobs; give the list of jobs, whose importer knows its machines";
const NETWORK: &str =
    "this is a network's topology, not a list of jobs; give the list of jobs, whose importer knows its racks";
const SERIES: &str =
    "this is a cluster's state over time, not a list of jobs; nothing here says which job ran when";
const QUOTAS: &str = "these are the sizes of virtual clusters, not jobs; the importer of the list knows them";
const AGGREGATE: &str =
    "these are aggregates over jobs, not jobs; ask the publisher for the list that they were computed from";
const PICKED: &str = "these are some hundred jobs picked for their size or length, not a workload; ask the publisher for the list \
                      that they were picked from";
const CALLS: &str = "these are calls of serverless functions, which run on CPUs, not jobs that hold GPUs";
const REQUESTS: &str = "these are requests to a model that is already being served, not jobs that hold GPUs";
const METRICS: &str = "these are measurements of serving containers, not jobs";
const RESULTS: &str =
    "these are results of another simulator, not a list of jobs; give the list that it simulated";
const PARTS: &str =
    "this is one of the parts from which the joined Philly list was made; give the joined list";

/// (names that the header has, what the file is), the first match counts.
const HEADERS: &[(&[&str], &str)] = &[
    // Machines and networks.
    (&["sn", "cpu_milli", "memory_mib", "gpu", "model"], MACHINES),
    (&["machine", "gpu_type", "cap_gpu"], MACHINES),
    (&["gpu_model", "gpu_capacity_num", "node_name"], MACHINES),
    (&["machineId", "number of GPUs"], MACHINES),
    (&["num_switch", "num_node_p_switch"], MACHINES),
    (&["ip", "DSW", "PSW", "ASW"], NETWORK),
    // Alibaba openb's variants without times.
    (
        &["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"],
        "these pods carry no times: the list is a sequence for packing, not a workload; give the list `default` or \
         another variant with creation_time and deletion_time",
    ),
    // Virtual clusters, states of clusters.
    (&["vc", "node num"], QUOTAS),
    (&["date", "total"], QUOTAS),
    (&["date", "vcEwI"], QUOTAS),
    (&["time", "total_job_num", "running_gpu_num"], SERIES),
    (&["time", "active", "total"], SERIES),
    (&["time", "submit_job_all", "start_job_all"], SERIES),
    (&["hour", "jobs_active"], SERIES),
    (&["hour", "A10"], SERIES),
    // Aggregates.
    (&["id", "avg_run_time_gpu"], AGGREGATE),
    (&["c0", "c1"], "these are points of a distribution, not jobs"),
    (&["job_name", "organization", "job_type"], PICKED),
    (&["jobs", "gpu_seconds"], AGGREGATE),
    (&["submit_day", "A10"], AGGREGATE),
    (&["organization", "gpu_seconds"], AGGREGATE),
    (&["organization", "A10"], AGGREGATE),
    (&["gpu_model", "nodes", "total_gpus"], AGGREGATE),
    (&["hour_of_day", "jobs"], AGGREGATE),
    (&["quantile", "seconds"], AGGREGATE),
    (&["type", "jobs_share"], AGGREGATE),
    (&["worker_num", "jobs"], AGGREGATE),
    (&["", "median"], AGGREGATE),
    (&["", "nulls"], AGGREGATE),
    (&["", "duration_seconds"], AGGREGATE),
    (&["", "cpu_request", "gpu_request", "worker_num"], AGGREGATE),
    (&["trace", "gpu_bin"], AGGREGATE),
    (&["trace", "gpus", "jobs"], AGGREGATE),
    (&["trace", "h00", "h23"], AGGREGATE),
    // Serving.
    (&["HashApp", "HashOwner"], CALLS),
    (&["app", "func", "end_timestamp", "duration"], CALLS),
    (&["TIMESTAMP", "ContextTokens", "GeneratedTokens"], REQUESTS),
    (&["predict_type", "exec_time_seconds"], REQUESTS),
    (&["timestamp_anon", "value", "container_ip"], METRICS),
    // Parts and results of other research.
    (&["fifo_start", "fifo_end"], RESULTS),
    (&["submit_time", "gpu_num", "run_time"], PARTS),
    (&["timestamp", "duration", "num_gpus", "gpu_time"], PARTS),
    (
        &["duration"],
        "these are samples of service times without jobs; Tiresias's lists have job_id, num_gpu, submit_time",
    ),
    (&["", "num"], QUOTAS),
];

/// The sentence for a header, given whether it has all of some names. A single name must be the only one.
pub(super) fn of_header(num_columns: usize, has: impl Fn(&[&str]) -> bool) -> Option<&'static str> {
    let is_known = |names: &[&str]| has(names) && (names.len() > 1 || num_columns == 1);
    let known = HEADERS.iter().find(|(names, _)| is_known(names));
    known.map(|(_, sentence)| *sentence)
}

/// The sentence for the first lines of a JSON file.
pub(super) fn of_json(start: &str) -> Option<&'static str> {
    let has = |name: &str| start.contains(name);
    if !start.trim_start().starts_with(['{', '[']) {
        None
    } else if has("\"hash_ids\"") && has("\"input_length\"") {
        Some(REQUESTS)
    } else if has("\"attempts\"") && has("\"submitted_time\"") {
        Some(PARTS)
    } else {
        None
    }
}
