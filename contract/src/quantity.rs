//! Amounts as Kubernetes spells them (`resource.Quantity`): exact, compared by value, printed in the
//! canonical form that the API server gives back.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// An amount that isn't negative. Two spellings of one amount are equal.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// In billionths: Kubernetes knows nothing finer, and rounds up to it.
    nano: i128,
    form: Form,
}

/// In which family of suffixes it was spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `Ki`, `Mi`, …
    Binary,
    /// `m`, `k`, `M`, …, and none.
    Decimal,
    /// `e3`.
    Exponent,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoQuantity {
    /// It doesn't look like one.
    Spelling,
    /// Kubernetes counts to 2^63 - 1.
    TooLarge,
}

impl fmt::Display for NoQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spelling => "a quantity is a number with a suffix such as m, k, M, G, Ki, Mi or Gi",
            Self::TooLarge => "it is larger than any quantity can be",
        })
    }
}

impl std::error::Error for NoQuantity {}

const ONE: i128 = 1_000_000_000;
const MOST: i128 = (i64::MAX as i128) * ONE;
/// Digits that are looked at; the API server's own spelling has at most nineteen.
const LONGEST: usize = 28;
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nano: 0, form: Form::Decimal };

    /// So many bytes, printed as memory usually is.
    #[must_use]
    pub const fn bytes(bytes: u64) -> Self {
        Self { nano: bytes as i128 * ONE, form: Form::Binary }
    }

    /// So many thousandths, printed as processor time usually is.
    #[must_use]
    pub const fn milli(milli: u64) -> Self {
        Self { nano: milli as i128 * (ONE / 1000), form: Form::Decimal }
    }

    /// Is it nothing?
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// Is it a whole number of that unit?
    #[must_use]
    pub const fn is_multiple_of(self, unit: Self) -> bool {
        unit.nano != 0 && self.nano % unit.nano == 0
    }

    /// The next multiple of a unit that isn't less; itself where there is none.
    #[must_use]
    pub const fn round_up(self, unit: Self) -> Self {
        if unit.nano == 0 {
            return self;
        }
        let over = self.nano % unit.nano;
        if over == 0 { self } else { Self { nano: self.nano + unit.nano - over, form: self.form } }
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let sum = self.nano.saturating_add(other.nano);
        Self { nano: if sum > MOST { MOST } else { sum }, form: self.form }
    }

    /// What is left; nothing where more is taken than there is.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        let rest = self.nano - other.nano;
        Self { nano: if rest < 0 { 0 } else { rest }, form: self.form }
    }

    /// The least amount whose `ratio`-fold isn't less than this; `None` for a ratio of nothing.
    #[must_use]
    pub fn divided_up(self, ratio: Self) -> Option<Self> {
        let scaled = self.nano.checked_mul(ONE)?;
        if ratio.nano == 0 {
            return None;
        }
        let nano = scaled / ratio.nano + i128::from(scaled % ratio.nano != 0);
        Some(Self { nano: nano.min(MOST), form: self.form })
    }

    /// The greatest amount that isn't more than `ratio` times this.
    #[must_use]
    pub fn times(self, ratio: Self) -> Self {
        // Past what is exact, the whole part of the ratio is enough for a bound.
        let nano = match self.nano.checked_mul(ratio.nano) {
            Some(product) => product / ONE,
            None => self.nano.saturating_mul(ratio.nano / ONE),
        };
        Self { nano: nano.min(MOST), form: self.form }
    }

    fn canonical_form(self) -> Form {
        match self.form {
            // As Kubernetes does: what the suffix can't say exactly is said in thousandths.
            Form::Binary if self.nano < 1024 * ONE || self.nano % ONE != 0 => Form::Decimal,
            form => form,
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl FromStr for Quantity {
    type Err = NoQuantity;

    fn from_str(raw: &str) -> Result<Self, NoQuantity> {
        let raw = raw.strip_prefix('+').unwrap_or(raw);
        let end = raw.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(raw.len());
        let (number, suffix) = raw.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(NoQuantity::Spelling);
        }
        let (form, two, ten) = scale(suffix)?;
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{}{fraction}", whole.trim_start_matches('0'));
        let mantissa = if digits.is_empty() {
            0
        } else if digits.len() > LONGEST {
            // Longer than anything that is exact: a long fraction is no amount anybody means.
            return Err(if whole.len() > LONGEST { NoQuantity::TooLarge } else { NoQuantity::Spelling });
        } else {
            digits.parse::<i128>().map_err(|_| NoQuantity::Spelling)?
        };
        let places = i32::try_from(fraction.len()).map_err(|_| NoQuantity::Spelling)?;
        let nano = scaled(mantissa, two, ten + 9 - places).ok_or(NoQuantity::TooLarge)?;
        if nano > MOST { Err(NoQuantity::TooLarge) } else { Ok(Self { nano, form }) }
    }
}

/// What a suffix multiplies with: a power of two and one of ten.
fn scale(suffix: &str) -> Result<(Form, u32, i32), NoQuantity> {
    if let Some((_, ten)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        return Ok((Form::Decimal, 0, *ten));
    }
    if let Some(power) = BINARY.iter().position(|s| *s == suffix) {
        let power = u32::try_from(power).map_err(|_| NoQuantity::Spelling)?;
        return Ok((Form::Binary, 10 * power, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(NoQuantity::Spelling)?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NoQuantity::Spelling);
    }
    let power: i32 = exponent.parse().map_err(|_| NoQuantity::Spelling)?;
    Ok((Form::Exponent, 0, power))
}

/// `mantissa × 2^two × 10^ten`, rounded up to a whole number; `None` where it is too large.
fn scaled(mantissa: i128, two: u32, ten: i32) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    let power = |n: u32| 10_i128.checked_pow(n);
    if ten >= 0 {
        return mantissa.checked_mul(1_i128.checked_shl(two)?)?.checked_mul(power(ten.unsigned_abs())?);
    }
    // First what both sides have in common, so that nothing that fits overflows on the way.
    let mut ten = ten.unsigned_abs();
    let (mut mantissa, mut two) = (mantissa, two);
    let mut five_left = ten;
    while five_left > 0 && mantissa % 5 == 0 {
        mantissa /= 5;
        five_left -= 1;
    }
    let common = two.min(ten);
    two -= common;
    ten -= common;
    let product = mantissa.checked_mul(1_i128.checked_shl(two)?)?;
    match (1_i128.checked_shl(ten), 5_i128.checked_pow(five_left)) {
        (Some(twos), Some(fives)) if ten < 126 => {
            let divisor = twos.checked_mul(fives);
            // Divided by more than there is: it rounds up to the least there can be.
            Some(divisor.map_or(1, |d| product / d + i128::from(product % d != 0)))
        }
        _ => Some(1),
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        match self.canonical_form() {
            Form::Binary => {
                let (mut number, mut power) = (self.nano / ONE, 0);
                while number % 1024 == 0 && power + 1 < BINARY.len() {
                    number /= 1024;
                    power += 1;
                }
                write!(f, "{number}{}", BINARY.get(power).copied().unwrap_or_default())
            }
            form @ (Form::Decimal | Form::Exponent) => {
                let (mut number, mut power) = (self.nano, 0);
                while number % 1000 == 0 && power + 1 < DECIMAL.len() {
                    number /= 1000;
                    power += 1;
                }
                let (suffix, ten) = DECIMAL.get(power).copied().unwrap_or_default();
                match form {
                    Form::Exponent if ten != 0 => write!(f, "{number}e{ten}"),
                    _ => write!(f, "{number}{suffix}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
