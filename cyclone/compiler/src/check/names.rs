//! What names mean: namespaces, `using`, scopes of blocks, type variables.
//!
//! Each namespace has one table for each sort of name. A name as written is looked for in the scopes of blocks (if it is not
//! qualified), then in the namespace being declared, then, from the innermost outwards, in the namespaces entered and used
//! around it: the first that has it wins, as in the original. A qualifier is found in the same way.
//!
//! A local name hides what had it before; what it hid is kept in a journal, so that a lookup is one step whatever the depth.

use super::Checker;
use crate::ast::Path;
use crate::diagnostics::Code;
use crate::hash::HashMap;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{GlobalId, LocalId};
use crate::types::{AggregateId, DatatypeId, EnumId, Quals, Ty, TyVar};
use std::rc::Rc;

/// What an ordinary name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// A variable of the function.
    Local(LocalId),
    /// A global variable or function.
    Global(GlobalId),
    /// A variable of the function around this one, by the hidden parameter that leads to it.
    Captured(LocalId),
    /// The constant that an argument is, in a condition about it.
    Number(i128),
    /// A constant of an enumeration, with its value.
    EnumConst(EnumId, i64),
    /// A constructor of a datatype, by index.
    Constructor(DatatypeId, u32),
}

/// A typedef.
#[derive(Clone, Debug)]
pub struct Typedef {
    /// Its full name.
    pub name: Symbol,
    /// Its parameters.
    pub params: Rc<[TyVar]>,
    /// What it stands for, over the parameters.
    pub ty: Ty,
    /// Qualifiers that come with it.
    pub quals: Quals,
    /// Where it is declared.
    pub span: Span,
}

/// Number of a typedef.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypedefId(u32);

/// Number of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamespaceId(u32);

const ROOT: NamespaceId = NamespaceId(0);

/// The names of one namespace.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    /// In front of names: `List`, `A::B`; none for the root.
    prefix: Option<Symbol>,
    children: HashMap<Symbol, NamespaceId>,
    pub(super) values: HashMap<Symbol, Value>,
    pub(super) typedefs: HashMap<Symbol, TypedefId>,
    pub(super) aggregates: HashMap<Symbol, AggregateId>,
    pub(super) datatypes: HashMap<Symbol, DatatypeId>,
    pub(super) enums: HashMap<Symbol, EnumId>,
}

/// Names of blocks: what each means now, and what it meant before.
#[derive(Debug)]
struct Scoped<T> {
    now: HashMap<Symbol, T>,
    before: Vec<(Symbol, Option<T>)>,
}

impl<T> Default for Scoped<T> {
    fn default() -> Self {
        Scoped { now: HashMap::default(), before: Vec::new() }
    }
}

impl<T: Copy> Scoped<T> {
    fn bind(&mut self, name: Symbol, to: T) {
        let before = self.now.insert(name, to);
        self.before.push((name, before));
    }

    fn get(&self, name: Symbol) -> Option<T> {
        self.now.get(&name).copied()
    }

    fn back_to(&mut self, length: usize) {
        while self.before.len() > length {
            match self.before.pop() {
                Some((name, Some(before))) => self.now.insert(name, before),
                Some((name, None)) => self.now.remove(&name),
                None => return,
            };
        }
    }
}

/// All names of a translation unit.
#[derive(Debug)]
pub struct Names {
    namespaces: Vec<Namespace>,
    current: NamespaceId,
    /// Namespaces entered and used, innermost last.
    available: Vec<NamespaceId>,
    typedefs: Vec<Typedef>,
    local_values: Scoped<Value>,
    local_typedefs: Scoped<TypedefId>,
    local_aggregates: Scoped<AggregateId>,
    local_enums: Scoped<EnumId>,
    type_variables: Scoped<TyVar>,
    scopes: Vec<[usize; 5]>,
}

impl Default for Names {
    fn default() -> Self {
        Names {
            namespaces: vec![Namespace::default()],
            current: ROOT,
            available: vec![ROOT],
            typedefs: Vec::new(),
            local_values: Scoped::default(),
            local_typedefs: Scoped::default(),
            local_aggregates: Scoped::default(),
            local_enums: Scoped::default(),
            type_variables: Scoped::default(),
            scopes: Vec::new(),
        }
    }
}

/// The namespaces that can be seen from a place outside of blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct View(NamespaceId, Vec<NamespaceId>);

/// What [`Names::look_from`] put aside.
#[must_use]
pub(super) struct Hidden(View, Scoped<Value>);

/// What [`Names::hide_variables`] put aside.
#[must_use]
pub(super) struct HiddenVariables(Scoped<Value>);

/// To be given back to [`Names::leave`].
#[derive(Debug)]
#[must_use]
pub struct Outside(NamespaceId, usize);

impl Names {
    /// The full name of a value of another namespace, for messages; the first in the alphabet.
    pub(super) fn elsewhere(&self, name: Symbol) -> Option<Symbol> {
        let with = |namespace: &&Namespace| namespace.values.contains_key(&name);
        let prefixes = self.namespaces.iter().filter(with).filter_map(|namespace| namespace.prefix);
        let first = prefixes.min_by(|a, b| a.as_str().cmp(b.as_str()))?;
        Some(Symbol::new(&format!("{first}::{name}")))
    }

    /// The values that can be named here without a qualifier.
    pub(super) fn value_names(&self) -> impl Iterator<Item = Symbol> {
        let globals = self.available.iter().flat_map(|id| self.namespaces[id.0 as usize].values.keys());
        globals.chain(self.local_values.now.keys()).copied()
    }

    /// A typedef.
    pub fn typedef(&self, id: TypedefId) -> &Typedef {
        &self.typedefs[id.0 as usize]
    }

    fn namespace(&self, id: NamespaceId) -> &Namespace {
        &self.namespaces[id.0 as usize]
    }

    /// The namespace being declared.
    pub(super) fn here(&self) -> &Namespace {
        self.namespace(self.current)
    }

    /// The namespace being declared.
    pub(super) fn here_mut(&mut self) -> &mut Namespace {
        &mut self.namespaces[self.current.0 as usize]
    }

    /// Goes into a namespace inside the present one.
    pub fn enter(&mut self, name: Symbol) -> Outside {
        let id = match self.here().children.get(&name) {
            Some(&id) => id,
            None => {
                let prefix = self.qualified(name);
                let id = self.new_namespace(Some(prefix));
                self.here_mut().children.insert(name, id);
                id
            }
        };
        self.go_to(id)
    }

    /// Goes into a nameless namespace, for what a block of C keeps to itself.
    pub fn enter_hidden(&mut self) -> (Outside, NamespaceId) {
        let prefix = self.here().prefix;
        let id = self.new_namespace(prefix);
        (self.go_to(id), id)
    }

    fn new_namespace(&mut self, prefix: Option<Symbol>) -> NamespaceId {
        self.namespaces.push(Namespace { prefix, ..Namespace::default() });
        NamespaceId(self.namespaces.len() as u32 - 1)
    }

    fn go_to(&mut self, id: NamespaceId) -> Outside {
        let outside = Outside(self.current, self.available.len());
        self.available.push(id);
        self.current = id;
        outside
    }

    /// Makes the names of a namespace visible; `None` if there is no such namespace.
    pub fn enter_using(&mut self, path: &Path) -> Option<Outside> {
        let whole = match path.qualifier {
            Some(qualifier) => Symbol::new(&format!("{qualifier}::{}", path.name)),
            None => path.name,
        };
        let id = self.find_namespace(whole)?;
        let outside = Outside(self.current, self.available.len());
        self.available.push(id);
        Some(outside)
    }

    /// Goes back to where [`Names::enter`] or [`Names::enter_using`] was called.
    pub fn leave(&mut self, outside: Outside) {
        self.current = outside.0;
        self.available.truncate(outside.1);
    }

    /// What can be seen from here, but for the names of blocks.
    pub(super) fn view(&self) -> View {
        View(self.current, self.available.clone())
    }

    /// Names mean what they do in `view`, and values of blocks are not seen, until [`Names::look_back`].
    pub(super) fn look_from(&mut self, view: &View) -> Hidden {
        let before = View(self.current, std::mem::replace(&mut self.available, view.1.clone()));
        self.current = view.0;
        Hidden(before, std::mem::take(&mut self.local_values))
    }

    /// Variables of the function around a function inside are not seen until [`Names::show_variables`].
    pub(super) fn hide_variables(&mut self) -> HiddenVariables {
        let mut others = self.local_values.now.clone();
        others.retain(|_, value| !matches!(value, Value::Local(_) | Value::Captured(_)));
        let inside = Scoped { now: others, before: Vec::new() };
        HiddenVariables(std::mem::replace(&mut self.local_values, inside))
    }

    /// They are seen again.
    pub(super) fn show_variables(&mut self, hidden: HiddenVariables) {
        self.local_values = hidden.0;
    }

    /// Names mean what they did before.
    pub(super) fn look_back(&mut self, hidden: Hidden) {
        let Hidden(View(current, available), values) = hidden;
        (self.current, self.available, self.local_values) = (current, available, values);
    }

    /// Copies names of a hidden namespace into the present one: those that `exported` says.
    pub(super) fn export(&mut self, from: NamespaceId, exported: impl Fn(Symbol) -> bool) {
        let mut taken = std::mem::take(&mut self.namespaces[from.0 as usize]);
        let here = self.here_mut();
        here.values.extend(taken.values.drain().filter(|(name, _)| exported(*name)));
        here.typedefs.extend(taken.typedefs.drain().filter(|(name, _)| exported(*name)));
        here.aggregates.extend(taken.aggregates.drain().filter(|(name, _)| exported(*name)));
        here.datatypes.extend(taken.datatypes.drain().filter(|(name, _)| exported(*name)));
        here.enums.extend(taken.enums.drain().filter(|(name, _)| exported(*name)));
    }

    /// The full name of a name declared here.
    pub fn qualified(&self, name: Symbol) -> Symbol {
        match self.here().prefix {
            Some(prefix) => Symbol::new(&format!("{prefix}::{name}")),
            None => name,
        }
    }

    /// The namespace of this name, which may have several parts.
    fn find_namespace(&self, name: Symbol) -> Option<NamespaceId> {
        let several: Vec<Symbol>;
        let parts = if name.as_str().contains("::") {
            several = name.as_str().split("::").map(Symbol::new).collect();
            &several
        } else {
            std::slice::from_ref(&name)
        };
        let below = |start: NamespaceId| {
            parts.iter().try_fold(start, |at, part| self.namespace(at).children.get(part).copied())
        };
        below(self.current).or_else(|| self.available.iter().rev().find_map(|&start| below(start)))
    }

    /// Looks a path up in namespaces only; `table` chooses the sort of name.
    pub(super) fn find<T: Copy>(&self, path: &Path, table: impl Fn(&Namespace) -> &HashMap<Symbol, T>) -> Option<T> {
        let within = |id: NamespaceId| table(self.namespace(id)).get(&path.name).copied();
        if let Some(qualifier) = path.qualifier {
            return within(self.find_namespace(qualifier)?);
        }
        within(self.current).or_else(|| self.available.iter().rev().find_map(|&id| within(id)))
    }
}

impl Checker<'_> {
    /// A block begins: names bound from now on are forgotten at [`Checker::pop_scope`].
    pub fn push_scope(&mut self) {
        let names = &mut self.names;
        names.scopes.push([
            names.local_values.before.len(),
            names.local_typedefs.before.len(),
            names.local_aggregates.before.len(),
            names.local_enums.before.len(),
            names.type_variables.before.len(),
        ]);
    }

    /// The block ends.
    pub fn pop_scope(&mut self) {
        let names = &mut self.names;
        if let Some([values, typedefs, aggregates, enums, variables]) = names.scopes.pop() {
            names.local_values.back_to(values);
            names.local_typedefs.back_to(typedefs);
            names.local_aggregates.back_to(aggregates);
            names.local_enums.back_to(enums);
            names.type_variables.back_to(variables);
        }
    }

    /// A variable can be seen from here to the end of the block.
    pub fn bind_local(&mut self, name: Symbol, local: LocalId) {
        self.bind_value(name, Value::Local(local));
    }

    /// A type variable, with its backquote, can be seen from here to the end of the block.
    pub fn bind_tyvar(&mut self, name: Symbol, var: TyVar) {
        self.names.type_variables.bind(name, var);
    }

    /// An ordinary name: of the block in bodies, of the namespace outside.
    pub(super) fn bind_value(&mut self, name: Symbol, value: Value) {
        if self.body.is_some() {
            self.names.local_values.bind(name, value);
        } else {
            self.names.here_mut().values.insert(name, value);
        }
    }

    pub(super) fn bind_typedef(&mut self, name: Symbol, typedef: Typedef) {
        self.names.typedefs.push(typedef);
        let id = TypedefId(self.names.typedefs.len() as u32 - 1);
        if self.body.is_some() {
            self.names.local_typedefs.bind(name, id);
        } else {
            self.names.here_mut().typedefs.insert(name, id);
        }
    }

    pub(super) fn bind_aggregate(&mut self, name: Symbol, id: AggregateId) {
        if self.body.is_some() {
            self.names.local_aggregates.bind(name, id);
        } else {
            self.names.here_mut().aggregates.insert(name, id);
        }
    }

    pub(super) fn bind_enum(&mut self, name: Symbol, id: EnumId) {
        if self.body.is_some() {
            self.names.local_enums.bind(name, id);
        } else {
            self.names.here_mut().enums.insert(name, id);
        }
    }

    /// What an ordinary name means here; nothing is reported.
    pub fn lookup_value(&self, path: &Path) -> Option<Value> {
        let local = if path.qualifier.is_none() { self.names.local_values.get(path.name) } else { None };
        local.or_else(|| self.names.find(path, |namespace| &namespace.values))
    }

    /// The type variable of this name, with its backquote.
    pub fn lookup_tyvar(&self, name: Symbol) -> Option<TyVar> {
        self.names.type_variables.get(name)
    }

    /// The structure or union of this name.
    pub fn lookup_aggregate(&self, path: &Path) -> Option<AggregateId> {
        let local = if path.qualifier.is_none() { self.names.local_aggregates.get(path.name) } else { None };
        local.or_else(|| self.names.find(path, |namespace| &namespace.aggregates))
    }

    /// The typedef of this name.
    pub fn lookup_typedef(&self, path: &Path) -> Option<TypedefId> {
        let local = if path.qualifier.is_none() { self.names.local_typedefs.get(path.name) } else { None };
        local.or_else(|| self.names.find(path, |namespace| &namespace.typedefs))
    }

    /// The datatype of this name.
    pub fn lookup_datatype(&self, path: &Path) -> Option<DatatypeId> {
        self.names.find(path, |namespace| &namespace.datatypes)
    }

    /// The enumeration of this name.
    pub fn lookup_enumeration(&self, path: &Path) -> Option<EnumId> {
        let local = if path.qualifier.is_none() { self.names.local_enums.get(path.name) } else { None };
        local.or_else(|| self.names.find(path, |namespace| &namespace.enums))
    }

    /// Structures of the innermost block (in bodies) or of the namespace being declared.
    pub(super) fn declared_aggregate(&self, name: Symbol) -> Option<AggregateId> {
        match self.names.local_aggregates.get(name) {
            Some(local) => Some(local),
            None if self.body.is_some() => None,
            None => self.names.here().aggregates.get(&name).copied(),
        }
    }

    /// The name that a declaration gives; a qualified one is reported.
    pub(super) fn declared_name(&mut self, path: &Path) -> Symbol {
        if path.qualifier.is_some() {
            self.error(Code::Redeclared, path.span, "a declaration cannot name another namespace");
        }
        path.name
    }
}
