//! Synergy-OPT: how much CPU and memory each job should have if the cluster were one giant server, as a linear programme.
//!
//! Jobs of the same class and gang size are exchangeable, so the programme only counts how many of them get which option:
//!
//! ```text
//! max  sum speed(option) n(group, option)
//! s.t. sum over options n(group, option) = jobs of the group
//!      sum gpus x cores(option)  n <= cores of all servers;  the same for memory
//! ```
//!
//! An option slower than the proportional share is not offered: in whole numbers that is the paper's fairness row. The objective
//! is an upper bound of what any grant on these GPUs can reach at this moment, with or without TUNE, since servers have
//! walls and jobs cannot be halved.
//!
//! # Source
//! Synergy (OSDI'22), section 4.2.1, LP1.
//!
//! # Deviations
//! - The numbers are not held to be whole; what is left over by rounding down gets the option of which most was cut off.
//! - The paper places by a second programme (LP2), whose split jobs are then packed again. Here TUNE places, and what does
//!   not fit falls back as there.
//! - Where the programme has no answer (asked-for shares that do not fit, too many terms), the round is TUNE's.

use crate::shared::linear_program::{Column, Limits, LinearProgram};
use pleach_dealing::demand::{Choice, CpuMemory};

/// Jobs that are exchangeable.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Gang size.
    pub num_gpus: u32,
    /// Jobs.
    pub num_jobs: usize,
    /// What each may be given; at least one.
    pub choices: Vec<Choice>,
}

/// What is best for all together.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// Sum of the speeds.
    pub objective: f64,
    /// What each job of each group gets, fastest first. `[group][job]`
    pub picks: Vec<Vec<CpuMemory>>,
}

/// Solves the programme for servers that have `all` CPU and memory together; none where it has no answer.
#[must_use]
pub fn optimum(groups: &[Group], all: CpuMemory) -> Option<Optimum> {
    let mut program = LinearProgram::new();
    let mut columns: Vec<Vec<Column>> = Vec::new();
    let (mut cpu, mut memory) = (Vec::new(), Vec::new());
    for group in groups {
        let gpus = f64::from(group.num_gpus);
        let mut of_group = Vec::new();
        for (each, speed) in &group.choices {
            let column = program.column(*speed, 0.0, group.num_jobs as f64);
            of_group.push(column);
            for (terms, input) in [(&mut cpu, 0), (&mut memory, 1)] {
                if each[input] > 0.0 {
                    terms.push((column, gpus * each[input] / all[input].max(1.0)));
                }
            }
        }
        program.equals(
            of_group.iter().map(|column| (*column, 1.0)).collect(),
            group.num_jobs as f64,
        );
        columns.push(of_group);
    }
    for terms in [cpu, memory] {
        if !terms.is_empty() {
            program.at_most(terms, 1.0);
        }
    }
    let answer = program.solve(Limits::default()).ok()?;
    let picks = groups.iter().zip(&columns).map(|(group, columns)| {
        let numbers: Vec<f64> = columns.iter().map(|column| answer.value(*column)).collect();
        whole(group, &numbers)
    });
    Some(Optimum {
        objective: answer.objective,
        picks: picks.collect(),
    })
}

/// Whole numbers of jobs, fastest first.
fn whole(group: &Group, numbers: &[f64]) -> Vec<CpuMemory> {
    let mut counts: Vec<usize> = numbers
        .iter()
        .map(|number| (number + 1e-6).floor() as usize)
        .collect();
    let mut cut: Vec<(f64, usize)> = numbers
        .iter()
        .enumerate()
        .map(|(choice, number)| (number - counts[choice] as f64, choice))
        .collect();
    cut.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let given: usize = counts.iter().sum();
    for (_, choice) in cut.iter().cycle().take(group.num_jobs.saturating_sub(given)) {
        counts[*choice] += 1;
    }
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by(|a, b| group.choices[*b].1.total_cmp(&group.choices[*a].1));
    let picks = order
        .into_iter()
        .flat_map(|choice| std::iter::repeat_n(group.choices[choice].0, counts[choice]));
    picks.take(group.num_jobs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dealing::demand::worthwhile;

    fn group(num_jobs: usize, choices: &[(f64, f64)]) -> Group {
        Group {
            num_gpus: 1,
            num_jobs,
            choices: choices
                .iter()
                .map(|(cores, speed)| ([*cores, 1.0], *speed))
                .collect(),
        }
    }

    #[test]
    fn cores_go_where_they_bring_most() {
        // 12 cores for two jobs of A (3 cores: 1, 9 cores: 2.4) and one of B (1 core: 1). 11 are left for A: both need 3, and
        // the 5 that are left make five sixths of one fast: 1 + 2 + 5/6 x 1.4.
        let groups = [group(2, &[(3.0, 1.0), (9.0, 2.4)]), group(1, &[(1.0, 1.0)])];
        let best = optimum(&groups, [12.0, 100.0]).unwrap();
        assert!(
            (best.objective - (3.0 + 5.0 / 6.0 * 1.4)).abs() < 1e-6,
            "{}",
            best.objective
        );
        // One slow one for sure; of the other most was the fast one.
        assert_eq!(best.picks[0], [[9.0, 1.0], [3.0, 1.0]]);
        assert_eq!(best.picks[1], [[1.0, 1.0]]);
    }

    #[test]
    fn what_cannot_be_has_no_answer() {
        assert_eq!(optimum(&[group(2, &[(9.0, 2.4)])], [12.0, 100.0]), None);
    }

    #[test]
    fn only_what_may_pay_is_offered() {
        let each = |cores: f64, memory: f64| [cores, memory];
        let choices = vec![
            (each(3.0, 50.0), 1.0),
            (each(6.0, 50.0), 1.5),
            (each(6.0, 90.0), 1.5),
            (each(9.0, 50.0), 1.5),
            (each(3.0, 90.0), 1.2),
        ];
        let kept: Vec<CpuMemory> = worthwhile(choices).into_iter().map(|choice| choice.0).collect();
        assert_eq!(kept, [[3.0, 50.0], [3.0, 90.0], [6.0, 50.0]]);
    }
}
