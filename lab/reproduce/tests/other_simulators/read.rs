//! Reads published results: delimited tables with a header, plain or gzipped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use pleach_env::workload::{JobSpec, Outcome};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::Resources;
use pleach_tests::data;

/// The rows of a table by column name.
pub fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let file = File::open(path).unwrap();
    let text: Box<dyn Read> = match path.extension() {
        Some(end) if end == "gz" => Box::new(MultiGzDecoder::new(file)),
        _ => Box::new(file),
    };
    let mut reader = csv::Reader::from_reader(text);
    reader.deserialize().map(Result::unwrap).collect()
}

/// One job and when it ended there.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    pub submit_s: f64,
    pub num_gpus: u32,
    pub run_s: f64,
    pub start_s: f64,
    pub end_s: f64,
    /// When it started there under FIFO, where that is known.
    pub fifo_start_s: f64,
}

impl Row {
    /// A row from the named columns: id, submission, gang, run time, start and end.
    pub fn new(fields: &BTreeMap<String, String>, columns: [&str; 6]) -> Row {
        let number = |column: &str| fields[column].parse::<f64>().unwrap();
        let [id, submit, gang, run, start, end] = columns;
        Row {
            id: fields[id].clone(),
            submit_s: number(submit),
            num_gpus: number(gang) as u32,
            run_s: number(run),
            start_s: number(start),
            end_s: number(end),
            fifo_start_s: number(start),
        }
    }

    /// The order of jobs that came in the same second, as far as their FIFO starts show it: the one that started first
    /// was first; of jobs that waited and then started together the larger gang was first, or the smaller one would not have
    /// waited.
    pub fn probable_order(&self) -> (i64, i64, i64) {
        let waited = self.fifo_start_s > self.submit_s;
        let gang = if waited { -i64::from(self.num_gpus) } else { 0 };
        (self.submit_s as i64, self.fifo_start_s as i64, gang)
    }

    pub fn job(&self) -> JobSpec {
        JobSpec {
            id: self.id.clone(),
            submit: Time::from_secs_f64(self.submit_s),
            num_gpus: self.num_gpus,
            run_time_s: self.run_s,
            estimate_s: None,
            tenant: 0,
            class: 0,
            user: None,
            outcome: Outcome::Unknown,
            resources: Resources::WHOLE_GPU,
            observed: None,
        }
    }
}

/// A virtual cluster and its jobs.
#[derive(Clone, Debug)]
pub struct VirtualCluster {
    pub num_nodes: u32,
    pub rows: Vec<Row>,
}

/// The virtual clusters of a published list (the list, the sizes) under one policy, jobs in the order of the file.
pub fn virtual_clusters([list, sizes]: [&str; 2], id: &str, policy: &str) -> Option<Vec<VirtualCluster>> {
    let (list, sizes) = (data(list)?, data(sizes)?);
    let text = std::fs::read_to_string(sizes).unwrap();
    let sizes = text.lines().skip(1).map(|line| line.split_once(',').unwrap());
    let sizes: BTreeMap<&str, u32> = sizes
        .map(|(name, nodes)| (name, nodes.trim().parse().unwrap()))
        .collect();
    let (start, end) = (format!("{policy}_start"), format!("{policy}_end"));
    let mut clusters: BTreeMap<String, VirtualCluster> = BTreeMap::new();
    for fields in table(&list) {
        let mut row = Row::new(&fields, [id, "submit_time", "gpu_num", "duration", &start, &end]);
        row.fifo_start_s = fields["fifo_start"].parse().unwrap();
        let name = &fields["vc"];
        let cluster = clusters.entry(name.clone()).or_insert_with(|| VirtualCluster {
            num_nodes: sizes[name.as_str()],
            rows: Vec::new(),
        });
        cluster.rows.push(row);
    }
    Some(clusters.into_values().collect())
}
