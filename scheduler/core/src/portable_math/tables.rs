//! Tables of logarithms and powers of two, worked out by the compiler to twice the precision of `f64`.

/// A number as the sum of two: the second is below a last place of the first, or takes what the first was cut by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub high: f64,
    pub low: f64,
}

/// An inverse of ten bits near that of the middle of a cell, and the logarithm of what it is the inverse of.
#[derive(Clone, Copy, Debug)]
pub(super) struct LnEntry {
    pub inverse: f64,
    /// Cut at 2^-42, so that the sum with a multiple of [`LN_2`] is exact.
    pub log: Pair,
}

/// Powers of two in the table of [`EXP`].
pub(super) const EXP_STEPS: usize = 128;
/// Cells of the table of [`LN`].
const LN_CELLS: usize = 128;
/// Bits of 0.6875, where the first cell begins.
pub(super) const LN_FIRST: u64 = 0x3fe6_0000_0000_0000;
/// The bits above say which cell.
pub(super) const LN_INDEX_SHIFT: u32 = 52 - LN_CELLS.trailing_zeros();

/// # Source
/// ln 2 = 0.693147180559945309417232121458176568...
const LN_2_PAIR: Pair = Pair {
    high: std::f64::consts::LN_2,
    low: 2.319_046_813_846_299_6e-17,
};
/// ln 2, the first part a multiple of 2^-42: its product with an exponent is exact.
pub(super) const LN_2: Pair = cut(LN_2_PAIR, 42);
/// ln 2 / 128, the first part a multiple of 2^-43: its product with a number of steps is exact.
pub(super) const EXP_STEP: Pair = cut(times(LN_2_PAIR, 1.0 / EXP_STEPS as f64), 43);

/// 2^(i / 128)
pub(super) static EXP: [Pair; EXP_STEPS] = {
    let mut table = [Pair { high: 1.0, low: 0.0 }; EXP_STEPS];
    let mut step = 1;
    while step < EXP_STEPS {
        table[step] = power(times(LN_2_PAIR, step as f64 / EXP_STEPS as f64));
        step += 1;
    }
    table
};

/// By the first bits of the number over those of [`LN_FIRST`]. Both cells at 1 have the inverse 1, so that nothing cancels there.
pub(super) static LN: [LnEntry; LN_CELLS] = {
    let nothing = LnEntry {
        inverse: 1.0,
        log: Pair { high: 0.0, low: 0.0 },
    };
    let mut table = [nothing; LN_CELLS];
    let mut cell = 0;
    while cell < LN_CELLS {
        let first = LN_FIRST + ((cell as u64) << LN_INDEX_SHIFT);
        let (from, to) = (
            f64::from_bits(first),
            f64::from_bits(first + (1 << LN_INDEX_SHIFT)),
        );
        if from != 1.0 && to != 1.0 {
            let inverse = (512.0 * 2.0 / (from + to) + 0.5) as i64 as f64 / 512.0;
            let log = logarithm(inverse);
            let log = Pair {
                high: -log.high,
                low: -log.low,
            };
            table[cell] = LnEntry {
                inverse,
                log: cut(log, 42),
            };
        }
        cell += 1;
    }
    table
};

/// The same number, the first part a multiple of 2^-bits.
const fn cut(number: Pair, bits: u32) -> Pair {
    let unit = (1_u64 << bits) as f64;
    let high = (number.high * unit) as i64 as f64 / unit;
    Pair {
        high,
        low: (number.high - high) + number.low,
    }
}

/// `a + b`, and what rounding took from it (Knuth).
const fn two_sum(a: f64, b: f64) -> Pair {
    let high = a + b;
    let part = high - a;
    let low = (a - (high - part)) + (b - part);
    Pair { high, low }
}

/// `a b`, and what rounding took from it (Dekker).
const fn two_product(a: f64, b: f64) -> Pair {
    let high = a * b;
    let (a_high, b_high) = (upper_half(a), upper_half(b));
    let (a_low, b_low) = (a - a_high, b - b_high);
    let low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low;
    Pair { high, low }
}

const fn add(a: Pair, b: Pair) -> Pair {
    let sum = two_sum(a.high, b.high);
    two_sum(sum.high, sum.low + a.low + b.low)
}

const fn times(a: Pair, b: f64) -> Pair {
    let product = two_product(a.high, b);
    two_sum(product.high, product.low + a.low * b)
}

const fn product(a: Pair, b: Pair) -> Pair {
    let product = two_product(a.high, b.high);
    two_sum(product.high, product.low + a.high * b.low + a.low * b.high)
}

/// `a / b` for a whole `b`.
const fn part(a: Pair, b: f64) -> Pair {
    let high = a.high / b;
    let back = two_product(high, b);
    two_sum(high, ((a.high - back.high) - back.low + a.low) / b)
}

/// e to the power of `x`, |x| < 1, by the series: 30 terms leave less than 2^-107.
const fn power(x: Pair) -> Pair {
    let mut sum = Pair { high: 1.0, low: 0.0 };
    let mut term = 30;
    while term > 0 {
        sum = add(Pair { high: 1.0, low: 0.0 }, part(product(x, sum), term as f64));
        term -= 1;
    }
    sum
}

/// ln `x` for `x` from 0.7 to 1.5: 2 (s + s^3 / 3 + s^5 / 5 + ...) with s = (x - 1) / (x + 1); 30 terms leave less than 2^-130.
const fn logarithm(x: f64) -> Pair {
    // Both are exact, for `x` has ten bits.
    let s = part(
        Pair {
            high: x - 1.0,
            low: 0.0,
        },
        x + 1.0,
    );
    let square = product(s, s);
    let mut sum = Pair { high: 0.0, low: 0.0 };
    let mut term = 30;
    while term > 0 {
        term -= 1;
        let one = Pair { high: 1.0, low: 0.0 };
        sum = add(part(one, (2 * term + 1) as f64), product(square, sum));
    }
    times(product(s, sum), 2.0)
}

/// The upper 26 bits of a mantissa.
#[inline]
pub(super) const fn upper_half(a: f64) -> f64 {
    f64::from_bits(a.to_bits() & !0x07ff_ffff)
}
