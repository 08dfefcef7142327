//! What the functions of `prelude.cyc` do, on the machine.

use super::inputs::{Argument, Input, cells, pick};
use super::machine::{Machine, Value};
use super::memory::Address;
use super::syntax::{Element, INT_FAT, Int, Storage};

impl Machine<'_> {
    /// Gives the parameters and global variables their values.
    pub(super) fn begin(&mut self, input: &Input) {
        for (at, variable) in self.function.variables.iter().enumerate() {
            if let Storage::Global(name) = variable.storage {
                self.values[at] = self.global(name, input.seed);
            }
        }
        for (parameter, argument) in self.function.parameters.iter().zip(&input.arguments) {
            let ty = self.function.type_of_variable(*parameter);
            self.values[parameter.0] = match *argument {
                Argument::Number(number) => Value::Int(number),
                Argument::Elements { count, offset, seed } => {
                    let parts = ty.pointer();
                    let object = self.memory.object(parts.element, cells(parts, count, seed));
                    Value::Pointer(object.plus(parts.element.size(), offset as u64))
                }
                Argument::Record(seed) => self.record(seed),
                Argument::Row { count, seed } => {
                    let elements = self.made(count.into(), seed);
                    self.rows.push((count.into(), elements.address()));
                    Value::Row(self.rows.len() - 1)
                }
                Argument::Null => Value::Pointer(Address::NULL),
            };
        }
    }

    /// What the program's `begin` gives a global variable.
    fn global(&mut self, name: &str, seed: u32) -> Value {
        match name {
            "g0" => Value::Int(pick(seed, 100)),
            "g1" => Value::Int(Int::UNSIGNED.cut(pick(seed, 101))),
            "g2" => Value::Int(pick(seed, 102)),
            "gp" => self.made(pick(seed, 103) + 1, seed),
            "gq" if pick(seed, 104) < 1 => Value::Pointer(Address::NULL),
            "gq" => self.made(1, seed),
            _ => self.made(5, seed),
        }
    }

    /// `make_int(count, 0, seed)`
    fn made(&mut self, count: i128, seed: u32) -> Value {
        Value::Pointer(self.memory.object(Element::Int(Int::INT), cells(INT_FAT, count as u32, seed)))
    }

    /// `record(seed)`
    fn record(&mut self, seed: u32) -> Value {
        if pick(seed, 105) < 1 {
            return Value::Record(None);
        }
        let fat = self.made(pick(seed, 108) + 1, seed);
        let thin = match pick(seed, 109) < 2 {
            true => Value::Pointer(Address::NULL),
            false => self.made(1, seed.wrapping_add(1)),
        };
        let unsigned = Int::UNSIGNED.cut(pick(seed, 107));
        self.records.push([Value::Int(pick(seed, 106)), Value::Int(unsigned), fat, thin]);
        Value::Record(Some(self.records.len() - 1))
    }

    /// The function `change` of every program.
    pub(super) fn change(&mut self, number: i128, record: Option<usize>) -> Value {
        self.note(number);
        for (at, variable) in self.function.variables.iter().enumerate() {
            let Storage::Global(name) = variable.storage else { continue };
            self.values[at] = match (name, self.values[at]) {
                ("g0", _) => Value::Int(number),
                ("g1", _) => Value::Int(Int::UNSIGNED.cut(number + 1)),
                ("g2", Value::Int(old)) => Value::Int(Int::LONG.cut(old - 1)),
                ("gp", Value::Pointer(old)) => Value::Pointer(old.plus(4, 1)),
                ("gq", _) => Value::Pointer(Address::NULL),
                (_, old) => old,
            };
        }
        if let Some(record) = record {
            let [_, unsigned, fat, _] = self.records[record];
            self.records[record] = [
                Value::Int(number),
                Value::Int(Int::UNSIGNED.cut(unsigned.int() + 1)),
                Value::Pointer(fat.address().plus(4, 1)),
                Value::Pointer(Address::NULL),
            ];
        }
        Value::Int(number ^ 1)
    }
}
