//! What decides on both sides, and what is seen of it.

use super::*;

/// All that a policy sees at one decision and what it answers, by the names of the jobs.
pub fn point_of(pass: &Pass, cluster: &Cluster, action: usize) -> Vec<String> {
    let name = |id: JobId| cluster.job(id).external.to_string();
    let set = pass.candidates();
    let mut lines: Vec<String> = set
        .iter()
        .map(|row| {
            let place = set.placement(row);
            let victims: Vec<_> = set.victims(row).iter().map(|id| name(*id)).collect();
            let facts = (
                row.facts,
                row.reserved_type,
                row.heads,
                row.wait_to_fit_s.to_bits(),
            );
            format!(
                "{:?} {:?} {place:?} {victims:?} {facts:?}",
                row.kind,
                row.job.map(name)
            )
        })
        .collect();
    let seen = pass.observation().as_ref();
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    lines.push(format!("{:?} {:?}", bits(seen.global), bits(seen.candidates)));
    lines.push(format!("{:?} {:?} {action}", bits(pass.scores()), seen.mask));
    lines
}

/// What was seen at each decision, and the decisions.
pub type Played = (Vec<Vec<String>>, Vec<Decision>);

/// A way to play one instant.
pub type Player = Box<dyn FnMut(&mut Cluster) -> Played>;

pub fn player(make: impl Fn() -> Box<dyn Policy> + 'static) -> Player {
    let mut policy = make();
    Box::new(move |cluster| run(cluster, policy.as_mut()))
}

/// Deals every instant; what is seen are the scores of all jobs on all types.
pub fn dealer(name: &'static str) -> Player {
    deals(RoundDealer::by_name(name).unwrap())
}

/// Deals by the passes of a policy.
pub fn passes(make: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static) -> Player {
    deals(RoundDealer::by_policy("passes", make))
}

pub fn deals(dealer: RoundDealer) -> Player {
    let trust = Trust {
        num_ended: 10,
        error: 7.0,
    };
    Box::new(move |cluster| {
        let scores = dealer.scores(cluster, trust, true).unwrap();
        let mut points: Vec<String> = Vec::new();
        for id in cluster.active() {
            let kinds = cluster.types_in(cluster.job(id).types);
            let bits: Vec<u64> = kinds.map(|kind| scores.of(cluster, id, kind).to_bits()).collect();
            points.push(format!("{} {bits:?}", cluster.job(id).external));
        }
        points.sort();
        dealer.deal(cluster, trust, true, &[]).unwrap();
        let mut decisions = Vec::new();
        cluster.take_decisions(&mut decisions);
        (vec![points], decisions)
    })
}

pub fn run(cluster: &mut Cluster, policy: &mut dyn Policy) -> Played {
    let needs = policy.needs();
    let mut pass = Pass::new();
    let (mut points, mut decisions) = (Vec::new(), Vec::new());
    let mut state = pass.open(cluster, &needs);
    while state == PassState::Open {
        let action = pass.decide(cluster, policy).unwrap();
        points.push(point_of(&pass, cluster, action));
        state = pass.act(cluster, &needs, action);
    }
    cluster.take_decisions(&mut decisions);
    (points, decisions)
}
