//! [`Layout`]: which fields the reports of a device have, as its report descriptor says (HID 1.11, 6.2.2 and 8).
//!
//! A descriptor is a little program: items of the kind *global* set what holds until they are set again, *local* ones what holds for the next field, and *main* ones make fields, and collections around them.

use alloc::vec::Vec;
use core::fmt;

use crate::items::{Item, items};

/// The longest report in bytes, with its number: what one page holds four of.
pub const LONGEST_REPORT: usize = 1024;
/// So many fields a device has at most, so many ranges of usages a field, and so deep are collections, and values that are put aside.
const MOST_FIELDS: usize = 256;
const MOST_USAGES: usize = 128;
const DEEPEST: usize = 32;
/// So many values all fields have together at most, and so many usages they can stand for: what a report says is found out in one go.
const MOST_VALUES: u32 = 1024;
const MOST_USAGES_IN_ALL: u32 = 4096;

/// Why a descriptor cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid(&'static str);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Which way a report goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the device.
    Input,
    /// To it.
    Output,
}

/// One or several values of a report that lie together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Which way its report goes.
    pub kind: Kind,
    /// The report's number; 0 if the device has one report only.
    pub report: u8,
    /// Where it begins, in bits from the report's beginning, which is its number if it has one.
    pub bit: u32,
    /// Bits of a value, 1 to 32.
    pub size: u32,
    /// How many values it has.
    pub count: u32,
    /// Its values stand for themselves. Else each is the number of one of the usages.
    pub is_variable: bool,
    /// Its values are changes.
    pub is_relative: bool,
    /// A value that it cannot have says nothing. Else the nearest that it can have is meant.
    pub has_null: bool,
    /// The least and the largest value.
    pub logical: (i32, i32),
    /// The same in a unit of length or the like.
    pub physical: (i32, i32),
    /// That unit, and ten to the power of what times it is meant.
    pub unit: (u32, i32),
    /// The usage of the collection for a purpose that it is in, and of the one around what belongs together physically.
    pub application: u32,
    /// See `application`.
    pub physical_usage: u32,
    /// Its usages, as ranges.
    usages: Vec<Usages>,
}

/// A range of usages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Usages {
    /// How many the field has before these.
    before: u64,
    first: u32,
    last: u32,
}

impl Field {
    /// The usage of that number. Where a field has more values than usages, the last is that of the rest.
    pub fn usage(&self, number: u32) -> Option<u32> {
        let behind = self.usages.partition_point(|range| range.before <= u64::from(number));
        let range = self.usages.get(behind.checked_sub(1)?)?;
        let usage = u64::from(range.first) + (u64::from(number) - range.before);
        if usage <= u64::from(range.last) { Some(usage as u32) } else { self.usage_of_rest() }
    }

    /// The usages of its values, or that its values can stand for.
    pub fn usages(&self) -> impl Iterator<Item = u32> {
        let rest = self.usage_of_rest();
        let named = self.usages.iter().flat_map(|range| range.first..=range.last);
        named.chain(core::iter::repeat(rest).map_while(|rest| rest)).take(self.usage_count() as usize)
    }

    /// The usage of values for which none is named.
    fn usage_of_rest(&self) -> Option<u32> {
        if self.is_variable { self.usages.last().map(|range| range.last) } else { None }
    }

    /// How many usages its values can stand for.
    fn usage_count(&self) -> u32 {
        if self.is_variable {
            self.count
        } else {
            let span = i64::from(self.logical.1) - i64::from(self.logical.0) + 1;
            span.clamp(0, MOST_VALUES.into()) as u32
        }
    }

    /// A value of a report, or 0 where that is too short.
    pub fn value(&self, report: &[u8], number: u32) -> i32 {
        let first = self.bit + number * self.size;
        let bit = |bit: u32| report.get((bit / 8) as usize).is_some_and(|byte| byte >> (bit % 8) & 1 != 0);
        let bits = (0..self.size).fold(0_u32, |value, at| value | u32::from(bit(first + at)) << at);
        if self.logical.0 < 0 {
            let unused = 32 - self.size;
            ((bits << unused) as i32) >> unused
        } else {
            bits as i32
        }
    }

    /// Whether a value is one that it can have; else it says nothing.
    pub fn is_valid(&self, value: i32) -> bool {
        (self.logical.0..=self.logical.1).contains(&value)
    }
}

/// What is known of a device's reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// All fields with usages.
    pub fields: Vec<Field>,
    /// Whether each report begins with its number.
    pub has_numbers: bool,
    /// The length of each report in bytes, with its number.
    lengths: Vec<(Kind, u8, usize)>,
}

/// What holds until it is set again.
#[derive(Clone, Copy, Default)]
struct Global {
    page: u16,
    logical: (i32, i32),
    /// The largest value as it stands there, where no value is below zero.
    logical_max: u32,
    physical: (i32, i32),
    unit: (u32, i32),
    size: u32,
    count: u32,
    report: u8,
}

/// What holds for the next field.
#[derive(Default)]
struct Local {
    usages: Vec<(u32, u32)>,
    first: Option<u32>,
}

struct Reading {
    global: Global,
    local: Local,
    aside: Vec<Global>,
    /// Kind and usage of the collections that are open.
    collections: Vec<(u8, u32)>,
    fields: Vec<Field>,
    /// Bits of each report so far.
    bits: Vec<(Kind, u8, u32)>,
    /// Values of all fields so far, and usages.
    values: u32,
    usages: u32,
}

/// Kinds of collections.
const PHYSICAL: u8 = 0;
const APPLICATION: u8 = 1;

impl Layout {
    /// Reads a report descriptor.
    ///
    /// # Errors
    /// It contradicts itself, or has more than it may.
    pub fn read(descriptor: &[u8]) -> Result<Self, Invalid> {
        let mut reading = Reading {
            global: Global::default(),
            local: Local::default(),
            aside: Vec::new(),
            collections: Vec::new(),
            fields: Vec::new(),
            bits: Vec::new(),
            values: 0,
            usages: 0,
        };
        for item in items(descriptor) {
            reading.take(item.ok_or(Invalid("it is cut off"))?)?;
        }
        if !reading.collections.is_empty() {
            return Err(Invalid("a collection has no end"));
        }
        let has_numbers = reading.bits.iter().any(|&(_, report, _)| report != 0);
        if has_numbers && reading.bits.iter().any(|&(_, report, _)| report == 0) {
            return Err(Invalid("some reports have numbers and some have none"));
        }
        let lengths = reading.bits.iter().map(|&(kind, report, bits)| (kind, report, bits.div_ceil(8) as usize));
        Ok(Layout { lengths: lengths.collect(), fields: reading.fields, has_numbers })
    }

    /// How long a report is, with its number; `None` if there is no such report.
    pub fn report_bytes(&self, kind: Kind, report: u8) -> Option<usize> {
        self.lengths.iter().find(|known| (known.0, known.1) == (kind, report)).map(|known| known.2)
    }

    /// How long the longest report is.
    pub fn longest(&self, kind: Kind) -> usize {
        self.lengths.iter().filter(|known| known.0 == kind).map(|known| known.2).max().unwrap_or(0)
    }
}

impl Reading {
    fn take(&mut self, item: Item) -> Result<(), Invalid> {
        match item.tag {
            0x80 => self.field(Some(Kind::Input), item)?,
            0x90 => self.field(Some(Kind::Output), item)?,
            0xb0 => self.field(None, item)?,
            0xa0 => {
                if self.collections.len() == DEEPEST {
                    return Err(Invalid("its collections are too deep"));
                }
                let usage = self.local.usages.first().map_or(0, |range| range.0);
                self.collections.push((item.unsigned() as u8, usage));
                self.local = Local::default();
            }
            0xc0 => {
                self.collections.pop().ok_or(Invalid("a collection ends that never began"))?;
                self.local = Local::default();
            }
            0x04 => self.global.page = item.unsigned() as u16,
            0x14 => self.global.logical.0 = item.signed(),
            0x24 => {
                self.global.logical.1 = item.signed();
                self.global.logical_max = item.unsigned();
            }
            0x34 => self.global.physical.0 = item.signed(),
            0x44 => self.global.physical.1 = item.signed(),
            0x54 => self.global.unit.1 = exponent(item),
            0x64 => self.global.unit.0 = item.unsigned(),
            0x74 => self.global.size = item.unsigned(),
            0x84 => match item.unsigned() {
                number @ 1..=255 => self.global.report = number as u8,
                _ => return Err(Invalid("a report has a number that there is not")),
            },
            0x94 => self.global.count = item.unsigned(),
            0xa4 if self.aside.len() == DEEPEST => return Err(Invalid("it puts too much aside")),
            0xa4 => self.aside.push(self.global),
            0xb4 => self.global = self.aside.pop().ok_or(Invalid("nothing was put aside"))?,
            0x08 => {
                let usage = item.usage(self.global.page);
                self.usages(usage, usage)?;
            }
            0x18 => self.local.first = Some(item.usage(self.global.page)),
            0x28 => {
                let first = self.local.first.take().ok_or(Invalid("a range of usages has no beginning"))?;
                self.usages(first, item.usage(self.global.page))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn usages(&mut self, first: u32, last: u32) -> Result<(), Invalid> {
        if last < first || first >> 16 != last >> 16 {
            return Err(Invalid("a range of usages ends before it begins"));
        }
        if self.local.usages.len() == MOST_USAGES {
            return Err(Invalid("a field has too many usages"));
        }
        self.local.usages.push((first, last));
        Ok(())
    }

    /// A field of a report; `None`: of one that is neither, which is passed over.
    fn field(&mut self, kind: Option<Kind>, item: Item) -> Result<(), Invalid> {
        const CONSTANT: u32 = 1;
        const VARIABLE: u32 = 2;
        const RELATIVE: u32 = 4;
        const NULL: u32 = 0x40;
        let local = core::mem::take(&mut self.local);
        let Some(kind) = kind else { return Ok(()) };
        let Global { size, count, report, .. } = self.global;
        let bit = self.grow(kind, report, size, count)?;
        if item.unsigned() & CONSTANT != 0 || local.usages.is_empty() || count == 0 || size == 0 {
            return Ok(());
        }
        if size > 32 || count > MOST_VALUES {
            return Err(Invalid("a field is too large"));
        }
        self.values += count;
        if self.fields.len() == MOST_FIELDS || self.values > MOST_VALUES {
            return Err(Invalid("it has too many fields"));
        }
        let mut logical = self.global.logical;
        if logical.0 >= 0 {
            // Many a device means by 0xff what has no sign.
            logical.1 = i32::try_from(self.global.logical_max).unwrap_or(i32::MAX);
        }
        if logical.1 < logical.0 {
            return Err(Invalid("a field's largest value is below its least"));
        }
        let mut before = 0;
        let usages = local.usages.iter().map(|&(first, last)| {
            let range = Usages { before, first, last };
            before += u64::from(last - first) + 1;
            range
        });
        let usages = usages.collect();
        let of_collection = |kind| self.collections.iter().rev().find(|open| open.0 == kind).map_or(0, |open| open.1);
        let field = Field {
            kind,
            report,
            bit,
            size,
            count,
            is_variable: item.unsigned() & VARIABLE != 0,
            is_relative: item.unsigned() & RELATIVE != 0,
            has_null: item.unsigned() & NULL != 0,
            logical,
            physical: self.global.physical,
            unit: self.global.unit,
            application: of_collection(APPLICATION),
            physical_usage: of_collection(PHYSICAL),
            usages,
        };
        self.usages += field.usage_count();
        if self.usages > MOST_USAGES_IN_ALL {
            return Err(Invalid("its fields have too many usages"));
        }
        self.fields.push(field);
        Ok(())
    }

    /// A report gets so many more values; where they begin.
    fn grow(&mut self, kind: Kind, report: u8, size: u32, count: u32) -> Result<u32, Invalid> {
        let known = self.bits.iter().position(|known| (known.0, known.1) == (kind, report));
        let at = known.unwrap_or_else(|| {
            self.bits.push((kind, report, if report == 0 { 0 } else { 8 }));
            self.bits.len() - 1
        });
        let begin = self.bits[at].2;
        let end = size.checked_mul(count).and_then(|more| begin.checked_add(more));
        let end = end.filter(|&end| end <= 8 * LONGEST_REPORT as u32).ok_or(Invalid("a report is too long"))?;
        self.bits[at].2 = end;
        Ok(begin)
    }
}

/// A power of ten, of which four bits are given.
fn exponent(item: Item) -> i32 {
    let value = item.signed();
    // Most devices use the four bits, some all.
    if value & !0xf == 0 && value > 7 { value - 16 } else { value.clamp(-8, 7) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// A mouse: three buttons, two changes of a byte.
    const MOUSE: &[u8] = &[
        5, 1, 9, 2, 0xa1, 1, 9, 1, 0xa1, 0, 5, 9, 0x19, 1, 0x29, 3, 0x15, 0, 0x25, 1, 0x95, 3, 0x75, 1, 0x81, 2, 0x95,
        1, 0x75, 5, 0x81, 1, 5, 1, 9, 0x30, 9, 0x31, 0x15, 0x81, 0x25, 0x7f, 0x75, 8, 0x95, 2, 0x81, 6, 0xc0, 0xc0,
    ];

    #[test]
    fn a_mouse_has_buttons_and_changes() {
        let layout = Layout::read(MOUSE).unwrap();
        assert_eq!((layout.fields.len(), layout.has_numbers, layout.longest(Kind::Input)), (2, false, 3));
        let (buttons, axes) = (&layout.fields[0], &layout.fields[1]);
        assert_eq!((buttons.usage(0), buttons.usage(2)), (Some(0x9_0001), Some(0x9_0003)));
        assert_eq!((axes.usage(0), axes.usage(1), axes.usage(7)), (Some(0x1_0030), Some(0x1_0031), Some(0x1_0031)));
        assert_eq!((axes.application, axes.physical_usage), (0x1_0002, 0x1_0001));
        assert!(axes.is_relative && axes.is_variable && !buttons.is_relative);
        let report = [0b101, 0xff, 0x7f];
        assert_eq!([0, 1, 2].map(|number| buttons.value(&report, number)), [1, 0, 1]);
        assert_eq!([0, 1].map(|number| axes.value(&report, number)), [-1, 127]);
        assert_eq!(axes.value(&report[..1], 0), 0);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let read = |descriptor: &[u8]| Layout::read(descriptor).map_err(|Invalid(why)| why);
        assert_eq!(read(&[0xc0]), Err("a collection ends that never began"));
        assert_eq!(read(&[0xa1, 1]), Err("a collection has no end"));
        assert_eq!(read(&[0xb4]), Err("nothing was put aside"));
        assert_eq!(read(&[0x29, 1]), Err("a range of usages has no beginning"));
        assert_eq!(read(&[0x85, 0]), Err("a report has a number that there is not"));
        assert_eq!(read(&[9, 1, 0x75, 32, 0x96, 1, 1, 0x81, 2]), Err("a report is too long"));
        assert_eq!(read(&[0x77, 0xff, 0xff, 0xff, 0xff, 0x95, 9, 0x81, 2]), Err("a report is too long"));
        assert_eq!(read(&[9, 1, 0x75, 40, 0x95, 1, 0x81, 2]), Err("a field is too large"));
        let below = [9, 1, 0x15, 5, 0x25, 4, 0x75, 8, 0x95, 1, 0x81, 2];
        assert_eq!(read(&below), Err("a field's largest value is below its least"));
        assert_eq!(read(&[0xa1; 2 * (DEEPEST + 1)]), Err("its collections are too deep"));
        assert_eq!(read(&[0xa4; DEEPEST + 1]), Err("it puts too much aside"));
    }

    #[test]
    fn numbered_reports_have_places_of_their_own() {
        let one = |report| [0x85, report, 5, 9, 9, 1, 0x25, 1, 0x75, 8, 0x95, 1, 0x81, 2];
        let layout = Layout::read(&[one(1), one(2), one(1)].concat()).unwrap();
        let places: vec::Vec<(u8, u32)> = layout.fields.iter().map(|field| (field.report, field.bit)).collect();
        assert_eq!(places, [(1, 8), (2, 8), (1, 16)]);
        assert_eq!((layout.report_bytes(Kind::Input, 1), layout.report_bytes(Kind::Input, 2)), (Some(3), Some(2)));
        assert_eq!(layout.report_bytes(Kind::Output, 1), None);
    }
}
