//! What becomes of one pending change in a crash.

use super::contents::Contents;
use super::disk::Change;
use super::faults::{FaultCounts, FaultKind};
use super::random::Generator;

/// What becomes of a pending change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Lost,
    Whole,
    /// Some pieces arrive, the rest of the range holds `fill`.
    Torn {
        unit: Unit,
        fill: Fill,
    },
    /// The file grows, the bytes do not arrive.
    SizeOnly {
        fill: Fill,
    },
    /// The bytes arrive, the file does not grow.
    DataOnly,
}

/// Between which bytes a write tears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Any two: the bytes before the tear arrive.
    Byte,
    /// Sectors of 512 bytes, each for itself.
    Sector,
    /// Pages of 4 KiB, each for itself.
    Page,
}

/// What is found where bytes did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// What was there before; nothing past the old end.
    Missing,
    Zeros,
    Garbage,
}

impl Outcome {
    /// A torn write, how drawn from the seed.
    pub(crate) fn torn(generator: &mut Generator) -> Self {
        Self::Torn {
            unit: generator.pick([Unit::Byte, Unit::Sector, Unit::Page]),
            fill: generator.pick([Fill::Missing, Fill::Zeros, Fill::Garbage]),
        }
    }

    /// Does to `contents` what is left of the change.
    pub(crate) fn apply(
        self,
        change: &Change,
        contents: &mut Contents,
        generator: &mut Generator,
        faults: &mut FaultCounts,
    ) {
        let Change::Write { offset, bytes } = change else {
            if self != Self::Lost {
                change.apply(contents);
            }
            return;
        };
        let end = offset + bytes.len() as u64;
        match self {
            Self::Lost => {}
            Self::Whole => contents.write(bytes, *offset),
            Self::Torn { unit, fill } => {
                let appends = end > contents.len();
                if tear(contents, *offset, bytes, unit, fill, generator) {
                    faults.count(if appends && fill == Fill::Garbage {
                        FaultKind::GarbageTail
                    } else {
                        FaultKind::TornWrite
                    });
                }
            }
            Self::SizeOnly { fill } => {
                let start = contents.len().max(*offset);
                if end > start {
                    contents.set_len(end);
                    fill_range(contents, start, end - start, fill, generator);
                    faults.count(FaultKind::SizeWithoutData);
                }
            }
            Self::DataOnly => {
                let room = contents.len().saturating_sub(*offset);
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                if room < bytes.len() {
                    faults.count(FaultKind::DataWithoutSize);
                }
                contents.write(bytes.get(..room).unwrap_or(bytes), *offset);
            }
        }
    }
}

/// Writes some pieces of `bytes`; false when it could not be torn and all arrived.
fn tear(
    contents: &mut Contents,
    offset: u64,
    bytes: &[u8],
    unit: Unit,
    fill: Fill,
    generator: &mut Generator,
) -> bool {
    let pieces = pieces(offset, bytes, unit, generator);
    if pieces.len() < 2 {
        contents.write(bytes, offset);
        return false;
    }
    // One at least is lost, or it would not be a tear. A cut at a byte loses what is after it.
    let surely_lost =
        if unit == Unit::Byte { pieces.len() - 1 } else { generator.index(pieces.len()) };
    for (i, (at, piece)) in pieces.iter().enumerate() {
        let arrives = if unit == Unit::Byte { i == 0 } else { generator.chance(500_000) };
        if i != surely_lost && arrives {
            contents.write(piece, *at);
        } else {
            fill_range(contents, *at, piece.len() as u64, fill, generator);
        }
    }
    true
}

/// Cuts a write into what arrives or not as one.
fn pieces<'a>(
    offset: u64,
    bytes: &'a [u8],
    unit: Unit,
    generator: &mut Generator,
) -> Vec<(u64, &'a [u8])> {
    let size: u64 = match unit {
        Unit::Byte => {
            let cut = generator.index(bytes.len());
            let (before, after) = bytes.split_at(cut);
            return vec![(offset, before), (offset + cut as u64, after)];
        }
        Unit::Sector => 512,
        Unit::Page => 4_096,
    };
    let (mut rest, mut at, mut pieces) = (bytes, offset, Vec::new());
    while !rest.is_empty() {
        let room = usize::try_from(size - at % size).unwrap_or(usize::MAX);
        let (piece, later) = rest.split_at(room.min(rest.len()));
        pieces.push((at, piece));
        at += piece.len() as u64;
        rest = later;
    }
    pieces
}

fn fill_range(
    contents: &mut Contents,
    offset: u64,
    len: u64,
    fill: Fill,
    generator: &mut Generator,
) {
    let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
    match fill {
        Fill::Missing => return,
        Fill::Zeros => {}
        Fill::Garbage => generator.fill(&mut bytes),
    }
    contents.write(&bytes, offset);
}

/// The odds of one random crash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    /// Changes from here on are lost, the one before is torn: a crash of a disk that keeps order.
    cut: Option<usize>,
    keep: u32,
    keep_names: u32,
    torn: u32,
    half: u32,
}

impl Profile {
    pub(crate) fn draw(generator: &mut Generator, pending: usize) -> Self {
        let cut = generator.chance(250_000).then(|| generator.index(pending + 1));
        Self {
            cut,
            keep: generator.pick([0, 100_000, 500_000, 900_000, 1_000_000]),
            keep_names: generator.pick([0, 500_000, 900_000, 1_000_000]),
            torn: generator.pick([0, 200_000, 1_000_000]),
            half: generator.pick([0, 0, 150_000]),
        }
    }

    /// What becomes of change `i`, one of names.
    pub(crate) fn name(&self, i: usize, generator: &mut Generator) -> Outcome {
        let kept = self.cut.map_or_else(|| generator.chance(self.keep_names), |cut| i < cut);
        if kept { Outcome::Whole } else { Outcome::Lost }
    }

    /// What becomes of change `i`, one of contents.
    pub(crate) fn contents(&self, i: usize, write: bool, generator: &mut Generator) -> Outcome {
        let kept = self.cut.map_or_else(|| generator.chance(self.keep), |cut| i < cut);
        let last = self.cut.is_some_and(|cut| i + 1 == cut);
        if write && generator.chance(self.half) {
            let fill = generator.pick([Fill::Zeros, Fill::Garbage]);
            return generator.pick([Half::Size, Half::Data]).outcome(fill);
        }
        match kept {
            false => Outcome::Lost,
            true if write && (last || (self.cut.is_none() && generator.chance(self.torn))) => {
                Outcome::torn(generator)
            }
            true => Outcome::Whole,
        }
    }
}

/// Which half of an append arrives.
#[derive(Clone, Copy)]
enum Half {
    Size,
    Data,
}

impl Half {
    fn outcome(self, fill: Fill) -> Outcome {
        match self {
            Self::Size => Outcome::SizeOnly { fill },
            Self::Data => Outcome::DataOnly,
        }
    }
}
