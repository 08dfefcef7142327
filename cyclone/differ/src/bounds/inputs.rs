//! Arguments of calls, and which of them to try: those that make a function throw, each at another place.

use super::machine::{self, Outcome};
use super::print;
use super::syntax::{Bound, Element, Function, Int, Pointer, Storage, Type};
use fastrand::Rng;
use std::collections::HashSet;

/// A call's arguments, and what the global variables are made from.
#[derive(Clone, Debug)]
pub struct Input {
    pub seed: u32,
    pub arguments: Vec<Argument>,
}

#[derive(Clone, Debug)]
pub enum Argument {
    Number(i128),
    /// A new object's address, moved by so many elements.
    Elements {
        count: u32,
        offset: i32,
        seed: u32,
    },
    Null,
    Record(u32),
    Row {
        count: u32,
        seed: u32,
    },
}

/// The program's function `pick`.
pub fn pick(seed: u32, at: u32) -> i128 {
    let mixed = seed.wrapping_mul(2_654_435_761).wrapping_add(at.wrapping_mul(40_503)).wrapping_add(12_345);
    i128::from((mixed >> 16) % 9) - 1
}

/// The elements of an object made for a pointer of this type.
pub fn cells(pointer: Pointer, count: u32, seed: u32) -> Vec<i128> {
    let int = pointer.element.int();
    let cells = (0..count).map(|at| int.cut(pick(seed, at)));
    if pointer.is_zeroterm { cells.chain([0]).collect() } else { cells.collect() }
}

/// Functions of the program that make objects of one type of elements.
pub fn makers() -> String {
    let mut text = String::new();
    for int in INTS {
        for is_zeroterm in [false, true] {
            let pointer = Pointer { element: Element::Int(int), bound: Bound::Fat, is_zeroterm, is_nullable: true };
            text += &maker(pointer);
        }
    }
    let pointer = Pointer { element: Element::Three, bound: Bound::Fat, is_zeroterm: false, is_nullable: true };
    text + &maker(pointer)
}

/// The element `i` of an object.
fn element_text(pointer: Pointer, seed: &str) -> String {
    match pointer.element {
        Element::Int(int) => format!("({})pick({seed}, (unsigned)i)", print::int(int)),
        Element::Three => format!("Three{{pick({seed}, (unsigned)i), 1, 2}}"),
    }
}

fn maker(pointer: Pointer) -> String {
    let (ty, value) = (print::pointer(pointer), element_text(pointer, "seed"));
    format!(
        "static {ty}{}(int count, int offset, unsigned seed) {{\n  {ty}made = new {{for i < count : {value}}};\n  return made + offset;\n}}\n\n",
        maker_name(pointer)
    )
}

fn maker_name(pointer: Pointer) -> String {
    let kind = if pointer.is_zeroterm { "zero" } else { "make" };
    let element = print::element(pointer.element).replace("struct ", "").replace(' ', "_");
    format!("{kind}_{element}")
}

const INTS: [Int; 8] = [
    Int::SIGNED_CHAR,
    Int::UNSIGNED_CHAR,
    Int::SHORT,
    Int::UNSIGNED_SHORT,
    Int::INT,
    Int::UNSIGNED,
    Int::LONG,
    Int::UNSIGNED_LONG,
];

impl Input {
    fn random(function: &Function, random: &mut Rng) -> Input {
        let mut input = Input { seed: random.u32(..1 << 16), arguments: Vec::new() };
        for &parameter in &function.parameters {
            let variable = &function.variables[parameter.0];
            let argument = match (variable.storage, variable.ty) {
                (Storage::Tag, _) => Argument::Number(i128::from(random.u32(1..6))),
                (_, Type::Int(int)) => Argument::Number(number(int, random)),
                (_, Type::Row) => Argument::Row { count: random.u32(1..6), seed: random.u32(..1 << 16) },
                (_, Type::Record(_)) => Argument::Record(random.u32(..1 << 16)),
                (_, _) => input.elements(function, variable.ty.pointer(), random),
            };
            input.arguments.push(argument);
        }
        input
    }

    fn elements(&self, function: &Function, pointer: Pointer, random: &mut Rng) -> Argument {
        let seed = random.u32(..1 << 16);
        match pointer.bound {
            Bound::Fat => match random.u32(..12) {
                0 => Argument::Null,
                1 => Argument::Elements { count: random.u32(..5), offset: random.i32(-2..7), seed },
                _ => Argument::Elements { count: random.u32(..7), offset: 0, seed },
            },
            _ if pointer.is_nullable && random.u32(..4) == 0 => Argument::Null,
            // With the zero behind them there are as many as promised, or more.
            Bound::Thin(count) if pointer.is_zeroterm => {
                Argument::Elements { count: count as u32 - 1 + random.u32(..5), offset: 0, seed }
            }
            Bound::Thin(count) => Argument::Elements { count: count as u32, offset: 0, seed },
            Bound::Tag(tag) => {
                let at = function.parameters.iter().position(|&parameter| parameter == tag);
                let count = match at.map(|at| &self.arguments[at]) {
                    Some(Argument::Number(count)) => *count as u32,
                    _ => 1,
                };
                Argument::Elements { count, offset: 0, seed }
            }
        }
    }

    /// The arguments as the text of a call, and what is declared before it: half the objects are made there, so that the compiler
    /// knows how many elements the call's pointers have.
    pub fn text(&self, function: &Function) -> (String, String) {
        let (mut before, mut texts) = (String::new(), Vec::new());
        for (argument, &parameter) in self.arguments.iter().zip(&function.parameters) {
            let ty = function.type_of_variable(parameter);
            texts.push(match argument {
                Argument::Number(value) if function.variables[parameter.0].storage == Storage::Tag => value.to_string(),
                Argument::Number(value) => {
                    let int = ty.int();
                    format!("({}){}", print::int(int), print::number(*value, int.promoted()))
                }
                Argument::Null => "NULL".to_owned(),
                Argument::Record(seed) => format!("record({seed}u)"),
                Argument::Row { count, seed } => format!("row({count}ul, {seed}u)"),
                Argument::Elements { count, offset, seed } => {
                    let pointer = ty.pointer();
                    let fat = Pointer { bound: Bound::Fat, is_nullable: true, ..pointer };
                    let made = format!("{}({count}, {offset}, {seed}u)", maker_name(fat));
                    match pointer.bound {
                        Bound::Fat if seed % 2 == 0 => {
                            let (name, seed) = (format!("made{}", texts.len()), format!("{seed}u"));
                            let (ty, value) = (print::pointer(fat), element_text(fat, &seed));
                            before += &format!("{ty}{name} = new {{for i < {count} : {value}}}; ");
                            if *offset == 0 { name } else { format!("{name} + {offset}") }
                        }
                        Bound::Fat => made,
                        _ if pointer.is_zeroterm => format!("({}){made}", print::pointer(pointer).trim_end()),
                        _ => {
                            let known = Pointer { bound: Bound::Thin(u64::from(*count)), ..pointer };
                            format!("({}){made}", print::pointer(known).trim_end())
                        }
                    }
                }
            });
        }
        (before, texts.join(", "))
    }
}

fn number(int: Int, random: &mut Rng) -> i128 {
    let near = i128::from(random.i32(-2..4));
    let number = match random.u32(..16) {
        0 => int.least() + near.max(0),
        1 => int.most() - near.max(0),
        2 => (1 << random.u32(28..65)) + near,
        3 => -(1 << random.u32(6..34)) + near,
        4 => (1 << random.u32(6..18)) + near,
        _ => i128::from(random.i32(-2..8)),
    };
    int.cut(number)
}

/// So many random inputs are tried on the machine.
const TRIALS: u32 = 150;
/// A call with each input makes the program longer: no more are kept of a function.
const MOST_INPUTS: usize = 12;

/// Inputs with what they do: of each place that throws one, and some others.
pub fn chosen(function: &Function, random: &mut Rng) -> Vec<(Input, Outcome)> {
    let (mut ends, mut chosen) = (HashSet::new(), Vec::new());
    for trial in 0..TRIALS {
        let input = Input::random(function, random);
        let Some(outcome) = machine::run(function, &input) else { continue };
        let end = match outcome.end {
            Ok(_) => (None, trial as usize / 40),
            Err((exception, site)) => (Some(exception), site),
        };
        if ends.insert(end) {
            chosen.push((input, outcome));
        }
    }
    random.shuffle(&mut chosen);
    // All calls of a function say more of its arguments when they are few.
    let most = if random.u32(..3) == 0 { random.usize(1..4) } else { MOST_INPUTS };
    chosen.truncate(most);
    chosen
}
