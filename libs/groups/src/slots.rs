//! [`Slots`]: objects by number, close together, so that going through them touches those that are there and nothing else. A number says which of the objects
//! that had it is meant.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use crate::chunked::Chunked;

/// The number of an object in a table. Once the object is removed the number leads nowhere, for ever: it is not used again before another
/// generation, and no longer at all when those have run out.
pub struct Slot<T> {
    place: u32,
    generation: u32,
    _of: PhantomData<fn() -> T>,
}

impl<T> Slot<T> {
    /// The same number, of the object of which a `T` is a part or that is a part of it.
    pub(crate) fn of<U>(self) -> Slot<U> {
        Slot { place: self.place, generation: self.generation, _of: PhantomData }
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

impl<T> PartialEq for Slot<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.place, self.generation) == (other.place, other.generation)
    }
}

impl<T> Eq for Slot<T> {}

impl<T> Hash for Slot<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.place, self.generation).hash(state);
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({}, {})", self.place, self.generation)
    }
}

#[derive(Debug)]
struct Object<T> {
    value: T,
    place: u32,
}

#[derive(Debug)]
enum Place {
    /// Of an object that is at this index.
    Taken { index: u32, generation: u32 },
    /// Of none, of this generation if it is taken; and the next such place.
    Free { next: Option<u32>, generation: u32 },
    /// Of none for ever.
    Exhausted,
}

/// Objects by number.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    objects: Chunked<Object<T>>,
    places: Chunked<Place>,
    free: Option<u32>,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Slots { objects: Chunked::new(), places: Chunked::new(), free: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn insert(&mut self, value: T) -> Slot<T> {
        let index = number(self.objects.len());
        let (place, generation) = match self.free {
            Some(place) => {
                let Some(&Place::Free { next, generation }) = self.places.get(place as usize) else {
                    unreachable!("the list of free places leads to free places");
                };
                self.free = next;
                (place, generation)
            }
            None => (number(self.places.len()), 0),
        };
        let taken = Place::Taken { index, generation };
        match self.places.get_mut(place as usize) {
            Some(free) => *free = taken,
            None => self.places.push(taken),
        }
        self.objects.push(Object { value, place });
        Slot { place, generation, _of: PhantomData }
    }

    fn index(&self, slot: Slot<T>) -> Option<usize> {
        match self.places.get(slot.place as usize)? {
            Place::Taken { index, generation } if *generation == slot.generation => Some(*index as usize),
            _ => None,
        }
    }

    pub(crate) fn get(&self, slot: Slot<T>) -> Option<&T> {
        self.objects.get(self.index(slot)?).map(|object| &object.value)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot<T>) -> Option<&mut T> {
        let index = self.index(slot)?;
        self.objects.get_mut(index).map(|object| &mut object.value)
    }

    pub(crate) fn remove(&mut self, slot: Slot<T>) -> Option<T> {
        let index = self.index(slot)?;
        let removed = self.objects.swap_remove(index)?;
        if let Some(moved) = self.objects.get(index)
            && let Some(Place::Taken { index: of_moved, .. }) = self.places.get_mut(moved.place as usize)
        {
            *of_moved = number(index);
        }
        let next = self.free;
        if let Some(place) = self.places.get_mut(slot.place as usize) {
            *place = match slot.generation.checked_add(1) {
                Some(generation) => {
                    self.free = Some(slot.place);
                    Place::Free { next, generation }
                }
                None => Place::Exhausted,
            };
        }
        Some(removed.value)
    }

    /// Takes some object, and leaves its number to nothing: for tables that die. No number leads to it any more, nor is given again.
    pub(crate) fn take_any(&mut self) -> Option<T> {
        let object = self.objects.pop()?;
        if let Some(place) = self.places.get_mut(object.place as usize) {
            *place = Place::Exhausted;
        }
        Some(object.value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.objects.iter().map(|object| &object.value)
    }

    /// Frees some of the memory of a table without objects. Returns whether there may be more.
    pub(crate) fn shrink_step(&mut self) -> bool {
        self.free = None;
        self.places.pop_chunk()
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("four thousand million objects do not fit into a table")
}
