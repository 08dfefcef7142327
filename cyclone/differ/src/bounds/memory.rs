//! Memory, and pointers into it with the arithmetic that Cyclone gives them: modulo 2^64. What the real addresses are makes no
//! difference to a program, so objects lie at made-up ones.

use super::syntax::{Bound, Element, Pointer};

/// What ends a function early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// An exception, with the place in the function that threw it.
    Thrown(Exception, usize),
    /// What happens depends on more than Cyclone says: this input is not used.
    Unpredictable,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Exception {
    Bounds,
    Null,
    NoMemory,
    Odd,
    /// A loop has gone round too often.
    Tired,
}

/// Of every pointer, thin or fat. A thin one's `base` and `last` mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    pub current: u64,
    pub base: u64,
    pub last: u64,
}

impl Address {
    pub const NULL: Address = Address { current: 0, base: 0, last: 0 };

    /// Steps by a number of elements. Where an element's size is no power of two an overflow gives null.
    pub fn plus(self, size: u64, index: u64) -> Address {
        if size.is_power_of_two() {
            return Address { current: self.current.wrapping_add(size.wrapping_mul(index)), ..self };
        }
        let step = (index as i64).checked_mul(size as i64);
        match step.and_then(|step| (self.current as i64).checked_add(step)) {
            Some(current) => Address { current: current as u64, ..self },
            None => Address::NULL,
        }
    }

    /// The elements from here on; none outside.
    pub fn count(self, size: u64) -> u64 {
        match self.current < self.base || self.current >= self.last {
            true => 0,
            false => (self.last - self.current) / size,
        }
    }

    /// Where the element of a fat pointer is, if it is there.
    fn of_element(self, size: u64, index: u64) -> Option<u64> {
        let there = self.plus(size, index);
        let offset = there.current.wrapping_sub(there.base);
        (offset < there.last - there.base).then_some(there.current)
    }
}

const FIRST: u64 = 1 << 45;
/// So many bytes lie between two objects.
const APART: u64 = 1 << 24;
/// Objects with more elements are not made.
const MOST_ELEMENTS: u64 = 40;

struct Object {
    size: u64,
    cells: Vec<i128>,
}

#[derive(Default)]
pub struct Memory {
    objects: Vec<Object>,
}

impl Memory {
    /// A new object of these elements; the pointer is a fat one.
    pub fn object(&mut self, element: Element, cells: Vec<i128>) -> Address {
        let base = FIRST + APART * self.objects.len() as u64;
        let last = base + element.size() * cells.len() as u64;
        self.objects.push(Object { size: element.size(), cells });
        Address { current: base, base, last }
    }

    /// Whether an allocation of so many elements is possible, or why not.
    pub fn room(count: u64, element: Element, site: usize) -> Result<(), Stop> {
        match count.checked_mul(element.size()) {
            _ if count <= MOST_ELEMENTS => Ok(()),
            Some(bytes) if bytes >> 63 == 0 => Err(Stop::Unpredictable),
            _ => Err(Stop::Thrown(Exception::NoMemory, site)),
        }
    }

    /// The elements from an address up to and with the zero that ends them; so many are there whatever they are.
    pub fn terminated(&mut self, from: u64, size: u64, known: u64) -> Result<u64, Stop> {
        let mut last = known - 1;
        while *self.cell(from + size * last)? != 0 {
            last += 1;
        }
        Ok(last + 1)
    }

    pub fn cell(&mut self, address: u64) -> Result<&mut i128, Stop> {
        let place = address.wrapping_sub(FIRST);
        let object = self.objects.get_mut((place / APART) as usize).ok_or(Stop::Unpredictable)?;
        let (index, rest) = (place % APART / object.size, place % APART % object.size);
        object.cells.get_mut(index as usize).filter(|_| rest == 0).ok_or(Stop::Unpredictable)
    }
}

/// What an array variable of so many elements begins with.
pub fn array(count: u64, is_zeroterm: bool) -> Vec<i128> {
    let last = i128::from(count) - 1;
    (0..=last).map(|at| if is_zeroterm { last - at } else { at }).collect()
}

/// The address of `pointer[index]`, which must be there.
pub fn checked(
    memory: &mut Memory,
    pointer: Pointer,
    count: u64,
    at: Address,
    index: u64,
    site: usize,
) -> Result<u64, Stop> {
    let size = pointer.element.size();
    if pointer.bound == Bound::Fat {
        return at.of_element(size, index).ok_or(Stop::Thrown(Exception::Bounds, site));
    }
    if at.current == 0 {
        return Err(Stop::Thrown(Exception::Null, site));
    }
    let is_there = match pointer.is_zeroterm {
        true => index < memory.terminated(at.current, size, count)?,
        false => index < count,
    };
    match is_there {
        true => Ok(at.current + size * index),
        false => Err(Stop::Thrown(Exception::Bounds, site)),
    }
}

/// A pointer as one of another type; `count` are the elements that both or one of the types promise.
pub fn converted(
    memory: &mut Memory,
    from: Pointer,
    to: Pointer,
    count: u64,
    at: Address,
    site: usize,
) -> Result<Address, Stop> {
    let size = from.element.size();
    let at = match (from.bound == Bound::Fat, to.bound == Bound::Fat) {
        (true, false) => {
            let is_there = at.current >= at.base && at.current <= at.last && at.last - at.current >= size * count;
            if at.current != 0 && !is_there {
                return Err(Stop::Thrown(Exception::Bounds, site));
            }
            at
        }
        (false, true) => fattened(memory, from, count, at)?,
        (true, true) if from.is_zeroterm && !to.is_zeroterm => {
            Address { last: if at.last - at.base >= size { at.last - size } else { at.base }, ..at }
        }
        _ => at,
    };
    if to.bound != Bound::Fat && !to.is_nullable && at.current == 0 {
        return Err(Stop::Thrown(Exception::Null, site));
    }
    Ok(at)
}

/// A pointer as a fat one.
pub fn fattened(memory: &mut Memory, from: Pointer, count: u64, at: Address) -> Result<Address, Stop> {
    if from.bound == Bound::Fat || at.current == 0 {
        return Ok(if at.current == 0 && from.bound != Bound::Fat { Address::NULL } else { at });
    }
    let size = from.element.size();
    let count = match from.is_zeroterm {
        true => memory.terminated(at.current, size, count)?,
        false => count,
    };
    Ok(Address { base: at.current, last: at.current + size * count, ..at })
}
