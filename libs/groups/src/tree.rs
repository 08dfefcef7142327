//! The arithmetic of a [`Tree`] of budgets, all of it under one lock.
//!
//! # Invariants
//!
//! 1. A node's `counts` are what its own charges and those of all nodes below it hold, what lies in stocks included.
//! 2. `used` is what the node's counts cost, plus what those below it have reserved and not used: own counts x costs, plus the
//!    [contribution](Node::contribution) of each child. A child contributes what it uses, at least what it reserved.
//! 3. A charge that is admitted leaves `used <= bound` in every node whose `used` it raised. Only a lower bound, higher costs, or what a bundle
//!    charges whatever the bounds can put `used` above `bound`, and then nothing that costs anything is admitted until it has come down.
//! 4. While a node [is short](Node::is_short), every stock at it or below it either holds nothing, or has not yet seen the present value of
//!    [`recall`](Tree::recall), and gives back what it holds at its next operation.
//!
//! # Why a lock
//!
//! A charge changes up to nine nodes, each in a count, a sum, and a peak. With a word per node, changed by `fetch_add` and taken back when
//! an ancestor refuses, nothing is ever admitted falsely, if every sum is raised before it is compared with its bound; but others are refused falsely
//! meanwhile, and a new calibration, a reservation, a transfer between two branches and the end of a budget have no moment at which they happen.
//! Under the lock all of them are exact: nothing is admitted falsely, nothing refused falsely, and a reading is of one moment. What is charged and given
//! back often does not come here: it goes through a [`Stock`](crate::Stock), which takes from here by the batch.
//!
//! Nothing of the caller's runs under the lock, and nothing is allocated or freed there but the list of nodes, when a node is made.

use alloc::vec::Vec;

use refs::SpinLock;

use crate::budget::{Denied, Limits, Usage};
use crate::sync::{AtomicU64, Ordering};
use crate::{Budget, Class, Cost};

/// How many levels there can be below the root.
pub const DEEPEST: u8 = 8;

/// The most objects of one class in one node: sums of counts times [costs](Cost::MOST) fit into 128 bits.
const MOST_OBJECTS: u64 = 1 << 63;

/// A batch for a stock leaves at least so many times itself free; and a node stays short while less than one part in so many is free.
const SHARE: u128 = 4;

/// For how many charges that stocks take one by one a node stays short at most, if it does not exceed its bound.
const SHORT_TAKES: u32 = 256;

/// All budgets of a program, or of a machine: a root and what was made below it.
pub struct Tree<C: Class> {
    nodes: SpinLock<Nodes<C>>,
    /// Changed under the lock, whenever stocks may have to give back what they hold.
    recall: AtomicU64,
}

impl<C: Class> core::fmt::Debug for Tree<C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tree").field("root", &self.root().usage()).finish_non_exhaustive()
    }
}

impl<C: Class> Default for Tree<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Class> Tree<C> {
    /// A tree with a root that has no bound, and the costs that the classes assume.
    pub fn new() -> Self {
        let nodes = Nodes {
            costs: C::table(|class| class.assumed().capped()),
            all: Vec::from([Node::root()]),
            vacant: Vec::new(),
        };
        Tree { nodes: SpinLock::new(nodes), recall: AtomicU64::new(0) }
    }

    /// The budget above all others.
    pub fn root(&self) -> Budget<'_, C> {
        Budget::new(self, NodeName::ROOT)
    }

    /// What a class costs.
    pub fn cost(&self, class: C) -> Cost {
        self.with(|nodes| nodes.cost(class))
    }

    /// Has classes cost what `of` says, those that exist too: budgets keep counts, and what they use is computed anew. That takes one pass over all
    /// budgets, with the tree locked. Where something costs more now, a budget may use more than its bound; then it admits nothing until
    /// it has come down.
    pub fn set_costs(&self, of: impl Fn(C) -> Cost) {
        let costs = C::table(|class| of(class).capped());
        self.with(|nodes| {
            nodes.costs = costs;
            nodes.compute_all();
            self.recall_stocks();
        });
    }

    /// Has one class cost something else: see [`set_costs`](Self::set_costs).
    pub fn set_cost(&self, class: C, cost: Cost) {
        self.with(|nodes| {
            nodes.costs.as_mut()[class.index()] = cost.capped();
            nodes.compute_all();
            self.recall_stocks();
        });
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Nodes<C>) -> R + Send) -> R {
        self.nodes.with(f)
    }

    /// Has every stock look whether it must give back what it holds. The tree is locked.
    pub(crate) fn recall_stocks(&self) {
        let recalls = self.recall.load(Ordering::Relaxed);
        self.recall.store(recalls + 1, Ordering::Relaxed);
    }

    /// How often stocks were called to look. A stock that reads an old value is one that has not yet learned of what was changed.
    #[inline(always)]
    pub(crate) fn recalls(&self) -> u64 {
        self.recall.load(Ordering::Relaxed)
    }

    /// Charges a node and its ancestors, or nobody.
    pub(crate) fn admit(&self, name: NodeName, class: C, count: u32) -> Result<(), Denied> {
        self.with(|nodes| nodes.admit(name, class, count).map_err(|refusal| self.refuse(nodes, refusal)))
    }

    /// As [`learn`](Self::learn), where nothing can be given back for what is wanted: the refusal counts.
    pub(crate) fn refuse(&self, nodes: &mut Nodes<C>, refusal: Refusal) -> Denied {
        if let Some(node) = refusal.by.and_then(|index| nodes.all.get_mut(index)) {
            node.denied += 1;
        }
        self.learn(refusal)
    }

    /// Has stocks give back what they hold if a node has become short. The tree is locked.
    pub(crate) fn learn(&self, refusal: Refusal) -> Denied {
        if refusal.is_news {
            self.recall_stocks();
        }
        refusal.denied
    }
}

/// A node of a tree: its place, and which of those that had this place. No place is used again once its generations have run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeName(u64);

impl NodeName {
    const ROOT: NodeName = NodeName(0);

    /// In one word, so that two names are compared by one instruction.
    fn new(index: u32, generation: u32) -> Self {
        NodeName(u64::from(generation) << 32 | u64::from(index))
    }

    fn index(self) -> usize {
        self.0 as u32 as usize
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// So many objects of each of some classes that follow each other: who has few classes goes through those only.
#[derive(Clone, Copy)]
pub(crate) struct Counts<'a> {
    /// The index of the first class.
    pub(crate) first: usize,
    pub(crate) counts: &'a [u32],
}

impl Counts<'_> {
    /// Each with what a table of all classes has for its class.
    fn with<'b, T>(&'b self, all: &'b mut [T]) -> impl Iterator<Item = (&'b mut T, u64)> + 'b {
        all[self.first..].iter_mut().zip(self.counts).map(|(of_class, &count)| (of_class, u64::from(count)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has an owner.
    Open,
    /// Its owner has let go of it; it goes when nothing is charged to it or below it any more.
    Closed,
    /// There is no node here.
    Vacant,
}

/// That a node is short of room, and until when: until it has as much as was asked for and a good part of its bound; or stocks have taken so many charges
/// one by one that whoever was refused had time to ask again.
#[derive(Clone, Copy)]
struct Short {
    wanted: u128,
    takes: u32,
}

struct Node<C: Class> {
    generation: u32,
    state: State,
    parent: Option<NodeName>,
    depth: u8,
    children: u32,
    bound: u128,
    reserved: u128,
    counts: C::PerClass<u64>,
    used: u128,
    peak: u128,
    denied: u64,
    overruns: u64,
    /// It refused something: stocks at it and below it hold nothing.
    short: Option<Short>,
}

impl<C: Class> Node<C> {
    fn root() -> Self {
        Node {
            generation: 0,
            state: State::Open,
            parent: None,
            depth: 0,
            children: 0,
            bound: u128::MAX,
            reserved: 0,
            counts: C::table(|_| 0),
            used: 0,
            peak: 0,
            denied: 0,
            overruns: 0,
            short: None,
        }
    }

    /// What its parent is charged for it when it uses `used`.
    fn contribution(&self, used: u128) -> u128 {
        self.reserved.max(used)
    }

    fn set_used(&mut self, used: u128) {
        self.used = used;
        self.peak = self.peak.max(used);
    }

    /// Becomes short of so much. Returns whether it was not short before.
    fn fall_short(&mut self, wanted: u128) -> bool {
        match &mut self.short {
            Some(short) => {
                short.wanted = short.wanted.max(wanted);
                false
            }
            None => {
                self.short = Some(Short { wanted, takes: SHORT_TAKES });
                true
            }
        }
    }

    /// Whether it is still short.
    fn is_short(&mut self) -> bool {
        self.short = self.short.filter(|short| {
            let has_room = self.used + short.wanted.max(self.bound / SHARE) <= self.bound;
            let was_long_enough = short.takes == 0 && self.used <= self.bound;
            !has_room && !was_long_enough
        });
        self.short.is_some()
    }

    fn is_empty(&self) -> bool {
        self.children == 0 && self.counts.as_ref().iter().all(|&count| count == 0)
    }
}

/// Why something was not charged.
#[derive(Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) denied: Denied,
    /// Where the node stands that refused.
    by: Option<usize>,
    /// The node that refused has become short by it.
    pub(crate) is_news: bool,
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        Refusal { denied, by: None, is_news: false }
    }
}

pub(crate) struct Nodes<C: Class> {
    costs: C::PerClass<Cost>,
    all: Vec<Node<C>>,
    /// Places of `all` without a node. Has room for all of them, so that nothing is allocated when a node goes.
    vacant: Vec<u32>,
}

impl<C: Class> Nodes<C> {
    pub(crate) fn cost(&self, class: C) -> Cost {
        self.costs.as_ref()[class.index()]
    }

    /// What so many objects cost at the kill.
    fn price(&self, class: C, count: u32) -> u128 {
        u128::from(self.cost(class).eager) * u128::from(count)
    }

    fn place(&self, name: NodeName) -> Option<usize> {
        let index = name.index();
        let node = self.all.get(index)?;
        (node.generation == name.generation() && node.state != State::Vacant).then_some(index)
    }

    fn open(&self, name: NodeName) -> Result<&Node<C>, Denied> {
        let node = &self.all[self.place(name).ok_or(Denied::Ended)?];
        if node.state == State::Open { Ok(node) } else { Err(Denied::Ended) }
    }

    /// As [`open`](Self::open), where no ancestor has ended either.
    fn open_below_all(&self, name: NodeName) -> Result<(), Denied> {
        let mut above = self.open(name)?.parent;
        while let Some(name) = above {
            above = self.all[self.place(name).ok_or(Denied::Ended)?].parent;
        }
        Ok(())
    }

    /// Whether `name` and all its ancestors would stay within their bounds if it used so much more; if not, the place of the first that would not, and how much it is asked for. A node
    /// whose own use does not rise, because of a reservation below it, is not asked.
    fn has_room(&self, name: NodeName, more: u128) -> Result<Result<(), (usize, u128)>, Denied> {
        let (mut more, mut at) = (more, Some(name));
        while let Some(name) = at {
            let index = self.place(name).ok_or(Denied::Ended)?;
            let node = &self.all[index];
            let used = node.used + more;
            if more > 0 && used > node.bound {
                return Ok(Err((index, more)));
            }
            more = node.contribution(used) - node.contribution(node.used);
            at = node.parent;
        }
        Ok(Ok(()))
    }

    /// As [`has_room`](Self::has_room); who has none is short from now on.
    fn ask(&mut self, name: NodeName, more: u128) -> Result<(), Refusal> {
        self.has_room(name, more)?.map_err(|(index, more)| {
            let node = &mut self.all[index];
            // What could not be had from an empty budget is not missing because of stocks.
            let is_news = more <= node.bound && node.fall_short(more);
            Refusal { denied: Denied::Full { depth: node.depth }, by: Some(index), is_news }
        })
    }

    /// Counts a refusal of the node of that depth, which is `name` or above it.
    pub(crate) fn count_refusal(&mut self, name: NodeName, depth: u8) {
        let mut at = Some(name);
        while let Some(index) = at.and_then(|name| self.place(name)) {
            let node = &mut self.all[index];
            if node.depth == depth {
                node.denied += 1;
                return;
            }
            at = node.parent;
        }
    }

    /// Charges a node and its ancestors, or nobody.
    pub(crate) fn admit(&mut self, name: NodeName, class: C, count: u32) -> Result<(), Refusal> {
        self.open(name)?;
        if self.all[0].counts.as_ref()[class.index()] > MOST_OBJECTS - u64::from(count) {
            return Err(Denied::Full { depth: 0 }.into());
        }
        self.ask(name, self.price(class, count))?;
        self.add(name, class, count);
        Ok(())
    }

    /// Charges `count`, and up to `batch` if that leaves everybody room. Returns how many it is.
    pub(crate) fn admit_batch(
        &mut self,
        name: NodeName,
        class: C,
        count: u32,
        batch: u32,
        is_short: bool,
    ) -> Result<u32, Refusal> {
        let room = self.price(class, batch) * (1 + SHARE);
        let taken = if batch > count && !is_short && self.has_room(name, room)?.is_ok() { batch } else { count };
        self.admit(name, class, taken)?;
        if is_short {
            self.note_take(name);
        }
        Ok(taken)
    }

    /// Whether a stock at `name` may keep nothing: a node on the way to the root is short, or its budget or one above it has ended. A node that has room
    /// again stops to be short here.
    pub(crate) fn is_short(&mut self, name: NodeName) -> bool {
        if self.open(name).is_err() {
            return true;
        }
        let (mut is_short, mut at) = (false, Some(name));
        while let Some(name) = at {
            let Some(index) = self.place(name) else { return true };
            let node = &mut self.all[index];
            is_short |= node.is_short();
            at = node.parent;
        }
        is_short
    }

    /// A stock that may keep nothing has taken what it hands out.
    fn note_take(&mut self, name: NodeName) {
        let mut at = Some(name);
        while let Some(index) = at.and_then(|name| self.place(name)) {
            let node = &mut self.all[index];
            if let Some(short) = &mut node.short {
                short.takes = short.takes.saturating_sub(1);
            }
            at = node.parent;
        }
    }

    fn add(&mut self, name: NodeName, class: C, count: u32) {
        let price = self.price(class, count);
        self.raise(Some(name), price, |counts| counts.as_mut()[class.index()] += u64::from(count));
    }

    /// What so many objects of each class cost at the kill.
    fn price_all(&self, of: Counts<'_>) -> u128 {
        let of_class = |(&count, cost): (&u32, &Cost)| u128::from(cost.eager) * u128::from(count);
        of.counts.iter().zip(&self.costs.as_ref()[of.first..]).map(of_class).sum()
    }

    /// As [`admit`](Self::admit), for objects of several classes.
    pub(crate) fn admit_all(&mut self, name: NodeName, counts: Counts<'_>) -> Result<(), Refusal> {
        self.open(name)?;
        self.check_counts(counts)?;
        let price = self.price_all(counts);
        self.ask(name, price)?;
        self.raise_all(name, counts, price);
        Ok(())
    }

    /// As [`admit_all`](Self::admit_all), if that leaves everybody room; whether it does.
    pub(crate) fn admit_ahead(&mut self, name: NodeName, counts: Counts<'_>) -> bool {
        let price = self.price_all(counts);
        let has_room = self.open(name).is_ok()
            && self.check_counts(counts).is_ok()
            && matches!(self.has_room(name, price * (1 + SHARE)), Ok(Ok(())));
        if has_room {
            self.raise_all(name, counts, price);
        }
        has_room
    }

    fn check_counts(&self, of: Counts<'_>) -> Result<(), Denied> {
        let mut all = self.all[0].counts.as_ref()[of.first..].iter().zip(of.counts);
        let fits = all.all(|(&all, &count)| all <= MOST_OBJECTS - u64::from(count));
        if fits { Ok(()) } else { Err(Denied::Full { depth: 0 }) }
    }

    fn raise_all(&mut self, name: NodeName, counts: Counts<'_>, price: u128) {
        self.raise(Some(name), price, |all| counts.with(all.as_mut()).for_each(|(all, count)| *all += count));
    }

    fn lower_all(&mut self, name: NodeName, counts: Counts<'_>, price: u128) {
        self.lower(Some(name), price, |all| counts.with(all.as_mut()).for_each(|(all, count)| *all -= count));
    }

    /// Charges a node and its ancestors for objects of several classes, whatever their bounds. Returns whether one has become short by it.
    pub(crate) fn add_all(&mut self, name: NodeName, counts: Counts<'_>) -> Result<bool, Denied> {
        self.open_below_all(name)?;
        self.check_counts(counts)?;
        self.raise_all(name, counts, self.price_all(counts));
        Ok(self.notice_excess(name))
    }

    /// A node or one above it that uses more than its bound is short. Returns whether one was not before.
    fn notice_excess(&mut self, name: NodeName) -> bool {
        let (mut is_news, mut at) = (false, Some(name));
        while let Some(index) = at.and_then(|name| self.place(name)) {
            let node = &mut self.all[index];
            is_news |= node.used > node.bound && node.fall_short(0);
            at = node.parent;
        }
        is_news
    }

    /// Gives back what was charged for objects of several classes. Does nothing if the node has ended.
    pub(crate) fn remove_all(&mut self, name: NodeName, counts: Counts<'_>) {
        if self.place(name).is_some() {
            self.lower_all(name, counts, self.price_all(counts));
            self.sweep(name);
        }
    }

    /// Charges to one, whatever its bounds, what was charged to another. Returns whether a node has become short by it.
    pub(crate) fn move_all(&mut self, from: NodeName, to: NodeName, counts: Counts<'_>) -> Result<bool, Denied> {
        self.open_below_all(to)?;
        if self.place(from).is_none() {
            return self.add_all(to, counts);
        }
        // What is above both has had this counted already, so no count grows beyond what there can be.
        let price = self.price_all(counts);
        self.lower_all(from, counts, price);
        self.raise_all(to, counts, price);
        self.sweep(from);
        Ok(self.notice_excess(to))
    }

    /// Charges for `more` objects of a class where that leaves everybody room, and that is true; else an object of another class becomes one of that, whatever the bounds. Does nothing if the node has ended.
    pub(crate) fn turn(&mut self, name: NodeName, from: C, to: C, more: u32) -> bool {
        let room = self.price(to, more) * (1 + SHARE);
        let has_room = self.open(name).is_ok() && matches!(self.has_room(name, room), Ok(Ok(())));
        if has_room {
            self.add(name, to, more);
        } else if self.place(name).is_some() {
            self.lower(Some(name), self.price(from, 1), |counts| counts.as_mut()[from.index()] -= 1);
            self.add(name, to, 1);
        }
        has_room
    }

    /// Gives back what was charged. Does nothing if the node has ended: then all of it was given back.
    pub(crate) fn remove(&mut self, name: NodeName, class: C, count: u32) {
        if self.place(name).is_some() {
            let price = self.price(class, count);
            self.lower(Some(name), price, |counts| counts.as_mut()[class.index()] -= u64::from(count));
            self.sweep(name);
        }
    }

    /// Charges to one what was charged to another, or changes nothing.
    pub(crate) fn transfer(&mut self, from: NodeName, to: NodeName, class: C, count: u32) -> Result<(), Refusal> {
        let price = self.price(class, count);
        let is_charged = self.place(from).is_some();
        if is_charged {
            self.lower(Some(from), price, |counts| counts.as_mut()[class.index()] -= u64::from(count));
        }
        let admitted = self.admit(to, class, count);
        if is_charged {
            match admitted {
                Ok(()) => self.sweep(from),
                Err(_) => self.add(from, class, count),
            }
        }
        admitted
    }

    /// Has the nodes from `at` up to the root use more, each as much as the one below it contributes more; `count` changes the counts of each.
    fn raise(&mut self, mut at: Option<NodeName>, mut more: u128, count: impl Fn(&mut C::PerClass<u64>)) {
        while let Some(index) = at.and_then(|name| self.place(name)) {
            let node = &mut self.all[index];
            count(&mut node.counts);
            let before = node.contribution(node.used);
            node.set_used(node.used + more);
            more = node.contribution(node.used) - before;
            at = node.parent;
        }
    }

    /// As [`raise`](Self::raise), the other way.
    fn lower(&mut self, mut at: Option<NodeName>, mut less: u128, count: impl Fn(&mut C::PerClass<u64>)) {
        while let Some(index) = at.and_then(|name| self.place(name)) {
            let node = &mut self.all[index];
            count(&mut node.counts);
            let before = node.contribution(node.used);
            node.used -= less;
            less = before - node.contribution(node.used);
            at = node.parent;
        }
    }

    /// Makes room for a node, and for its place once it has none.
    fn reserve_one(&mut self) -> Result<(), Denied> {
        self.all.try_reserve(1).map_err(|_| Denied::NoMemory)?;
        let places = self.all.len() + 1 - self.vacant.len();
        self.vacant.try_reserve(places).map_err(|_| Denied::NoMemory)
    }

    /// Makes a node below `parent`, which is charged what the new one reserves.
    pub(crate) fn make(&mut self, parent: NodeName, limits: Limits) -> Result<NodeName, Refusal> {
        let depth = self.open(parent)?.depth + 1;
        if depth > DEEPEST {
            return Err(Denied::TooDeep.into());
        }
        if self.vacant.is_empty() {
            self.reserve_one()?;
        }
        let reserved = u128::from(limits.reserved);
        self.ask(parent, reserved)?;
        self.raise(Some(parent), reserved, |_| ());
        let index = match self.vacant.pop() {
            Some(index) => index as usize,
            None => {
                self.all.push(Node { state: State::Vacant, ..Node::root() });
                self.all.len() - 1
            }
        };
        let generation = self.all[index].generation;
        let bound = bound(limits.bound);
        self.all[index] = Node { generation, parent: Some(parent), depth, bound, reserved, ..Node::root() };
        if let Some(parent) = self.place(parent) {
            self.all[parent].children += 1;
        }
        let index = u32::try_from(index).expect("four thousand million budgets do not fit into memory");
        Ok(NodeName::new(index, generation))
    }

    /// Admits nothing any more. The node goes when nothing is charged to it.
    pub(crate) fn close(&mut self, name: NodeName) {
        if let Some(index) = self.place(name) {
            let node = &mut self.all[index];
            node.state = State::Closed;
            let unused = node.contribution(node.used) - node.used;
            node.reserved = 0;
            let parent = node.parent;
            self.lower(parent, unused, |_| ());
            self.sweep(name);
        }
    }

    /// Gives back at once all that is charged to a node, and removes it.
    pub(crate) fn end(&mut self, name: NodeName) {
        if let Some(index) = self.place(name) {
            let node = &self.all[index];
            let (counts, contribution) = (node.counts, node.contribution(node.used));
            self.lower(node.parent, contribution, |of_ancestor| {
                of_ancestor.as_mut().iter_mut().zip(counts.as_ref()).for_each(|(all, ended)| *all -= ended);
            });
            if let Some(parent) = self.vacate(index) {
                self.sweep(parent);
            }
        }
    }

    /// Removes a closed node to which nothing is charged, and those above it that only waited for it.
    fn sweep(&mut self, name: NodeName) {
        let mut at = Some(name);
        while let Some(index) = at.and_then(|name| self.place(name)) {
            if self.all[index].state != State::Closed || !self.all[index].is_empty() {
                return;
            }
            at = self.vacate(index);
        }
    }

    /// Frees a place, from which nothing is contributed any more. Returns the parent.
    fn vacate(&mut self, index: usize) -> Option<NodeName> {
        let node = &mut self.all[index];
        node.state = State::Vacant;
        let parent = node.parent;
        if let Some(next) = node.generation.checked_add(1) {
            node.generation = next;
            self.vacant.push(index as u32);
        }
        if let Some(parent) = parent.and_then(|parent| self.place(parent)) {
            self.all[parent].children -= 1;
        }
        parent
    }

    /// Another bound. Returns whether the node has become short by it.
    pub(crate) fn set_bound(&mut self, name: NodeName, limit: u64) -> bool {
        let Some(index) = self.place(name) else { return false };
        let node = &mut self.all[index];
        node.bound = bound(limit);
        node.used > node.bound && node.fall_short(0)
    }

    /// Counts a kill that took longer than was charged for it.
    pub(crate) fn note_overrun(&mut self, name: NodeName) {
        if let Some(index) = self.place(name) {
            self.all[index].overruns += 1;
        }
    }

    /// Computes anew what every node uses, the deepest first.
    fn compute_all(&mut self) {
        let costs = self.costs;
        let price = |counts: &C::PerClass<u64>| -> u128 {
            let of_class = |(&count, cost): (&u64, &Cost)| u128::from(count) * u128::from(cost.eager);
            counts.as_ref().iter().zip(costs.as_ref()).map(of_class).sum()
        };
        for node in &mut self.all {
            node.used = price(&node.counts);
        }
        for depth in (1..=DEEPEST).rev() {
            for index in 0..self.all.len() {
                let node = &self.all[index];
                if node.depth != depth || node.state == State::Vacant {
                    continue;
                }
                // The counts are in the parent's already; what was reserved at this node and below it is not.
                let reserved = node.contribution(node.used) - price(&node.counts);
                if let Some(parent) = node.parent.and_then(|parent| self.place(parent)) {
                    self.all[parent].used += reserved;
                }
            }
        }
        for node in &mut self.all {
            node.set_used(node.used);
            if node.used > node.bound {
                node.fall_short(0);
            }
        }
    }

    /// What is charged at this moment; `None` if the node has ended.
    pub(crate) fn usage(&self, name: NodeName) -> Option<Usage<C>> {
        let node = &self.all[self.place(name)?];
        let narrow = |time: u128| u64::try_from(time).unwrap_or(u64::MAX);
        Some(Usage {
            bound: narrow(node.bound),
            reserved: narrow(node.reserved),
            current: narrow(node.used),
            peak: narrow(node.peak),
            denied: node.denied,
            overruns: node.overruns,
            counts: node.counts,
            costs: self.costs,
        })
    }

    /// How many nodes there are, the root among them.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.all.iter().filter(|node| node.state != State::Vacant).count()
    }
}

/// A bound as it is compared: [`Limits::UNBOUNDED`] is none.
fn bound(limit: u64) -> u128 {
    if limit == Limits::UNBOUNDED { u128::MAX } else { limit.into() }
}

#[cfg(all(test, not(ebb_loom)))]
mod tests {
    use super::*;
    use crate::{Limits, OwnedBudget};

    crate::classes! {
        enum Held { Link = Cost::eager(10) }
    }

    #[test]
    fn nodes_go_when_nothing_is_charged_to_them_and_their_places_are_used_again() {
        let tree: Tree<Held> = Tree::new();
        let parent = tree.root().child(Limits::bound(100)).unwrap();
        let child = parent.child(Limits::bound(100)).unwrap();
        let charge = child.charge(Held::Link, 1).unwrap();
        drop(child);
        drop(parent);
        assert_eq!(tree.with(|nodes| nodes.len()), 3);
        drop(charge);
        assert_eq!(tree.with(|nodes| nodes.len()), 1);
        let again: Vec<OwnedBudget<Held>> = (0..2).map(|_| tree.root().child(Limits::bound(100)).unwrap()).collect();
        assert_eq!(tree.with(|nodes| (nodes.len(), nodes.all.len())), (3, 3));
        again.into_iter().for_each(OwnedBudget::end);
        assert_eq!(tree.with(|nodes| (nodes.len(), nodes.vacant.len())), (1, 2));
    }

    #[test]
    fn a_place_whose_generations_have_run_out_is_not_used_again() {
        let tree: Tree<Held> = Tree::new();
        let first = tree.root().child(Limits::bound(100)).unwrap();
        first.end();
        tree.with(|nodes| nodes.all[1].generation = u32::MAX);
        let last = tree.root().child(Limits::bound(100)).unwrap();
        let name = *last;
        last.end();
        let other = tree.root().child(Limits::bound(100)).unwrap();
        assert_eq!(tree.with(|nodes| nodes.all.len()), 3);
        assert_ne!(name, *other);
        assert!(name.usage().is_none());
    }

    #[test]
    fn counts_and_costs_as_large_as_can_be_do_not_overflow() {
        let tree: Tree<Held> = Tree::new();
        tree.set_cost(Held::Link, Cost::eager(u64::MAX));
        let charges: Vec<_> = (0..4).map(|_| tree.root().charge(Held::Link, u32::MAX).unwrap()).collect();
        assert_eq!(tree.root().usage().unwrap().current, u64::MAX);
        assert_eq!(tree.root().usage().unwrap().eager(Held::Link), u64::MAX);
        tree.with(|nodes| nodes.all[0].counts[0] += MOST_OBJECTS - 4 * u64::from(u32::MAX));
        assert_eq!(tree.root().charge(Held::Link, 1).err(), Some(Denied::Full { depth: 0 }));
        tree.with(|nodes| nodes.all[0].counts[0] -= MOST_OBJECTS - 4 * u64::from(u32::MAX));
        drop(charges);
        assert_eq!(tree.root().usage().unwrap().current, 0);
    }
}
