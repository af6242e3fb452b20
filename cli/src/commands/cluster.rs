//! `pleach cluster`: descriptions of clusters written, checked and shown.

use pleach_env::workload::import::site::NodeTable;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::cluster_flag::cluster_of;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::run_folder::atomic_file;
use pleach_scheduler::cluster_spec::ClusterSpec;

use crate::commands::Context;
use crate::flags::cluster::{ClusterArgs, ClusterCommand, ClusterInitArgs};

/// Runs a step.
///
/// # Errors
/// A cluster that cannot be read, a file in the way.
pub fn run(args: &ClusterArgs, context: &mut Context<'_>) -> Result<(), Error> {
    match &args.command {
        ClusterCommand::Init(args) => init(args, context),
        ClusterCommand::Check(args) => {
            let (cluster, assumed) = cluster_of(&args.cluster)?;
            let sizes = sizes(&cluster);
            context.say(&format!("{}: {sizes}; nothing is wrong", args.cluster.display()))?;
            assumed.map_or(Ok(()), |line| context.say(&line))
        }
        ClusterCommand::Show(args) => {
            let (cluster, assumed) = cluster_of(&args.cluster)?;
            show(&cluster, context)?;
            assumed.map_or(Ok(()), |line| context.say(&line))
        }
    }
}

fn init(args: &ClusterInitArgs, context: &mut Context<'_>) -> Result<(), Error> {
    args.target.check("to", &args.to)?;
    let (cluster, notes) = match (&args.nodes, &args.cluster) {
        (Some(nodes), _) => NodeTable::read(nodes)?.cluster()?,
        (None, Some(given)) => {
            let (cluster, assumed) = cluster_of(given)?;
            (cluster, assumed.into_iter().collect())
        }
        (None, None) => {
            return Err(Error::config(
                "cluster",
                "nothing",
                "nodes x GPUs : type, or --nodes",
                "",
            ));
        }
    };
    let mut text =
        "# A cluster (docs/workload-file.md, Cluster). Check it after editing: pleach cluster check FILE\n"
            .to_owned();
    for note in &notes {
        text.push_str(&format!("# {note}\n"));
    }
    text.push('\n');
    let body = toml::to_string_pretty(&cluster).map_err(|error| Error::Failed(error.to_string()))?;
    atomic_file::write(&args.to, (text + &body).as_bytes())?;
    notes.iter().try_for_each(|note| context.say(note))?;
    context.say(&format!("{} written to {}", sizes(&cluster), args.to.display()))
}

fn sizes(cluster: &ClusterSpec) -> String {
    let num_nodes: u64 = cluster
        .node_groups
        .iter()
        .map(|group| u64::from(group.count))
        .sum();
    format!("{num_nodes} nodes, {} GPUs", cluster.num_gpus())
}

fn show(cluster: &ClusterSpec, context: &mut Context<'_>) -> Result<(), Error> {
    let or_dash = |value: f64| {
        if value == 0.0 {
            "-".to_owned()
        } else {
            value.to_string()
        }
    };
    let groups = cluster.node_groups.iter().map(|group| {
        let memory = cluster.gpu_types.iter().find(|gpu| gpu.name == group.gpu_type);
        vec![
            group.count.to_string(),
            group.gpus_per_node.to_string(),
            group.gpu_type.clone(),
            memory.map_or(0.0, |gpu| gpu.memory_gib).to_string(),
            group.nodes_per_rack.to_string(),
            or_dash(group.cpu_cores),
            or_dash(group.memory_gib),
        ]
    });
    let header = [
        "nodes",
        "GPUs each",
        "type",
        "GiB each",
        "nodes a rack",
        "cores",
        "host GiB",
    ];
    let groups = Table {
        header: header.map(str::to_string).to_vec(),
        rows: groups.collect(),
        notes: vec![sizes(cluster)],
    };
    context.say(&groups.to_terminal())?;
    let tenants = cluster
        .tenants
        .iter()
        .map(|tenant| vec![tenant.name.clone(), tenant.quota_gpus.to_string()]);
    let tenants = Table {
        header: ["tenant", "GPUs by right"].map(str::to_string).to_vec(),
        rows: tenants.collect(),
        notes: vec![
            if cluster.borrowing {
                "may borrow"
            } else {
                "may not borrow"
            }
            .to_owned(),
        ],
    };
    context.say(&tenants.to_terminal())
}
