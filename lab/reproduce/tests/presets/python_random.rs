//! The random numbers of Python's `random.Random(seed)`, as far as shuffling a list needs them.
//!
//! # Source
//! The generator is MT19937 (Matsumoto and Nishimura, ACM TOMACS 8, 1998) with its seeding by an array of one word;
//! bounded integers are drawn by rejection from the top bits (Python library reference, `random`).

const SIZE: usize = 624;
const PERIOD: usize = 397;

/// MT19937.
#[derive(Clone, Debug)]
pub(super) struct PythonRandom {
    state: [u32; SIZE],
    index: usize,
}

impl PythonRandom {
    /// The generator that `random.Random(seed)` is.
    pub(super) fn new(seed: u32) -> PythonRandom {
        let mut state = [0_u32; SIZE];
        let scramble = |before: u32| before ^ (before >> 30);
        state[0] = 19_650_218;
        for i in 1..SIZE {
            state[i] = scramble(state[i - 1])
                .wrapping_mul(1_812_433_253)
                .wrapping_add(i as u32);
        }
        let mut i = 1;
        for _ in 0..SIZE {
            state[i] = (state[i] ^ scramble(state[i - 1]).wrapping_mul(1_664_525)).wrapping_add(seed);
            i += 1;
            if i == SIZE {
                state[0] = state[SIZE - 1];
                i = 1;
            }
        }
        for _ in 0..SIZE - 1 {
            state[i] = (state[i] ^ scramble(state[i - 1]).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i += 1;
            if i == SIZE {
                state[0] = state[SIZE - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        PythonRandom { state, index: SIZE }
    }

    fn next_u32(&mut self) -> u32 {
        if self.index == SIZE {
            for i in 0..SIZE {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % SIZE] & 0x7fff_ffff);
                let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + PERIOD) % SIZE] ^ (y >> 1) ^ odd;
            }
            self.index = 0;
        }
        let mut y = self.state[self.index];
        self.index += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// A whole number below `bound`, which is above 0.
    fn below(&mut self, bound: u32) -> u32 {
        let bits = 32 - bound.leading_zeros();
        loop {
            let draw = self.next_u32() >> (32 - bits);
            if draw < bound {
                return draw;
            }
        }
    }

    /// `random.shuffle`.
    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            let j = self.below(i as u32 + 1) as usize;
            list.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shuffles_as_python_does() {
        // random.Random(5): getrandbits(32) four times; then five shuffles of [0, 1, 2], each from the same start.
        let mut random = PythonRandom::new(5);
        let draws: Vec<u32> = (0..4).map(|_| random.next_u32()).collect();
        assert_eq!(draws, DRAWS);
        let mut random = PythonRandom::new(5);
        let shuffled = [(); 5].map(|()| {
            let mut list = [0, 1, 2];
            random.shuffle(&mut list);
            list
        });
        assert_eq!(shuffled, SHUFFLED);
    }

    const DRAWS: [u32; 4] = [2675342405, 1097127993, 3185950873, 1539898300];
    const SHUFFLED: [[i32; 3]; 5] = [[0, 1, 2], [0, 1, 2], [1, 0, 2], [2, 0, 1], [1, 0, 2]];
}
