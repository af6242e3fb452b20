//! A network learns rows that no pass has: leases, whose schema is a toy of three kinds.

use pleach_env::{Seed, Spaces};
use pleach_network::{
    Contract, Layout, NetworkConfig, NetworkScorer, Normaliser, Provenance, TrainedNetwork, softmax::argmax,
};
use pleach_scheduler::features::toy::{LEASE, LEASE_1, rows, teacher};
use pleach_scheduler::policy::CandidateConfig;
use pleach_scheduler::{Rows, Scorer as _};
use rand::RngExt as _;

use crate::device::Device;
use crate::imitation::{Demonstrations, ImitationConfig, clone_teacher};
use crate::random::initial_parameters;

const ALL: [bool; 6] = [true; 6];

/// Whole rows of a decision and its load, with what the teacher makes of each row.
fn decision(draw: &mut impl FnMut() -> f32) -> (Vec<f32>, f32, Vec<f32>) {
    let load = draw();
    let rows = rows(draw);
    let scores = rows.chunks_exact(5).map(|row| teacher(row, load)).collect();
    (rows, load, scores)
}

#[test]
fn a_network_over_rows_of_another_schema_learns_its_teacher() {
    let spaces = Spaces::of(&LEASE_1, ALL.len());
    let config = NetworkConfig {
        hidden: 32,
        context: 32,
        ..NetworkConfig::default()
    };
    let layout = Layout::new(config, spaces).unwrap();
    let mut random = Seed(3).stream("toy", 0);
    let mut draw = || random.random::<f32>();
    let mut shown = Demonstrations::new(spaces);
    for _ in 0..2_000 {
        let (rows, load, scores) = decision(&mut draw);
        let of_view: Vec<f32> = rows.chunks_exact(5).flat_map(|row| row[..4].to_vec()).collect();
        shown
            .push(&[load], &of_view, &ALL, argmax(&scores), None)
            .unwrap();
    }
    let (mut parameters, mut normaliser) = (initial_parameters(&layout, Seed(1)), Normaliser::default());
    let imitation = ImitationConfig {
        num_epochs: 40,
        minibatch_size: 64,
        learning_rate: 3e-3,
        smoothing: 0.0,
        ..ImitationConfig::default()
    };
    clone_teacher(
        (&layout, Device::Cpu),
        &mut parameters,
        &mut normaliser,
        &shown,
        &imitation,
        Seed(2),
    )
    .unwrap();
    let network = TrainedNetwork {
        config,
        contract: Contract::over(&LEASE, spaces, CandidateConfig::default(), "leases"),
        normaliser,
        provenance: Provenance::default(),
        parameters,
        graph: None,
    };
    let mut scorer = NetworkScorer::over(&LEASE, &network).unwrap();
    let mut num_right = 0;
    for _ in 0..500 {
        let (rows, load, expected) = decision(&mut draw);
        let rows = Rows {
            schema: &LEASE,
            rows: &rows,
            width: 5,
            context: &[load],
            mask: &ALL,
        };
        let mut scores = [0.0; ALL.len()];
        scorer.score_rows(rows, &mut scores).unwrap();
        let best = expected.iter().copied().fold(f32::MIN, f32::max);
        num_right += usize::from(expected[argmax(&scores)] == best);
    }
    // A choice by chance is right in about a third of them.
    assert!(
        num_right >= 400,
        "{num_right} of 500 choices are as good as the teacher's"
    );
}
