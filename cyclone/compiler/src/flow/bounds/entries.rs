//! What holds where a function begins of which all calls are known: what holds at each of them.

use super::facts::Quantity;
use super::values::{Integer, Value};
use super::{Prover, changed_by, tracked};
use crate::flow::callers::Callers;
use crate::hash::{HashMap, HashSet};
use crate::tree::{Call, Coercion, Expr, ExprKind, Function, GlobalId, LocalId};
use crate::types::{Ty, TyKind, Types};

/// More parameters are not compared with each other.
const PARAMS_LIMIT: usize = 6;

/// The functions of which all calls are known, with what their calls say so far.
#[derive(Default)]
pub(in crate::flow) struct Entries {
    functions: HashMap<GlobalId, Entry>,
}

#[derive(Default)]
struct Entry {
    /// The parameters of which something can be known, and their types.
    params: Vec<(LocalId, Ty)>,
    /// How many calls have not been met.
    calls_left: usize,
    /// `None`: no call has been met that can be reached.
    known: Option<Known>,
}

/// What holds of arguments.
#[derive(Clone, Default, Debug)]
pub(super) struct Known {
    /// `left - right <= most`
    pub differences: Vec<(Quantity, Quantity, i128)>,
    /// These fat pointers lead to the first of their elements.
    pub starts: Vec<LocalId>,
}

impl Entries {
    pub fn new(functions: &[Function], types: &Types, callers: &Callers) -> Entries {
        let counts = callers.counts();
        let entry = |number: usize| {
            let function = &functions[number];
            let is_tracked = tracked(function);
            let params = (0..function.params)
                .filter(|&index| is_tracked[index])
                .map(|index| (LocalId(index as u32), function.locals[index].ty))
                .filter(|&(_, ty)| Integer::of(types, ty).is_some() || is_fat(types, ty))
                .take(PARAMS_LIMIT)
                .collect();
            Entry { params, calls_left: counts[number], known: None }
        };
        Entries { functions: callers.called_only().map(|(id, number)| (id, entry(number))).collect() }
    }

    /// What holds where a function begins; nothing if there are calls that have not been met.
    pub(super) fn of(&self, function: GlobalId) -> Known {
        match self.functions.get(&function) {
            Some(Entry { calls_left: 0, known: Some(known), .. }) => known.clone(),
            _ => Known::default(),
        }
    }
}

pub(super) fn is_fat(types: &Types, ty: Ty) -> bool {
    matches!(types.get(ty), TyKind::Pointer(pointer) if matches!(types.get(pointer.bound), TyKind::Fat))
}

/// The calls of the function that is looked at.
pub(super) struct Calls<'e> {
    pub entries: &'e mut Entries,
    /// The calls that have been met, by their addresses.
    pub met: HashSet<usize>,
}

/// What is known of an argument.
struct Argument {
    quantity: Quantity,
    value: Value,
    is_start: bool,
}

impl Prover<'_> {
    /// A call whose arguments have been evaluated.
    pub(super) fn called(&mut self, call: &Call) {
        if self.rehearsals > 0 {
            return;
        }
        let Some(id) = call.callee.named_function(self.types) else { return };
        let Some(entry) = self.calls.entries.functions.get_mut(&id) else { return };
        if self.calls.met.insert(std::ptr::from_ref(call) as usize) {
            entry.calls_left = entry.calls_left.saturating_sub(1);
        }
        if self.facts.is_none() {
            return;
        }
        let params = std::mem::take(&mut entry.params);
        let known = self.known_of(call, &params);
        if let Some(entry) = self.calls.entries.functions.get_mut(&id) {
            entry.params = params;
            entry.known = Some(match entry.known.take() {
                Some(before) => both(&before, &known),
                None => known,
            });
        }
    }

    fn known_of(&self, call: &Call, params: &[(LocalId, Ty)]) -> Known {
        // What an argument changes may stand in one before it.
        let varargs = call.varargs.iter().flat_map(|varargs| &varargs.args);
        if params.is_empty() || call.args.iter().chain(varargs).any(|arg| !changed_by(arg).is_empty()) {
            return Known::default();
        }
        let mut arguments = vec![Argument { quantity: Quantity::Zero, value: Value::number(0), is_start: false }];
        for &(local, ty) in params {
            if let Some(arg) = call.args.get(local.0 as usize) {
                arguments.push(self.argument(local, ty, arg));
            }
        }
        let mut known = Known::default();
        for left in &arguments {
            for right in arguments.iter().filter(|right| right.quantity != left.quantity) {
                if let Some(most) = self.most_apart(&left.value, &right.value)
                    && self.by_types(params, left.quantity, right.quantity).is_none_or(|by_types| most < by_types)
                {
                    known.differences.push((left.quantity, right.quantity, most));
                }
            }
            if let Argument { quantity: Quantity::Count(local), is_start: true, .. } = left {
                known.starts.push(*local);
            }
        }
        known
    }

    fn argument(&self, local: LocalId, ty: Ty, arg: &Expr) -> Argument {
        if Integer::of(self.types, ty).is_some() {
            let value = self.converted(self.value(arg), ty);
            return Argument { quantity: Quantity::Variable(local), value, is_start: false };
        }
        let quantity = Quantity::Count(local);
        let arg = self.below_same(arg);
        if let Some(from) = self.fat_local(arg) {
            let value = Value::exactly((Quantity::Count(from), 0));
            return Argument { quantity, value, is_start: self.is_at_start(from) };
        }
        let value = match self.least_count(arg) {
            Some(count) => Value { upper: Vec::new(), lower: vec![(Quantity::Zero, count)] },
            None => Value::default(),
        };
        let is_start = matches!(arg.kind, ExprKind::Coerce(Coercion::ThinToFat, _));
        Argument { quantity, value, is_start }
    }

    /// What `left - right` is at most.
    fn most_apart(&self, left: &Value, right: &Value) -> Option<i128> {
        let pairs = left.upper.iter().flat_map(|upper| right.lower.iter().map(move |lower| (upper, lower)));
        pairs.filter_map(|(&(a, add), &(b, sub))| Some(self.distance(a, b)? + add - sub)).min()
    }

    /// What the parameters' types say of a difference.
    fn by_types(&self, params: &[(LocalId, Ty)], left: Quantity, right: Quantity) -> Option<i128> {
        let range = |quantity: Quantity| match quantity {
            Quantity::Variable(local) => {
                let (_, ty) = params.iter().find(|(param, _)| *param == local)?;
                Integer::of(self.types, *ty).map(|integer| (integer.least(), integer.most()))
            }
            other => self.range(other),
        };
        Some(range(left)?.1 - range(right)?.0)
    }
}

/// What both say.
fn both(one: &Known, two: &Known) -> Known {
    let differences = one.differences.iter().filter_map(|&(left, right, most)| {
        let other = two.differences.iter().find(|other| (other.0, other.1) == (left, right))?;
        Some((left, right, most.max(other.2)))
    });
    let starts = one.starts.iter().copied().filter(|local| two.starts.contains(local));
    Known { differences: differences.collect(), starts: starts.collect() }
}
