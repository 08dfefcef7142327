//! Says hello through Rust's standard library: four threads count, one line is printed.

use std::sync::mpsc;
use std::thread;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "world".to_owned());
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..4)
        .map(|index| {
            let sender = sender.clone();
            let part: String = name.chars().skip(index).step_by(4).collect();
            thread::spawn(move || sender.send(part.chars().count()))
        })
        .collect();
    drop(sender);
    let count: usize = receiver.iter().sum();
    let clean = threads.into_iter().all(|thread| matches!(thread.join(), Ok(Ok(()))));
    println!("hello, {name} ({} characters)", if clean { count + "hello, ".len() } else { 0 });
}
