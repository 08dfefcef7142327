//! What semop(2) does to the values of a set: all of its operations, or none.

use alloc::vec::Vec;

use crate::error::{Errno, Result};

/// The highest value of a semaphore, and the most by which one is set back.
pub const MOST: i32 = 32_767;

/// One semaphore.
#[derive(Clone, Copy, Debug, Default)]
pub struct Semaphore {
    /// Its value.
    pub value: u16,
    /// The process that changed it last, or found it as it wanted it.
    pub last: u32,
    /// How many threads wait for it to be larger.
    pub waiting_for_more: u32,
    /// How many threads wait for it to be 0.
    pub waiting_for_zero: u32,
}

/// One of the operations of semop(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Which semaphore.
    pub number: u16,
    /// What is added; 0: it must be 0.
    pub add: i16,
    /// IPC_NOWAIT.
    pub waits: bool,
    /// SEM_UNDO.
    pub undo: bool,
}

/// What a call of semop(2) wants.
#[derive(Debug)]
pub struct Request {
    /// In their order.
    pub all: Vec<Operation>,
    /// The calling process.
    pub by: u32,
}

impl Request {
    /// Whether the process's end gives something back.
    pub fn undoes(&self) -> bool {
        self.all.iter().any(|operation| operation.undo)
    }

    /// Whether it changes a value, and does not only wait for zeros.
    pub fn alters(&self) -> bool {
        self.all.iter().any(|operation| operation.add != 0)
    }

    /// Whether one of the semaphores that it is about is 0.
    pub fn finds_zero(&self, semaphores: &[Semaphore]) -> bool {
        self.all.iter().any(|operation| semaphores[usize::from(operation.number)].value == 0)
    }

    /// The lowest and the highest semaphore that it is about.
    pub fn range(&self) -> (usize, usize) {
        let numbers = self.all.iter().map(|operation| usize::from(operation.number));
        numbers.fold((usize::MAX, 0), |(first, last), number| (first.min(number), last.max(number)))
    }
}

/// Why operations cannot be done: the first one that cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It must wait.
    Wait(Operation),
    /// It fails.
    Errno(Errno),
}

/// Does all of the operations, or none. `undo`: what the end of the process adds to each semaphore.
///
/// # Errors
/// [`Refused`]; EAGAIN is among them, for an operation that must not wait.
pub fn try_all(
    semaphores: &mut [Semaphore],
    mut undo: Option<&mut [i16]>,
    request: &Request,
) -> core::result::Result<(), Refused> {
    let mut outcome = Ok(());
    let mut done = 0;
    for operation in &request.all {
        let semaphore = &mut semaphores[usize::from(operation.number)];
        let adjust = undo.as_mut().filter(|_| operation.undo).map(|undo| &mut undo[usize::from(operation.number)]);
        if let Err(refused) = try_one(semaphore, adjust, operation) {
            outcome = Err(refused);
            break;
        }
        done += 1;
    }
    if outcome.is_err() {
        for operation in request.all[..done].iter().rev() {
            let semaphore = &mut semaphores[usize::from(operation.number)];
            semaphore.value = (i32::from(semaphore.value) - i32::from(operation.add)) as u16;
            if operation.undo
                && let Some(undo) = &mut undo
            {
                undo[usize::from(operation.number)] += operation.add;
            }
        }
    } else {
        request.all.iter().for_each(|operation| semaphores[usize::from(operation.number)].last = request.by);
    }
    outcome
}

fn try_one(
    semaphore: &mut Semaphore,
    adjust: Option<&mut i16>,
    operation: &Operation,
) -> core::result::Result<(), Refused> {
    let value = i32::from(semaphore.value) + i32::from(operation.add);
    if (operation.add == 0 && value != 0) || value < 0 {
        let refused = if operation.waits { Refused::Wait(*operation) } else { Refused::Errno(Errno::EAGAIN) };
        return Err(refused);
    }
    if value > MOST {
        return Err(Refused::Errno(Errno::ERANGE));
    }
    if let Some(adjust) = adjust {
        let less = i32::from(*adjust) - i32::from(operation.add);
        *adjust = i16::try_from(less).map_err(|_| Refused::Errno(Errno::ERANGE))?;
    }
    semaphore.value = value as u16;
    Ok(())
}

impl Semaphore {
    /// How many threads wait for what an operation waits for.
    pub fn waiting(&mut self, operation: &Operation) -> &mut u32 {
        if operation.add == 0 { &mut self.waiting_for_zero } else { &mut self.waiting_for_more }
    }
}

/// Checks that a semaphore may have each of some values.
///
/// # Errors
/// ERANGE.
pub fn check_values(values: &[u16]) -> Result<()> {
    if values.iter().any(|value| i32::from(*value) > MOST) { Err(Errno::ERANGE) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(number: u16, add: i16, undo: bool) -> Operation {
        Operation { number, add, waits: true, undo }
    }

    fn request(all: &[Operation]) -> Request {
        Request { all: all.to_vec(), by: 7 }
    }

    fn of(values: &[u16]) -> Vec<Semaphore> {
        values.iter().map(|value| Semaphore { value: *value, ..Semaphore::default() }).collect()
    }

    fn values(semaphores: &[Semaphore]) -> Vec<u16> {
        semaphores.iter().map(|semaphore| semaphore.value).collect()
    }

    #[test]
    fn operations_are_done_whole_or_not_at_all() {
        let mut semaphores = of(&[1, 0, 5]);
        let mut undo = [0; 3];
        let all = [operation(0, -1, true), operation(2, -3, true), operation(1, -1, true)];
        let outcome = try_all(&mut semaphores, Some(&mut undo), &request(&all));
        assert_eq!(outcome, Err(Refused::Wait(all[2])));
        assert_eq!((values(&semaphores), undo), (alloc::vec![1, 0, 5], [0; 3]));
        assert_eq!(try_all(&mut semaphores, Some(&mut undo), &request(&all[..2])), Ok(()));
        assert_eq!((values(&semaphores), undo), (alloc::vec![0, 0, 2], [1, 0, 3]));
        assert_eq!(semaphores[2].last, 7);
    }

    #[test]
    fn each_sees_what_those_before_it_did() {
        let mut semaphores = of(&[0]);
        let all = [operation(0, 2, false), operation(0, -2, false), operation(0, 0, false)];
        assert_eq!(try_all(&mut semaphores, None, &request(&all)), Ok(()));
        assert_eq!(values(&semaphores), [0]);
    }

    #[test]
    fn values_and_what_is_undone_have_bounds() {
        let mut semaphores = of(&[MOST as u16]);
        let outcome = try_all(&mut semaphores, None, &request(&[operation(0, 1, false)]));
        assert_eq!(outcome, Err(Refused::Errno(Errno::ERANGE)));
        let mut undo = [i16::MAX];
        let outcome = try_all(&mut semaphores, Some(&mut undo), &request(&[operation(0, -1, true)]));
        assert_eq!((outcome, values(&semaphores)), (Err(Refused::Errno(Errno::ERANGE)), alloc::vec![MOST as u16]));
        let (mut semaphores, mut undo) = (of(&[0]), [-i16::MAX]);
        assert_eq!(try_all(&mut semaphores, Some(&mut undo), &request(&[operation(0, 1, true)])), Ok(()));
        assert_eq!(undo, [i16::MIN]);
        let outcome = try_all(&mut semaphores, Some(&mut undo), &request(&[operation(0, 1, true)]));
        assert_eq!((outcome, values(&semaphores)), (Err(Refused::Errno(Errno::ERANGE)), alloc::vec![1]));
    }
}
