//! Builds a cluster, submits four jobs, runs one pass of EASY backfill and prints what it decided.

use pleach_scheduler::cluster_spec::LocalityFactors;
use pleach_scheduler::decision::Action;
use pleach_scheduler::{
    Capabilities, ClassId, Cluster, ClusterSpec, Estimate, ExternalId, ModelClass, Planner, PolicyPlanner,
    Provenance, Resources, Submission, TenantId, heuristics,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = ClusterSpec::uniform(2, 8, 2);
    let class = ModelClass {
        name: "any".into(),
        speed: vec![1.0],
        locality: LocalityFactors::PHILLY,
        ..ModelClass::default()
    };
    let mut cluster = Cluster::new(&spec, &[class], Capabilities::default())?;
    // Gang size and the user's time limit, s. The third job does not fit beside the first; the fourth may slip in.
    for (number, num_gpus, limit_s) in [
        (101, 8, 3600.0),
        (102, 4, 7200.0),
        (103, 12, 600.0),
        (104, 2, 1800.0),
    ] {
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(0),
            num_gpus,
            estimate_s: Estimate {
                value: limit_s,
                provenance: Provenance::UserLimit,
            },
            resources: Resources::WHOLE_GPU,
        };
        cluster.submit_as(ExternalId::number(number), request)?;
    }
    let mut planner = PolicyPlanner::new(heuristics::by_name("easy")?);
    planner.plan(&mut cluster)?;

    let mut decisions = Vec::new();
    cluster.take_decisions(&mut decisions);
    for decision in decisions {
        let slices = decision.placement.iter();
        let nodes: Vec<String> = slices
            .map(|slice| format!("{} GPUs of node {}", slice.num_gpus(), slice.node.0))
            .collect();
        match (decision.action, decision.reservation) {
            (Action::Start, _) => println!("start job {} on {}", decision.job, nodes.join(" and ")),
            (Action::Preempt, _) => println!("stop job {} on {}", decision.job, nodes.join(" and ")),
            (Action::Reserve, held) => println!(
                "hold {} GPUs back for job {} until {:?} s",
                decision.num_gpus,
                decision.job,
                held.map(|held| held.start.as_secs_f64())
            ),
        }
    }
    println!(
        "{} of 16 GPUs stay free, {} job waits",
        cluster.num_free(),
        cluster.num_pending()
    );
    Ok(())
}
