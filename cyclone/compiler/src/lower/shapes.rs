//! C types: how values of Cyclone types look in C.
//!
//! A [`Shape`] is what is left of a type when regions, qualifiers and instantiations are gone: all type variables are words
//! (`void *`), all fat pointers one structure. Shapes are numbered ([`C`]), equal ones equally, so that "does this need a
//! cast" is a comparison of numbers.
//!
//! The components of tuples that fit a word *are* words in memory, whatever their type: a tuple ``$(`a,`b)`` that a polymorphic
//! function handles may be a `$(int,int)` to its caller, and both must see the same layout.

use super::Lower;
use crate::ast::{FloatSize, IntSize};
use crate::elements::{self, Steps};
use crate::hash::HashMap;
use crate::tree::{Field, GlobalId, Linkage};
use crate::types::{AggregateId, DatatypeId, Function, Kind, Signedness, Ty, TyKind, TyVar};
use std::rc::Rc;

/// The number of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct C(u32);

/// The form of a C type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// `void`
    Void,
    /// `void *`: a value of a type variable's type, or a pointer to something unknown.
    Word,
    /// `_Bool`
    Bool,
    /// An integer or enumeration.
    Int(Signedness, IntSize),
    /// An integer of four bytes or a truth value on its way through a pointer to a function, and out of any function of Cyclone: in
    /// the lower half of a word whose upper half is zero, because generic code at the other end may handle it as a word.
    Carried,
    /// A floating number.
    Float(FloatSize),
    /// A complex number.
    Complex(FloatSize),
    /// `__builtin_va_list`
    VaList,
    /// A fat pointer.
    Fat,
    /// The handle of an alias qualifier.
    Qualifier,
    /// What the handle of a region points to.
    Region,
    /// A thin pointer.
    Pointer {
        /// To what.
        to: C,
        /// Which is `volatile`.
        is_volatile: bool,
        /// Which is `const`; only in the prototypes of C functions, which C compilers compare with what they know.
        is_const: bool,
    },
    /// An array; without a length at the end of a structure.
    Array(C, Option<u64>),
    /// A structure or union.
    Aggregate(AggregateId),
    /// A structure that holds values of its parameters' types, whatever their sizes: the shapes of its arguments (`void` for
    /// those that are not known: such a member is left out).
    Instance(AggregateId, Vec<C>),
    /// A tuple.
    Tuple(Vec<C>),
    /// What a pointer to a datatype points to: a structure that begins with an integer tag.
    Datatype,
    /// The same of an extensible datatype: the tag is the address of the constructor's name.
    Extensible,
    /// The structure of one constructor.
    Constructor(DatatypeId, u32),
    /// A function.
    Function {
        /// Its parameters.
        params: Vec<C>,
        /// Its result.
        result: C,
        /// `...` of C.
        is_variadic: bool,
    },
}

/// All shapes of a translation unit.
#[derive(Default)]
pub struct Shapes {
    shapes: Vec<Shape>,
    numbers: HashMap<Shape, C>,
    /// By the types' numbers.
    of_types: Vec<Option<C>>,
    casts: HashMap<C, Rc<str>>,
    around: HashMap<C, Around>,
}

/// What stands around a name in its declaration.
#[derive(Clone)]
pub struct Around {
    /// Ends in a space where a name may follow.
    pub before: Rc<str>,
    pub after: Rc<str>,
}

impl Shapes {
    /// The number of a shape.
    pub fn make(&mut self, shape: Shape) -> C {
        if let Some(&known) = self.numbers.get(&shape) {
            return known;
        }
        let number = C(self.shapes.len() as u32);
        self.shapes.push(shape.clone());
        self.numbers.insert(shape, number);
        number
    }

    /// The shape with this number.
    pub fn get(&self, c: C) -> &Shape {
        &self.shapes[c.0 as usize]
    }

    /// Puts other numbers of shapes by types in the place of those here, which come back.
    pub fn exchange(&mut self, of_types: Vec<Option<C>>) -> Vec<Option<C>> {
        std::mem::replace(&mut self.of_types, of_types)
    }

    /// A pointer to `to`; one to `void` is a word.
    pub fn pointer(&mut self, to: C) -> C {
        if *self.get(to) == Shape::Void {
            return self.make(Shape::Word);
        }
        self.make(Shape::Pointer { to, is_volatile: false, is_const: false })
    }
}

impl Lower<'_> {
    /// How values of a type look.
    pub fn shape(&mut self, ty: Ty) -> C {
        let ty = self.program.types.head(ty);
        if let Some(&Some(known)) = self.shapes.of_types.get(ty.index()) {
            return known;
        }
        let c = self.shape_of(ty);
        let of_types = &mut self.shapes.of_types;
        if of_types.len() <= ty.index() {
            of_types.resize(ty.index() + 1, None);
        }
        of_types[ty.index()] = Some(c);
        c
    }

    fn shape_of(&mut self, ty: Ty) -> C {
        let types = &self.program.types;
        let shape = match types.get(ty) {
            TyKind::Void => Shape::Void,
            TyKind::Bool => Shape::Bool,
            TyKind::Int(sign, size) => Shape::Int(*sign, *size),
            TyKind::Float(size) => Shape::Float(*size),
            TyKind::Complex(size) => Shape::Complex(*size),
            TyKind::VaList => Shape::VaList,
            TyKind::Enum(_) => Shape::Int(Signedness::Signed, IntSize::Int),
            TyKind::TagHandle(_) => Shape::Int(Signedness::Unsigned, IntSize::Long),
            TyKind::AqualHandle(_) => Shape::Qualifier,
            TyKind::RegionHandle(_) => {
                let to = self.shapes.make(Shape::Region);
                return self.shapes.pointer(to);
            }
            TyKind::Pointer(pointer) => {
                if matches!(types.get(pointer.bound), TyKind::Fat) {
                    return self.shapes.make(Shape::Fat);
                }
                // Nothing is known of what has neither a size nor the form of a word.
                if matches!(types.get(pointer.target), TyKind::Var(_)) && types.kind(pointer.target) != Kind::Boxed {
                    return self.shapes.make(Shape::Word);
                }
                let is_volatile = pointer.quals.is_volatile;
                let to = self.shape(pointer.target);
                return match self.shapes.get(to) {
                    Shape::Void => self.shapes.make(Shape::Word),
                    _ => self.shapes.make(Shape::Pointer { to, is_volatile, is_const: false }),
                };
            }
            TyKind::Array(array) => {
                let len = array.len.and_then(|len| match types.get(len) {
                    TyKind::Nat(len) => Some(*len),
                    _ => None,
                });
                Shape::Array(self.shape(array.element), len)
            }
            TyKind::Function(function) => self.function_shape(function),
            TyKind::Tuple(members) => Shape::Tuple(members.iter().map(|member| self.component(member.ty)).collect()),
            TyKind::Aggregate(id, args) => self.aggregate_shape(*id, args),
            TyKind::Datatype(id, _) if self.program.declarations.datatype(*id).is_extensible => Shape::Extensible,
            TyKind::Datatype(..) => Shape::Datatype,
            TyKind::Constructor(id, index, _) => Shape::Constructor(*id, *index),
            TyKind::Var(var) if self.is_int_here(*var) => Shape::Int(Signedness::Signed, IntSize::Int),
            _ => Shape::Word,
        };
        self.shapes.make(shape)
    }

    fn aggregate_shape(&mut self, id: AggregateId, args: &[Ty]) -> Shape {
        let program = self.program;
        let types = &program.types;
        let aggregate = program.declarations.aggregate(id);
        self.refuse_arrays_of_words(id, args);
        let holds = |param: TyVar| {
            let is_it = |ty: Ty| matches!(types.get(ty), TyKind::Var(var) if *var == param);
            types.var(param).kind != Kind::Boxed
                && aggregate.body.as_ref().is_some_and(|body| body.fields.iter().any(|field| is_it(field.ty)))
        };
        if !aggregate.params.iter().any(|&param| holds(param)) {
            return Shape::Aggregate(id);
        }
        let shapes = aggregate.params.iter().zip(args).map(|(&param, &arg)| {
            let is_open = matches!(types.get(arg), TyKind::Var(_)) && types.kind(arg) != Kind::Boxed;
            match (holds(param), is_open) {
                (true, true) => self.shapes.make(Shape::Void),
                (true, false) => self.shape(arg),
                (false, _) => self.shapes.make(Shape::Word),
            }
        });
        Shape::Instance(id, shapes.collect())
    }

    /// An array of a type parameter in a structure holds words.
    fn refuse_arrays_of_words(&mut self, id: AggregateId, args: &[Ty]) {
        let program = self.program;
        let aggregate = program.declarations.aggregate(id);
        for (&param, &arg) in aggregate.params.iter().zip(args) {
            let mut fields = aggregate.body.iter().flat_map(|body| &body.fields);
            let holds_words = |field: &Field| {
                elements::of_member(&program.types, &program.declarations, field.ty, param) == Steps::Words
            };
            if self.is_int_wide(arg) && fields.any(holds_words) {
                self.refuse(aggregate.span, "in this structure, which has an array of words");
            }
        }
    }

    /// How a component of a tuple looks in memory.
    fn component(&mut self, ty: Ty) -> C {
        match self.program.types.kind(ty) {
            Kind::Boxed => self.shapes.make(Shape::Word),
            _ => self.shape(ty),
        }
    }

    /// The shape of a function that a pointer leads to; typed variable arguments arrive as one more parameter.
    pub fn function_shape(&mut self, function: &Function) -> Shape {
        let params: Vec<C> = function.params.iter().map(|param| self.shape(param.ty)).collect();
        let params = params.into_iter().map(|param| self.carried(param)).collect();
        let result = self.carried_result(function);
        self.with_varargs(function, params, result)
    }

    /// The shape of a function that is defined or named: its parameters have the shapes of their types.
    pub fn named_function_shape(&mut self, function: &Function, id: GlobalId) -> Shape {
        let params = function.params.iter().map(|param| self.shape(param.ty)).collect();
        let result = self.named_result(function, id);
        self.with_varargs(function, params, result)
    }

    /// The shape of what a function returns when it is called by its name. If it never is called otherwise, that need not have the
    /// form in which it may come out as a word.
    pub fn named_result(&mut self, function: &Function, id: GlobalId) -> C {
        let is_plain =
            self.program.declarations.global(id).linkage == Linkage::C || self.program.called_only.contains(&id);
        if is_plain { self.shape(function.result) } else { self.carried_result(function) }
    }

    fn with_varargs(&mut self, function: &Function, mut params: Vec<C>, result: C) -> Shape {
        if function.varargs.is_some() {
            params.push(self.shapes.make(Shape::Fat));
        }
        Shape::Function { params, result, is_variadic: function.c_varargs }
    }

    /// The shape of what a function of Cyclone returns.
    pub fn carried_result(&mut self, function: &Function) -> C {
        let result = self.shape(function.result);
        self.carried(result)
    }

    /// How a value goes where it may come out as a word.
    pub fn carried(&mut self, c: C) -> C {
        match self.shapes.get(c) {
            Shape::Int(_, IntSize::Int) | Shape::Bool => self.shapes.make(Shape::Carried),
            _ => c,
        }
    }

    /// A C function's shape, with the `const` of what its parameters and result point to.
    pub fn c_function_shape(&mut self, function: &Function) -> Shape {
        let params = function.params.iter().map(|param| self.c_parameter(param.ty)).collect();
        Shape::Function { params, result: self.c_parameter(function.result), is_variadic: function.c_varargs }
    }

    fn c_parameter(&mut self, ty: Ty) -> C {
        let plain = self.shape(ty);
        let TyKind::Pointer(pointer) = self.program.types.get(ty) else { return plain };
        match self.shapes.get(plain).clone() {
            Shape::Pointer { to, is_volatile, .. } if pointer.quals.is_const => {
                self.shapes.make(Shape::Pointer { to, is_volatile, is_const: true })
            }
            Shape::Word if pointer.quals.is_const => {
                let to = self.shapes.make(Shape::Void);
                self.shapes.make(Shape::Pointer { to, is_volatile: false, is_const: true })
            }
            _ => plain,
        }
    }

    /// What a shape of a pointer points to; of anything else, itself.
    pub fn pointee(&self, c: C) -> C {
        match self.shapes.get(c) {
            Shape::Pointer { to, .. } => *to,
            _ => c,
        }
    }

    /// A C type's name, as in a cast.
    pub fn cast(&mut self, c: C) -> Rc<str> {
        if let Some(known) = self.shapes.casts.get(&c) {
            return known.clone();
        }
        let text: Rc<str> = self.declarator(c, "").into();
        self.shapes.casts.insert(c, text.clone());
        text
    }

    /// A declaration of `name` with this C type, without a semicolon.
    pub fn declarator(&mut self, c: C, name: &str) -> String {
        let around = self.around(c);
        match name.is_empty() && around.after.is_empty() {
            true => around.before.trim_end().to_owned(),
            false => text!(around.before, name, around.after),
        }
    }

    /// What stands around a name in its declaration.
    pub fn around(&mut self, c: C) -> Around {
        if let Some(known) = self.shapes.around.get(&c) {
            return known.clone();
        }
        let (before, after) = match self.shapes.get(c).clone() {
            Shape::Pointer { to, is_volatile, is_const } => {
                let inner = self.around(to);
                // A qualifier of a pointer's own stands behind the star, so the target's is put where it is before the target.
                let volatile = if is_volatile { "volatile " } else { "" };
                let constant = if is_const { "const " } else { "" };
                match self.shapes.get(to) {
                    Shape::Array(..) | Shape::Function { .. } => {
                        (text!(volatile, constant, inner.before, "(*"), text!(")", inner.after))
                    }
                    _ => (text!(volatile, constant, inner.before, "*"), inner.after.to_string()),
                }
            }
            Shape::Array(element, len) => {
                let inner = self.around(element);
                let len = len.map_or(String::new(), |len| len.to_string());
                (inner.before.to_string(), text!("[", len, "]", inner.after))
            }
            Shape::Function { params, result, is_variadic } => {
                let mut list: Vec<String> = params.iter().map(|&param| self.declarator(param, "")).collect();
                if is_variadic && !list.is_empty() {
                    list.push("...".to_owned());
                }
                let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
                let inner = self.around(result);
                (inner.before.to_string(), text!("(", list, ")", inner.after))
            }
            shape => {
                let mut word = self.word(c, shape);
                if !word.ends_with('*') {
                    word.push(' ');
                }
                (word, String::new())
            }
        };
        let around = Around { before: before.into(), after: after.into() };
        self.shapes.around.insert(c, around.clone());
        around
    }

    /// The word of a type that needs nothing behind the name.
    fn word(&mut self, c: C, shape: Shape) -> String {
        let word = match shape {
            Shape::Void => "void",
            Shape::Word => "void *",
            Shape::Bool => "_Bool",
            Shape::Carried => "_cyc_carried",
            Shape::Int(sign, size) => integer(sign, size),
            Shape::Float(size) => float(size),
            Shape::Complex(size) => return text!("_Complex ", float(size)),
            Shape::VaList => "__builtin_va_list",
            Shape::Fat => "struct _cyc_fat",
            Shape::Qualifier => "_cyc_aqual",
            Shape::Region => "struct _cyc_region",
            Shape::Datatype => "struct _cyc_datatype",
            Shape::Extensible => "struct _cyc_extensible",
            Shape::Aggregate(id) => return self.aggregate_tag(id).to_string(),
            Shape::Instance(id, _) => return self.instance_tag(c, id),
            Shape::Tuple(_) => return self.tuple_tag(c),
            Shape::Constructor(id, index) => return self.constructor_tag(id, index).to_string(),
            Shape::Pointer { .. } | Shape::Array(..) | Shape::Function { .. } => "",
        };
        word.to_owned()
    }

    /// The shape of a member as it lies in memory, in an aggregate of shape `whole`.
    pub fn field_shape(&mut self, field: &Field, whole: C) -> C {
        let program = self.program;
        if let (Shape::Instance(id, args), TyKind::Var(var)) = (self.shapes.get(whole), program.types.get(field.ty)) {
            let params = &program.declarations.aggregate(*id).params;
            if let Some(at) = params.iter().position(|param| param == var)
                && program.types.var(*var).kind != Kind::Boxed
            {
                return args[at];
            }
        }
        self.shape(field.ty)
    }
}

fn integer(sign: Signedness, size: IntSize) -> &'static str {
    match (sign, size) {
        (Signedness::Plain, IntSize::Char) => "char",
        (Signedness::Signed, IntSize::Char) => "signed char",
        (Signedness::Unsigned, IntSize::Char) => "unsigned char",
        (Signedness::Unsigned, IntSize::Short) => "unsigned short",
        (Signedness::Unsigned, IntSize::Int) => "unsigned int",
        (Signedness::Unsigned, IntSize::Long) => "unsigned long",
        (Signedness::Unsigned, IntSize::LongLong) => "unsigned long long",
        (_, IntSize::Short) => "short",
        (_, IntSize::Int) => "int",
        (_, IntSize::Long) => "long",
        (_, IntSize::LongLong) => "long long",
    }
}

fn float(size: FloatSize) -> &'static str {
    match size {
        FloatSize::Float => "float",
        FloatSize::Double => "double",
        FloatSize::LongDouble => "long double",
    }
}
