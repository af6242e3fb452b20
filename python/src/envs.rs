//! N environments whose observations are arrays of NumPy. Rust borrows them for the time of a call, so nothing is copied and
//! nothing here is unsafe; Python hands out read-only views.
//!
//! Masks and flags are kept in Rust and written out as bytes: whatever a user does to an array, no bool of ours is made of it.

mod around_steps;

use std::process;
use std::sync::{Mutex, PoisonError};

use numpy::{PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray1};
use pleach_env::Error;
use pleach_env::RandomActions;
use pleach_env::Seed;
use pleach_env::VecEnv;
use pleach_env::expert::ExpertPlanner;
use pleach_env::{AutoresetMode, Batch, BatchMut, VectorEnv as _};
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::{TreePolicy, Watched};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::actions::{self, Refusal};
use crate::buffers::{Buffers, lend};
use crate::candidates::{self, NOTHING, Told};
use crate::errors::{guarded, of_env, of_experiment, refused};
use crate::explain::reason;
use crate::figures::{self, FeatureRow};
use crate::picture::{HEIGHT, Strip, WIDTH};
use crate::policy::{Policy, masked};
use crate::settings::{autoreset, settings, settings_of_each};

/// Planners that are asked as experts, with their names.
type Experts = Vec<(String, ExpertPlanner)>;

/// What a step of one environment returns: reward, terminated, truncated, seconds.
type One = (f32, bool, bool, f64);

/// The same for N of them.
type Many<'py> = (
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<f64>>,
    bool,
);

/// N environments of one configuration.
#[pyclass(module = "pleach._pleach")]
pub(crate) struct Envs {
    envs: VecEnv,
    /// What observations show.
    view: &'static View,
    mode: AutoresetMode,
    takes_first: bool,
    buffers: Buffers,
    /// All that is not in the arrays; its own observations are empty.
    batch: Batch,
    begun: bool,
    /// Sums of our own rewards over the present episodes. `[N]`
    returns: Vec<f64>,
    num_threads: usize,
    /// The pool, and the process that made it: a forked child has none of its threads.
    pool: Option<(u32, ThreadPool)>,
    experts: Vec<Mutex<Experts>>,
    random: RandomActions,
    /// What environment 0 has done so far, where pictures are asked for.
    strip: Option<Strip>,
    /// What the last step decided in each, where that is kept. `[N]`
    decided: Option<Vec<Told>>,
}

#[pymethods]
impl Envs {
    #[new]
    fn new(
        py: Python<'_>,
        id: &str,
        changes: &str,
        num_envs: usize,
        mode: &str,
        inadmissible: &str,
        num_threads: usize,
    ) -> PyResult<Envs> {
        let mode = autoreset(mode)?;
        if !["raise", "first"].contains(&inadmissible) {
            let hint = "first is for checkers, which draw without a mask.";
            return Err(refused("inadmissible", inadmissible, "raise, first", hint));
        }
        if !(1..=65_536).contains(&num_envs) {
            return Err(refused("num_envs", num_envs, "1 to 65536", "64 is usual."));
        }
        if num_threads > 1024 {
            return Err(refused(
                "num_threads",
                num_threads,
                "0 to 1024",
                "0 takes all cores.",
            ));
        }
        let made = py.detach(|| {
            guarded(|| {
                let config = settings(id, changes)?;
                Ok((VecEnv::new(&config, num_envs, mode)?, config.view()?))
            })
        })?;
        let (envs, view) = made.map_err(of_env)?;
        let spaces = envs.spaces();
        let rows = num_envs * spaces.num_candidates;
        Ok(Envs {
            buffers: Buffers {
                global: PyArray1::zeros(py, num_envs * spaces.num_global, false).unbind(),
                candidates: PyArray1::zeros(py, rows * spaces.num_features, false).unbind(),
                mask: PyArray1::zeros(py, rows, false).unbind(),
            },
            batch: Batch {
                global: Vec::new(),
                candidates: Vec::new(),
                ..Batch::new(spaces, num_envs)
            },
            takes_first: inadmissible == "first",
            begun: false,
            returns: vec![0.0; num_envs],
            pool: None,
            experts: (0..num_envs).map(|_| Mutex::default()).collect(),
            random: RandomActions::new(Seed(0)),
            strip: None,
            decided: None,
            num_threads,
            envs,
            view,
            mode,
        })
    }

    /// The same in the middle of the same episodes, with arrays of its own. Planners that were asked as experts begin anew in it.
    fn fork(&self, py: Python<'_>) -> PyResult<Envs> {
        Ok(Envs {
            envs: self.envs.fork(),
            buffers: self.buffers.copied(py)?,
            batch: self.batch.clone(),
            returns: self.returns.clone(),
            pool: None,
            experts: self.experts.iter().map(|_| Mutex::default()).collect(),
            random: self.random.clone(),
            strip: self.strip.clone(),
            decided: self.decided.clone(),
            ..*self
        })
    }

    /// Puts copies of environment `from`, in the middle of its episode, into the places of others.
    fn fork_to(&mut self, py: Python<'_>, from: usize, to: Vec<usize>) -> PyResult<()> {
        for index in to.iter().chain([&from]) {
            self.check(*index)?;
        }
        self.with(py, |envs, batch| envs.fork_to(from, &to, batch))?;
        for index in to {
            self.returns[index] = self.returns[from];
            self.experts[index] = Mutex::default();
        }
        self.note();
        Ok(())
    }

    /// G, C, F.
    fn sizes(&self) -> (usize, usize, usize) {
        let spaces = self.envs.spaces();
        (spaces.num_global, spaces.num_candidates, spaces.num_features)
    }

    /// The arrays by name, flat and writeable: not for users.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.buffers.by_name(py)
    }

    /// Gives environment after environment the settings of its place (JSON), from its next reset on; where there are none it stays as it
    /// is.
    fn change(&mut self, py: Python<'_>, id: &str, changes: Vec<Option<String>>) -> PyResult<()> {
        let envs = &mut self.envs;
        let done = py.detach(|| guarded(|| envs.change(&settings_of_each(id, &changes)?)))?;
        done.map_err(of_env)
    }

    /// Begins an episode where there is a seed; the first time there is one everywhere.
    fn reset(&mut self, py: Python<'_>, seeds: Vec<Option<u64>>) -> PyResult<()> {
        if !self.begun && seeds.contains(&None) {
            let text =
                "reset_mask begins only some, and no episode has begun: call reset without a mask first";
            return Err(PyValueError::new_err(text));
        }
        let kept = self.experts.iter_mut().zip(&mut self.returns).zip(&seeds);
        for ((expert, total), _) in kept.filter(|(_, seed)| seed.is_some()) {
            expert.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
            *total = 0.0;
        }
        let begins_first = seeds.first().is_some_and(Option::is_some);
        self.with(py, |envs, batch| envs.reset_some(&seeds, batch))?;
        self.begun = true;
        if let Some(seed) = seeds.iter().flatten().next() {
            self.random = RandomActions::new(Seed(*seed));
        }
        if let Some(strip) = self.strip.as_mut().filter(|_| begins_first) {
            strip.clear();
        }
        self.note();
        Ok(())
    }

    /// Takes one action in each environment; the last result says whether some episode ended. Where one action is refused, no
    /// environment has moved.
    fn step<'py>(&mut self, py: Python<'py>, actions: PyReadonlyArray1<'py, i64>) -> PyResult<Many<'py>> {
        let actions = self.admissible(actions.as_slice()?)?;
        self.note_decided(&actions);
        self.with(py, |envs, batch| envs.step_into(&actions, batch))?;
        let ended = self.forget_experts();
        self.note();
        let batch = &self.batch;
        for (total, reward) in self.returns.iter_mut().zip(&batch.reward) {
            *total += f64::from(*reward);
        }
        Ok((
            PyArray1::from_slice(py, &batch.reward),
            PyArray1::from_slice(py, &batch.terminated),
            PyArray1::from_slice(py, &batch.truncated),
            PyArray1::from_slice(py, &batch.dt_s),
            ended,
        ))
    }

    /// The same for the only environment, without arrays.
    fn step_one(&mut self, py: Python<'_>, action: i64) -> PyResult<One> {
        let actions = self.admissible(&[action])?;
        self.note_decided(&actions);
        self.with(py, |envs, batch| envs.step_into(&actions, batch))?;
        self.forget_experts();
        self.note();
        let batch = &self.batch;
        Ok((
            batch.reward[0],
            batch.terminated[0],
            batch.truncated[0],
            batch.dt_s[0],
        ))
    }

    /// Random admissible actions, int64 `[N]`; the seed of the last reset decides them.
    fn random_actions<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let drawn = self
            .random
            .draw(&self.batch.mask, self.envs.spaces().num_candidates);
        PyArray1::from_vec(py, drawn.into_iter().map(|action| action as i64).collect())
    }

    /// The same for the first environment, without an array.
    fn random_action(&mut self) -> usize {
        let num_candidates = self.envs.spaces().num_candidates;
        let mask = &self.batch.mask[..num_candidates];
        self.random
            .draw(mask, num_candidates)
            .first()
            .copied()
            .unwrap_or(0)
    }

    /// What the last step added to the integrals that rewards are made of, each `[N]`; those of tenants, where they are kept, are
    /// `[N, T]`, zero beyond the tenants of an environment that has fewer.
    fn gained<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        figures::gained(py, &self.envs, &self.batch)
    }

    /// What the last step decided, each `[N]`, where that is kept.
    fn decided<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        candidates::decided(py, self.decided.as_deref().unwrap_or_default(), &self.batch)
    }

    /// What the present candidates are about, each `[N, C]`.
    fn offered<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        candidates::offered(py, &self.envs, self.envs.spaces().num_candidates)
    }

    /// Names of the tenants of environment `index`, in the order of their integrals.
    fn tenants(&self, index: usize) -> PyResult<Vec<String>> {
        self.check(index)?;
        let cluster = self.envs.envs().nth(index).and_then(|env| env.cluster());
        let tenants = cluster.map_or(&[][..], |cluster| &cluster.spec().tenants);
        Ok(tenants.iter().map(|tenant| tenant.name.clone()).collect())
    }

    /// Sums of rewards of the episodes that have just ended, zero elsewhere, `[N]`; those that follow begin at zero.
    fn take_returns<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let ends = self.batch.terminated.iter().zip(&self.batch.truncated);
        let rows = self.returns.iter_mut().zip(ends);
        let taken = rows.map(|(total, (terminated, truncated))| {
            if *terminated || *truncated {
                std::mem::take(total)
            } else {
                0.0
            }
        });
        PyArray1::from_vec(py, taken.collect())
    }

    /// Figures of the episode that environment `index` has just ended.
    fn episode<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(metrics) = self.batch.episode.get(index).copied().flatten() else {
            return Ok(None);
        };
        figures::episode(py, &metrics).map(Some)
    }

    /// The last observation of the episode that environment `index` has just ended, flat, where the next one has begun.
    fn last_observation<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        self.check(index)?;
        figures::last_observation(py, self.envs.spaces(), &self.batch, index)
    }

    /// What a policy or a planner would do in environment `index`; none where no candidate does what a planner plans.
    fn expert_action(&mut self, index: usize, policy: PyRef<'_, Policy>) -> PyResult<Option<usize>> {
        self.check(index)?;
        if self.is_over(index) {
            return Ok(Some(0));
        }
        if !policy.spec.is_planner() {
            let envs = &mut self.envs;
            return policy.with_ready(|ready| envs.choice_of(index, ready)).map(Some);
        }
        let name = policy.spec.name();
        let mut experts = self.experts[index].lock().unwrap_or_else(PoisonError::into_inner);
        if experts.iter().all(|(known, _)| known != name) {
            let planner = policy.spec.make_planner().map_err(of_experiment)?;
            experts.push((name.to_owned(), ExpertPlanner::new(planner)));
        }
        let known = experts.iter_mut().find(|(known, _)| known == name);
        let Some((_, expert)) = known else {
            return Ok(None);
        };
        let asked = guarded(|| self.envs.expert_action(index, expert))?;
        asked.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Scores that a policy gives the candidates of environment `index`, `[C]`; masked ones are minus infinity.
    fn scores<'py>(
        &mut self,
        py: Python<'py>,
        index: usize,
        policy: PyRef<'py, Policy>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        self.check(index)?;
        let num_candidates = self.envs.spaces().num_candidates;
        let mut scores = vec![0.0; num_candidates];
        if let Some(env) = self.envs.env_mut(index) {
            policy.with_ready(|ready| env.scores_of(ready, &mut scores))?;
        }
        let mask = &self.batch.mask[index * num_candidates..][..num_candidates];
        Ok(PyArray1::from_vec(py, masked(scores, mask)))
    }

    /// Why a tree gives a candidate of environment `index` its score; its own choice where none is named.
    fn explain(
        &mut self,
        index: usize,
        policy: PyRef<'_, Policy>,
        choice: Option<usize>,
    ) -> PyResult<String> {
        self.check(index)?;
        let tree = policy.spec.tree_policy().ok_or_else(|| {
            let hint = "pleach.distill makes a tree of it.";
            refused("policy", policy.spec.name(), "a tree", hint)
        })?;
        let mut text = Err("there is nothing to decide".to_string());
        let mut watched = Watched::new(tree.clone(), |tree: &TreePolicy, point, scores| {
            text = reason(tree, point, scores, choice)?;
            Ok(())
        });
        let asked = guarded(|| self.envs.choice_of(index, &mut watched))?;
        asked.map_err(|error| PyValueError::new_err(error.to_string()))?;
        text.map_err(PyValueError::new_err)
    }

    /// Keeps the integrals of each tenant from the next reset on.
    fn record_tenants(&mut self) {
        self.envs.record_tenants();
    }

    /// Keeps what steps decide, and what that commits from the next reset on.
    fn record_decided(&mut self) {
        self.envs.record_excess();
        self.decided = Some(vec![NOTHING; self.envs.num_envs()]);
    }

    /// Notes what happens from now on, for pictures.
    fn record(&mut self) {
        self.strip.get_or_insert_default();
    }

    /// A picture of environment 0: GPUs over time, coloured by job, above the number of waiting jobs. uint8 `[H, W, 3]`
    fn picture<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let pixels = self
            .strip
            .as_ref()
            .map_or_else(|| Strip::default().draw(), Strip::draw);
        PyArray1::from_vec(py, pixels).reshape([HEIGHT, WIDTH, 3])
    }

    /// The cluster of environment `index` in one line.
    fn text(&self, index: usize) -> String {
        let cluster = self.envs.envs().nth(index).and_then(|env| env.cluster());
        cluster.map_or_else(String::new, figures::line)
    }

    /// Features of an observation: global ones, then those of a candidate.
    fn features(&self) -> [Vec<FeatureRow>; 2] {
        figures::features(FeatureSchema::current(), self.view)
    }
}

impl Envs {
    /// Calls `work` without the interpreter's lock, on the threads of the pool, and with all buffers.
    fn with(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut VecEnv, BatchMut<'_>) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        self.ready_pool()?;
        let Envs {
            envs,
            buffers,
            batch,
            pool,
            begun,
            ..
        } = self;
        let (mut global, mut candidates) = (lend(py, &buffers.global)?, lend(py, &buffers.candidates)?);
        let mut mask = lend(py, &buffers.mask)?;
        let (global, candidates) = (global.as_slice_mut()?, candidates.as_slice_mut()?);
        let mask = mask.as_slice_mut()?;
        let done = py.detach(|| {
            guarded(|| {
                let lent = BatchMut {
                    global,
                    candidates,
                    ..batch.lend()
                };
                let done = match pool {
                    Some((_, pool)) => pool.install(|| work(envs, lent)),
                    None => work(envs, lent),
                };
                for (to, from) in mask.iter_mut().zip(&batch.mask) {
                    *to = i8::from(*from);
                }
                done
            })
        });
        // After a fault of ours an environment may be half stepped: it has to begin anew.
        *begun &= done.is_ok();
        done?.map_err(of_env)
    }

    /// A pool of this process, where there is more than one environment to share out.
    fn ready_pool(&mut self) -> PyResult<()> {
        let process = process::id();
        if self.envs.num_envs() == 1 || self.pool.as_ref().is_some_and(|(owner, _)| *owner == process) {
            return Ok(());
        }
        let built = ThreadPoolBuilder::new().num_threads(self.num_threads).build();
        let pool = built.map_err(|error| PyRuntimeError::new_err(format!("no threads: {error}")))?;
        // The threads of a parent's pool are not here to be ended.
        std::mem::forget(self.pool.replace((process, pool)));
        Ok(())
    }

    /// The actions if all of them can be taken, so that an error leaves every environment as it was.
    fn admissible(&self, actions: &[i64]) -> PyResult<Vec<usize>> {
        if !self.begun {
            return Err(PyValueError::new_err("no episode has begun: call reset first"));
        }
        let num_candidates = self.envs.spaces().num_candidates;
        let checked = actions::admissible(actions, &self.batch, num_candidates, self.mode, self.takes_first);
        checked.map_err(|refusal: Refusal| PyValueError::new_err(refusal.to_string()))
    }

    fn check(&self, index: usize) -> PyResult<()> {
        let known = self.envs.num_envs();
        if !self.begun {
            return Err(PyValueError::new_err("no episode has begun: call reset first"));
        }
        if index >= known {
            return Err(PyIndexError::new_err(format!(
                "environment {index}: allowed is 0 to {}",
                known - 1
            )));
        }
        Ok(())
    }
}
