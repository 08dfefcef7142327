//! [`RadixTree`]: values by number.
//!
//! A number is looked up five bits at a time, so a lookup takes as many steps as the highest number has groups of five bits: two for the first
//! thousand numbers, three for 32,768. It never compares, never moves what is there, and takes memory for the numbers that are in use only. The leaf
//! that became empty last stays where it is: numbers that come and go one after the other find it there.

use alloc::boxed::Box;

/// How many bits of a number each level decides.
const BITS: u32 = 5;
/// So many children or values a node has at most.
const WIDTH: usize = 1 << BITS;

/// Values by number.
#[derive(Debug)]
pub struct RadixTree<V> {
    root: Option<Node<V>>,
    /// How many levels there are below the root.
    height: u32,
    len: usize,
    /// A number of the leaf that became empty last.
    emptied: Option<u32>,
}

#[derive(Debug)]
enum Node<V> {
    Inner(Box<Slots<Node<V>>>),
    Leaf(Box<Slots<V>>),
}

#[derive(Debug)]
struct Slots<T> {
    /// Bit n: slot n is in use.
    occupied: u32,
    slots: [Option<T>; WIDTH],
}

impl<T> Slots<T> {
    fn empty() -> Box<Self> {
        Box::new(Slots { occupied: 0, slots: [const { None }; WIDTH] })
    }

    fn put(&mut self, at: usize, value: T) -> Option<T> {
        self.occupied |= 1 << at;
        self.slots[at].replace(value)
    }

    fn take(&mut self, at: usize) -> Option<T> {
        self.occupied &= !(1 << at);
        self.slots[at].take()
    }

    /// The first slot in use at or behind `at`.
    fn next(&self, at: usize) -> Option<usize> {
        let rest = self.occupied.checked_shr(at as u32)?;
        (rest != 0).then(|| at + rest.trailing_zeros() as usize)
    }
}

/// Which slot a number has in a node that has so many levels below it.
#[inline(always)]
fn slot(number: u32, height: u32) -> usize {
    (number >> (BITS * height)) as usize % WIDTH
}

/// Whether a tree with so many levels below its root is too low for a number.
#[inline(always)]
fn is_too_low(height: u32, number: u32) -> bool {
    u64::from(number) >> (BITS * (height + 1)) != 0
}

impl<V> Node<V> {
    /// A node with nothing in it, that has so many levels below it.
    fn empty(height: u32) -> Self {
        if height == 0 { Node::Leaf(Slots::empty()) } else { Node::Inner(Slots::empty()) }
    }

    /// Gives up the empty nodes on the way to a number; whether this one is empty.
    fn prune(&mut self, number: u32, height: u32) -> bool {
        match self {
            Node::Leaf(values) => values.occupied == 0,
            Node::Inner(children) => {
                let at = slot(number, height);
                if children.slots[at].as_mut().is_some_and(|child| child.prune(number, height - 1)) {
                    drop(children.take(at));
                }
                children.occupied == 0
            }
        }
    }

    /// Gives up the first leaf below a node; how many values went.
    fn drop_first_leaf(children: &mut Slots<Node<V>>) -> usize {
        let Some(at) = children.next(0) else { return 0 };
        let dropped = match &mut children.slots[at] {
            Some(Node::Leaf(values)) => values.occupied.count_ones() as usize,
            Some(Node::Inner(below)) => {
                let dropped = Self::drop_first_leaf(below);
                if below.occupied != 0 {
                    return dropped;
                }
                dropped
            }
            None => 0,
        };
        drop(children.take(at));
        dropped
    }

    /// The first value whose number is `from` or above, and its number; of numbers only the part counts that is decided here and below.
    fn next(&self, from: u32, height: u32) -> Option<(u32, &V)> {
        let at = slot(from, height);
        match self {
            Node::Leaf(values) => {
                let found = values.next(at)?;
                Some((found as u32, values.slots[found].as_ref()?))
            }
            Node::Inner(children) => {
                let number = |at: usize, (low, value)| ((at as u32) << (BITS * height) | low, value);
                let below = from & ((1 << (BITS * height)) - 1);
                let here = children.slots[at].as_ref().and_then(|child| child.next(below, height - 1));
                if let Some(found) = here {
                    return Some(number(at, found));
                }
                // One leaf may be empty.
                let behind = core::iter::successors(children.next(at + 1), |at| children.next(at + 1));
                let mut found = behind.filter_map(|at| Some((at, children.slots[at].as_ref()?.next(0, height - 1)?)));
                found.next().map(|(at, found)| number(at, found))
            }
        }
    }
}

impl<V> Default for RadixTree<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> RadixTree<V> {
    /// No values.
    pub const fn new() -> Self {
        RadixTree { root: None, height: 0, len: 0, emptied: None }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&V> {
        if is_too_low(self.height, number) {
            return None;
        }
        let (mut node, mut height) = (self.root.as_ref()?, self.height);
        loop {
            match node {
                Node::Leaf(values) => return values.slots[slot(number, 0)].as_ref(),
                Node::Inner(children) => node = children.slots[slot(number, height)].as_ref()?,
            }
            height -= 1;
        }
    }

    /// The value of a number, to be changed.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut V> {
        if is_too_low(self.height, number) {
            return None;
        }
        let (mut node, mut height) = (self.root.as_mut()?, self.height);
        loop {
            match node {
                Node::Leaf(values) => return values.slots[slot(number, 0)].as_mut(),
                Node::Inner(children) => node = children.slots[slot(number, height)].as_mut()?,
            }
            height -= 1;
        }
    }

    /// Enters a value; the one that had the number before.
    pub fn insert(&mut self, number: u32, value: V) -> Option<V> {
        while is_too_low(self.height, number) {
            self.height += 1;
            if let Some(root) = self.root.take() {
                let mut children = Slots::empty();
                children.put(0, root);
                self.root = Some(Node::Inner(children));
            }
        }
        let mut height = self.height;
        let mut node = self.root.get_or_insert_with(|| Node::empty(height));
        loop {
            let at = slot(number, height);
            match node {
                Node::Leaf(values) => {
                    let before = values.put(at, value);
                    self.len += usize::from(before.is_none());
                    return before;
                }
                Node::Inner(children) => {
                    height -= 1;
                    children.occupied |= 1 << at;
                    node = children.slots[at].get_or_insert_with(|| Node::empty(height));
                }
            }
        }
    }

    /// Takes a value out.
    pub fn remove(&mut self, number: u32) -> Option<V> {
        if is_too_low(self.height, number) {
            return None;
        }
        let (mut node, mut height) = (self.root.as_mut()?, self.height);
        let values = loop {
            match node {
                Node::Leaf(values) => break values,
                Node::Inner(children) => node = children.slots[slot(number, height)].as_mut()?,
            }
            height -= 1;
        };
        let value = values.take(slot(number, 0))?;
        self.len -= 1;
        if values.occupied == 0
            && let Some(before) = self.emptied.replace(number)
            && before >> BITS != number >> BITS
        {
            self.prune(before);
        }
        Some(value)
    }

    /// Gives up the empty nodes on the way to a number.
    #[cold]
    fn prune(&mut self, number: u32) {
        if !is_too_low(self.height, number)
            && let Some(root) = &mut self.root
        {
            root.prune(number, self.height);
        }
        // A root with nothing but its first child is one too many.
        while let Some(Node::Inner(children)) = &mut self.root
            && children.occupied == 1
        {
            self.root = children.take(0);
            self.height -= 1;
        }
    }

    /// Gives up the first leaf with its values, [`WIDTH`] at most; whether there was one. For giving up a tree in pieces.
    pub fn drop_first_leaf(&mut self) -> bool {
        match &mut self.root {
            Some(Node::Inner(children)) if children.occupied != 0 => self.len -= Node::drop_first_leaf(children),
            Some(_) => (self.root, self.len) = (None, 0),
            None => return false,
        }
        true
    }

    /// The first value whose number is `from` or above, and its number.
    pub fn next(&self, from: u32) -> Option<(u32, &V)> {
        if is_too_low(self.height, from) {
            return None;
        }
        self.root.as_ref()?.next(from, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Numbers that are near each other and far from each other.
    fn numbers() -> impl Iterator<Item = u32> {
        let mut state = 1_u64;
        (0..4000).map(move |index| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32 >> (index % 29)
        })
    }

    #[test]
    fn it_has_what_a_map_has() {
        let (mut tree, mut map) = (RadixTree::new(), BTreeMap::new());
        for (index, number) in numbers().enumerate() {
            if index % 3 == 2 {
                assert_eq!(tree.remove(number), map.remove(&number));
            } else {
                assert_eq!(tree.insert(number, index), map.insert(number, index));
            }
            assert_eq!(tree.len(), map.len());
            assert_eq!(tree.get(number), map.get(&number));
            assert_eq!(tree.get_mut(number), map.get_mut(&number));
            let from = number.wrapping_mul(7);
            assert_eq!(tree.next(from), map.range(from..).next().map(|(number, value)| (*number, value)));
        }
    }

    #[test]
    fn what_is_emptied_keeps_one_leaf() {
        let mut tree = RadixTree::new();
        let all: Vec<u32> = numbers().collect();
        all.iter().for_each(|&number| _ = tree.insert(number, ()));
        all.iter().for_each(|&number| _ = tree.remove(number));
        fn leaves<V>(node: &Node<V>) -> usize {
            match node {
                Node::Leaf(_) => 1,
                Node::Inner(children) => children.slots.iter().flatten().map(leaves).sum(),
            }
        }
        assert!(tree.is_empty() && tree.root.as_ref().map_or(0, leaves) == 1);
        tree.insert(1, ());
        tree.remove(1);
        assert!(tree.height == 0 && tree.root.as_ref().map_or(0, leaves) == 1);
    }

    #[test]
    fn it_is_given_up_leaf_by_leaf() {
        for highest in [0, 31, 32, 5000, u32::MAX] {
            let mut tree = RadixTree::new();
            numbers().map(|number| number.min(highest)).chain([highest]).for_each(|number| _ = tree.insert(number, ()));
            let (mut first, mut left) = (0, tree.len());
            while tree.drop_first_leaf() {
                assert!((1..=WIDTH).contains(&(left - tree.len())) || left == 0);
                left = tree.len();
                let next = tree.next(0).map(|(number, _)| number);
                assert!(next.is_none_or(|number| number >> BITS > first >> BITS || first == 0));
                first = next.unwrap_or(highest);
            }
            assert!(tree.is_empty() && tree.next(0).is_none() && tree.insert(7, ()).is_none() && tree.len() == 1);
        }
    }

    #[test]
    fn its_ends_are_numbers_too() {
        let mut tree = RadixTree::new();
        assert_eq!(tree.next(0), None);
        tree.insert(u32::MAX, 'z');
        tree.insert(0, 'a');
        assert_eq!((tree.get(0), tree.get(u32::MAX), tree.get(1)), (Some(&'a'), Some(&'z'), None));
        assert_eq!((tree.next(0), tree.next(1)), (Some((0, &'a')), Some((u32::MAX, &'z'))));
        tree.remove(u32::MAX);
        assert_eq!((tree.next(0), tree.next(1)), (Some((0, &'a')), None));
    }

    use std::vec::Vec;
}
