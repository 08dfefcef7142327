//! Structures: those of the program, tuples, and the constructors of datatypes.
//!
//! A structure is written once it is mentioned, after what it holds by value.

use super::shapes::{C, Shape};
use super::{Lower, names};
use crate::hash::HashSet;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::Field;
use crate::types::{AggregateId, DatatypeId, Kind, Ty, TyKind};
use std::fmt::Write;
use std::rc::Rc;

/// What has to be written.
#[derive(Default)]
pub struct Layouts {
    aggregates: Vec<AggregateId>,
    constructors: Vec<(DatatypeId, u32)>,
    tuples: Vec<C>,
    instances: Vec<C>,
}

impl Layouts {
    pub fn mention_aggregate(&mut self, id: AggregateId) {
        self.aggregates.push(id);
    }

    pub fn mention_constructor(&mut self, id: DatatypeId, index: u32) {
        self.constructors.push((id, index));
    }
}

impl Lower<'_> {
    /// The name of the member at `index`.
    fn field_name(&mut self, field: &Field, index: usize) -> &'static str {
        match field.name {
            Some(name) => self.local_name(name),
            None => Symbol::new(&text!("_cyc_f", index)).as_str(),
        }
    }

    /// The name of a member of a tagged union, with what leads to it.
    fn union_member(&mut self, name: &'static str) -> &'static str {
        self.union_members.entry(Symbol::new(name)).or_insert_with(|| Symbol::new(&text!("val.", name)).as_str())
    }

    /// `struct _cyc_tuple3`.
    pub fn tuple_tag(&mut self, c: C) -> String {
        let next = self.tuples.len();
        let number = *self.tuples.entry(c).or_insert(next);
        if number == next {
            self.layouts.tuples.push(c);
        }
        format!("struct _cyc_tuple{number}")
    }

    /// `struct Cyc_S__of2`.
    pub fn instance_tag(&mut self, c: C, id: AggregateId) -> String {
        let next = self.layouts.instances.len();
        let number = self.layouts.instances.iter().position(|&known| known == c).unwrap_or(next);
        if number == next {
            self.layouts.instances.push(c);
        }
        format!("{}__of{number}", self.aggregate_tag(id))
    }

    /// Forward declarations, and definitions.
    pub fn structures(&mut self) -> (String, String) {
        let mut writer = Writer { done: HashSet::default(), open: HashSet::default(), out: String::new() };
        let (mut aggregates, mut constructors, mut tuples, mut instances) = (0, 0, 0, 0);
        loop {
            if let Some(&id) = self.layouts.aggregates.get(aggregates) {
                aggregates += 1;
                let c = self.shapes.make(Shape::Aggregate(id));
                writer.define(self, c);
            } else if let Some(&(id, index)) = self.layouts.constructors.get(constructors) {
                constructors += 1;
                let c = self.shapes.make(Shape::Constructor(id, index));
                writer.define(self, c);
            } else if let Some(&c) = self.layouts.tuples.get(tuples) {
                tuples += 1;
                writer.define(self, c);
            } else if let Some(&c) = self.layouts.instances.get(instances) {
                instances += 1;
                writer.define(self, c);
            } else {
                break;
            }
        }
        let mut forward = String::new();
        let mut tags: Vec<&Rc<str>> = self.aggregate_tags.values().chain(self.constructor_tags.values()).collect();
        tags.sort_unstable();
        for tag in tags {
            let _ = writeln!(forward, "{tag};");
        }
        for c in self.layouts.instances.clone() {
            let _ = writeln!(forward, "{};", self.cast(c));
        }
        for number in 0..self.tuples.len() {
            let _ = writeln!(forward, "struct _cyc_tuple{number};");
        }
        (forward, writer.out)
    }

    /// The members' shapes and names of a structure, in the order of C.
    fn members(&mut self, c: C) -> Vec<(C, &'static str)> {
        match self.shapes.get(c).clone() {
            Shape::Tuple(parts) => {
                parts.into_iter().enumerate().map(|(index, part)| (part, component_name(index))).collect()
            }
            Shape::Constructor(id, index) => {
                let program = self.program;
                let params = &program.declarations.datatype(id).constructors[index as usize].params;
                params.iter().enumerate().map(|(at, param)| (self.shape(param.ty), component_name(at))).collect()
            }
            Shape::Aggregate(id) | Shape::Instance(id, _) => {
                let program = self.program;
                let Some(body) = &program.declarations.aggregate(id).body else { return Vec::new() };
                body.fields
                    .iter()
                    .enumerate()
                    .map(|(index, field)| (self.field_shape(field, c), self.field_name(field, index)))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The shape of a member as it lies in memory, and its name with what leads to it.
    pub fn member(&mut self, ty: Ty, index: usize) -> (C, &'static str) {
        let program = self.program;
        match program.types.get(ty) {
            TyKind::Aggregate(id, _) => {
                let aggregate = program.declarations.aggregate(*id);
                let Some(field) = aggregate.body.as_ref().and_then(|body| body.fields.get(index)) else {
                    return (self.shapes.make(Shape::Word), component_name(index));
                };
                let name = self.field_name(field, index);
                let name = if aggregate.is_tagged { self.union_member(name) } else { name };
                let whole = self.shape(ty);
                (self.field_shape(field, whole), name)
            }
            TyKind::Constructor(id, constructor, _) => self.constructor_member(*id, *constructor, index),
            _ => {
                let c = self.shape(ty);
                match self.shapes.get(c) {
                    Shape::Tuple(parts) if index < parts.len() => (parts[index], component_name(index)),
                    _ => (self.shapes.make(Shape::Word), component_name(index)),
                }
            }
        }
    }

    /// The shape and name of a constructor's part.
    pub fn constructor_member(&mut self, id: DatatypeId, constructor: u32, index: usize) -> (C, &'static str) {
        let program = self.program;
        let param = &program.declarations.datatype(id).constructors[constructor as usize].params[index];
        (self.shape(param.ty), component_name(index))
    }

    /// What the tag of a constructor is: a number, or the address of its name.
    pub fn constructor_tag_value(&mut self, id: DatatypeId, index: u32) -> String {
        let datatype = self.program.declarations.datatype(id);
        if datatype.is_extensible {
            let constructor = &datatype.constructors[index as usize];
            let (name, is_extern, is_static) = (constructor.name, constructor.is_extern, constructor.is_static);
            self.exception_tag(name, is_extern, is_static)
        } else {
            (index + 1).to_string()
        }
    }

    fn exception_tag(&mut self, name: Symbol, is_extern: bool, is_static: bool) -> String {
        let tag = text!("_cyc_exn_", names::mangled(name));
        if self.tags.insert(name) {
            let _ = match (is_static, is_extern) {
                (true, _) => writeln!(self.prototypes, "static const char {tag}[] = \"{name}\";"),
                (_, true) => writeln!(self.prototypes, "extern const char {tag}[];"),
                _ => writeln!(self.prototypes, "extern const char {tag}[];\nconst char {tag}[] = \"{name}\";"),
            };
        }
        tag
    }

    /// Whether objects of this type hold no pointers, so that a collector need not look inside.
    pub fn is_pointer_free(&self, ty: Ty) -> bool {
        let program = self.program;
        match program.types.get(ty) {
            TyKind::Int(..) | TyKind::Bool | TyKind::Float(_) | TyKind::Complex(_) | TyKind::Enum(_) => true,
            TyKind::Var(var) => self.is_int_here(*var),
            TyKind::Array(array) => self.is_pointer_free(array.element),
            TyKind::Tuple(members) => members.iter().all(|member| self.is_pointer_free(member.ty)),
            TyKind::Aggregate(id, _) => program
                .declarations
                .aggregate(*id)
                .body
                .as_ref()
                .is_some_and(|body| body.fields.iter().all(|field| self.is_pointer_free(field.ty))),
            TyKind::Constructor(id, index, _) => {
                let datatype = program.declarations.datatype(*id);
                !datatype.is_extensible
                    && datatype.constructors[*index as usize].params.iter().all(|param| self.is_pointer_free(param.ty))
            }
            _ => false,
        }
    }

    /// `sizeof(T)`; 1 where the size is not known: such objects are never looked into, only counted as one.
    pub fn size_text(&mut self, ty: Ty) -> String {
        let types = &self.program.types;
        if matches!(types.get(ty), TyKind::Var(_)) && types.kind(ty) != Kind::Boxed {
            return "1".to_owned();
        }
        let c = self.shape(ty);
        self.shape_size_text(c)
    }

    /// The same of a shape.
    pub fn shape_size_text(&mut self, c: C) -> String {
        let is_known = match self.shapes.get(c) {
            Shape::Void | Shape::Function { .. } => false,
            Shape::Aggregate(id) => self.program.declarations.aggregate(*id).body.is_some(),
            _ => true,
        };
        if is_known { text!("sizeof(", self.cast(c), ")") } else { "1".to_owned() }
    }

    /// Where an aggregate is declared, for messages.
    fn place_of(&self, c: C) -> Span {
        match self.shapes.get(c) {
            Shape::Aggregate(id) | Shape::Instance(id, _) => self.program.declarations.aggregate(*id).span,
            _ => Span::default(),
        }
    }
}

/// The name of a component of a tuple or constructor.
pub fn component_name(index: usize) -> &'static str {
    const FIRST: [&str; 8] = ["f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8"];
    match FIRST.get(index) {
        Some(name) => name,
        None => Symbol::new(&text!("f", index + 1)).as_str(),
    }
}

struct Writer {
    done: HashSet<C>,
    open: HashSet<C>,
    out: String,
}

impl Writer {
    fn define(&mut self, lower: &mut Lower<'_>, c: C) {
        let element = match lower.shapes.get(c) {
            Shape::Array(element, _) => Some(*element),
            Shape::Tuple(_) | Shape::Constructor(..) | Shape::Aggregate(_) | Shape::Instance(..) => None,
            _ => return,
        };
        if let Some(element) = element {
            return self.define(lower, element);
        }
        if self.done.contains(&c) {
            return;
        }
        if !self.open.insert(c) {
            let span = lower.place_of(c);
            lower.unsupported(span, "a structure that holds itself");
            return;
        }
        let members = lower.members(c);
        for (member, _) in &members {
            self.define(lower, *member);
        }
        self.done.insert(c);
        self.write(lower, c, members);
    }

    fn write(&mut self, lower: &mut Lower<'_>, c: C, members: Vec<(C, &'static str)>) {
        let program = lower.program;
        let tag = lower.cast(c);
        let mut text = String::new();
        let mut after = String::new();
        let mut is_tagged = false;
        match lower.shapes.get(c).clone() {
            Shape::Aggregate(id) | Shape::Instance(id, _) => {
                let aggregate = program.declarations.aggregate(id);
                let Some(body) = &aggregate.body else { return };
                is_tagged = aggregate.is_tagged;
                for ((member, name), field) in members.into_iter().zip(&body.fields) {
                    if *lower.shapes.get(member) == Shape::Void {
                        continue;
                    }
                    let name = match (field.width, field.name) {
                        (Some(width), None) => format!(":{width}"),
                        (Some(width), Some(_)) => format!("{name}:{width}"),
                        (None, _) => name.to_owned(),
                    };
                    let _ = writeln!(text, "  {}{};", lower.declarator(member, &name), attributes(&field.attributes));
                }
                after = attributes(&aggregate.attributes);
            }
            shape => {
                if let Shape::Constructor(id, _) = shape {
                    text.push_str(match program.declarations.datatype(id).is_extensible {
                        true => "  const char *tag;\n",
                        false => "  int tag;\n",
                    });
                }
                for (member, name) in members {
                    let _ = writeln!(text, "  {};", lower.declarator(member, name));
                }
            }
        }
        let _ = match is_tagged {
            true => writeln!(self.out, "{tag} {{\n  int tag;\n  union {{\n{text}  }} val;\n}}{after};"),
            false => writeln!(self.out, "{tag} {{\n{text}}}{after};"),
        };
    }
}

/// Attributes as C has them, with a space before.
pub fn attributes(list: &[Symbol]) -> String {
    if list.is_empty() {
        return String::new();
    }
    let words: Vec<&str> = list.iter().map(|attribute| attribute.as_str()).collect();
    format!(" __attribute__(({}))", words.join(", "))
}
