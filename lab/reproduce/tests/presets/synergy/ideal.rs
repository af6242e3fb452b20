//! What CPU and memory a gang would like in Synergy's simulator, and the speed that it would have then.

/// GPUs, CPU cores, memory (GiB).
pub(super) type Vector = [f64; 3];

/// How a model's speed depends on CPU and memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// Time of an iteration with the proportional share, s.
    pub iteration_s: f64,
    /// Cores per GPU beyond which it does not become faster.
    pub cpu_cores: f64,
    /// Host memory per GPU beyond which it does not become faster, GiB.
    pub memory_gib: f64,
    /// Speed with both, relative to the proportional share.
    pub speedup: f64,
}

/// What a gang would like, and the speed that it would have then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ideal {
    pub(super) iteration_s: f64,
    pub(super) demand: Vector,
    pub(super) speedup: f64,
    /// Whether the gang would like more than a server has.
    pub(super) is_capped: bool,
}

impl Ideal {
    /// A gang wants what its model wants for each GPU, but no more than a server has; the speed then lies on the straight
    /// line over CPU cores between the proportional share and the ideal one.
    #[must_use]
    pub fn of(model: Sensitivity, num_gpus: u32, server: [f64; 3]) -> Ideal {
        let gpus = f64::from(num_gpus);
        let fair_cores = server[1] / server[0];
        let wanted = [gpus, gpus * model.cpu_cores, gpus * model.memory_gib];
        let demand = [gpus, wanted[1].min(server[1]), wanted[2].min(server[2])];
        let mut speedup = model.speedup;
        if demand != wanted {
            let slope = (model.speedup - 1.0) / (wanted[1] - gpus * fair_cores);
            speedup = 1.0 + slope * (demand[1] - gpus * fair_cores);
        }
        Ideal {
            iteration_s: model.iteration_s,
            demand,
            speedup,
            is_capped: demand != wanted,
        }
    }

    /// Cores, memory (GiB) and speed.
    #[must_use]
    pub fn figures(&self) -> (f64, f64, f64) {
        (self.demand[1], self.demand[2], self.speedup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: [f64; 3] = [8.0, 24.0, 500.0];

    #[test]
    fn a_gang_larger_than_a_servers_cores_gets_a_speed_on_the_straight_line() {
        // shufflenet wants 12 cores and 125 GiB per GPU for 2.89 times the speed. Four GPUs would want 48 cores: there are
        // 24, of which 12 are the proportional share. 1 + 1.89 x (24 - 12) / (48 - 12) = 1.63. Two GPUs want just 24.
        let shufflenet = Sensitivity {
            iteration_s: 0.615,
            cpu_cores: 12.0,
            memory_gib: 125.0,
            speedup: 2.89,
        };
        let (cores, memory_gib, speed) = Ideal::of(shufflenet, 4, SERVER).figures();
        assert_eq!((cores, memory_gib), (24.0, 500.0));
        assert!((speed - 1.63).abs() < 1e-12);
        assert_eq!(Ideal::of(shufflenet, 2, SERVER).figures(), (24.0, 250.0, 2.89));
    }
}
