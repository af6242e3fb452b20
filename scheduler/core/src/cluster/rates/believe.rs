//! A speed that turns out to be another one than was believed.

use crate::cluster::Cluster;
use crate::ids::{ClassId, GpuTypeId};

impl Cluster {
    /// From now on a class is believed to run at this speed on a type, and whatever follows from speeds with it. Running jobs keep
    /// the rates with which they were started.
    ///
    /// # Panics
    /// If the class cannot run there, or the speed is not a number above 0.
    pub fn believe_speed(&mut self, class: ClassId, kind: GpuTypeId, speed: f64) {
        let row = &mut self.facts.classes[class.index()].speed;
        assert!(
            row[kind.index()] > 0.0 && speed > 0.0 && speed.is_finite(),
            "a speed of {speed} in place of {}",
            row[kind.index()]
        );
        row[kind.index()] = speed;
        self.places.changes.note_speeds();
        self.facts.class_speed_max[class.index()] = row.iter().copied().fold(0.0, f64::max);
        let on_type = || self.facts.classes.iter().map(|class| class.speed[kind.index()]);
        self.facts.type_speed_max[kind.index()] = on_type().fold(0.0, f64::max);
        self.facts.type_value[kind.index()] = on_type().sum::<f64>() / self.facts.classes.len() as f64;
        let speeds = &self.facts.classes[class.index()].speed;
        self.facts.worth.learn(class, speeds, &self.facts.type_value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Capabilities;
    use crate::cluster_spec::{ClusterSpec, GpuTypeSpec, ModelClass, NodeGroup};

    #[test]
    fn a_speed_that_is_learned_is_as_if_it_had_been_known() {
        let mut spec = ClusterSpec::uniform(2, 4, 2);
        spec.gpu_types.push(GpuTypeSpec {
            name: "slow".into(),
            ..spec.gpu_types[0].clone()
        });
        spec.node_groups.push(NodeGroup {
            gpu_type: "slow".into(),
            ..spec.node_groups[0].clone()
        });
        let class = |name: &str, speed: [f64; 2]| ModelClass {
            name: name.into(),
            speed: speed.into(),
            ..ModelClass::default()
        };
        let of = |speeds: [[f64; 2]; 2]| {
            let classes = [class("one", speeds[0]), class("other", speeds[1])];
            Cluster::new(&spec, &classes, Capabilities::DEFAULT).unwrap()
        };
        let mut learned = of([[1.0, 0.4], [0.5, 0.45]]);
        learned.believe_speed(ClassId(1), GpuTypeId(0), 0.9);
        learned.believe_speed(ClassId(0), GpuTypeId(1), 0.2);
        let known = of([[1.0, 0.2], [0.9, 0.45]]);
        for class in [ClassId(0), ClassId(1)] {
            assert_eq!(learned.class(class).speed, known.class(class).speed);
            assert_eq!(learned.best_speed_of(class), known.best_speed_of(class));
            for kind in [GpuTypeId(0), GpuTypeId(1)] {
                assert_eq!(
                    learned.type_advantage(class, kind).to_bits(),
                    known.type_advantage(class, kind).to_bits()
                );
            }
        }
        assert_eq!(learned.facts.type_value, known.facts.type_value);
        assert_eq!(learned.facts.type_speed_max, known.facts.type_speed_max);
    }
}
