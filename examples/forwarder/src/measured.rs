//! What is asked of a run, and what it showed.

/// What a run has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    pub packets: u32,
    /// Of a packet.
    pub bytes: u32,
    /// Packets each second; 0 for as many as go.
    pub rate: u32,
    /// To how many receivers each packet goes.
    pub receivers: u8,
    /// The forwarder's; with 0 it looks up none.
    pub routes: u32,
    /// The bytes that the forwarder reads and sends with one system call.
    pub batch: u32,
}

/// What one run took, or the median of several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub load: Load,
    /// From the first to the last packet, at the receiver.
    pub wall_micros: u64,
    /// The forwarder's.
    pub processor_micros: u64,
    /// What the forwarder spent in system calls, of `processor_micros`.
    pub system_micros: u64,
    /// The forwarder's, without what it has of its program and libraries.
    pub memory_kib: u64,
    /// The same before the first packet; with the routes.
    pub idle_kib: u64,
    /// Where packets were sent at a rate.
    pub late: Option<Late>,
}

/// How long after they were due packets were received, in microseconds: half of them, all but a hundredth, and all were not later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    pub half: u64,
    pub most: u64,
    pub all: u64,
}

impl Measured {
    /// The median of each figure of runs with the same load; None of no runs.
    pub fn median(runs: &[Measured]) -> Option<Measured> {
        let figure = |figure: fn(&Measured) -> u64| median(runs.iter().map(figure).collect());
        let late: Vec<Late> = runs.iter().filter_map(|run| run.late).collect();
        Some(Measured {
            load: runs.first()?.load,
            wall_micros: figure(|run| run.wall_micros),
            processor_micros: figure(|run| run.processor_micros),
            system_micros: figure(|run| run.system_micros),
            memory_kib: figure(|run| run.memory_kib),
            idle_kib: figure(|run| run.idle_kib),
            late: Late::of_several(&late, median),
        })
    }

    pub fn packets_per_second(&self) -> f64 {
        f64::from(self.load.packets) * 1e6 / self.wall_micros.max(1) as f64
    }

    pub fn megabytes_per_second(&self) -> f64 {
        self.packets_per_second() * f64::from(self.load.bytes) / 1e6
    }

    pub fn processor_micros_per_packet(&self) -> f64 {
        self.processor_micros as f64 / f64::from(self.load.packets.max(1))
    }

    pub fn system_micros_per_packet(&self) -> f64 {
        self.system_micros as f64 / f64::from(self.load.packets.max(1))
    }

    /// What packets added to the forwarder's memory.
    pub fn above_idle_kib(&self) -> u64 {
        self.memory_kib.saturating_sub(self.idle_kib)
    }
}

impl Late {
    /// The highest of each figure; None of none.
    pub fn highest(several: &[Late]) -> Option<Late> {
        Late::of_several(several, |figures| figures.into_iter().fold(0, u64::max))
    }

    fn of_several(several: &[Late], choose: fn(Vec<u64>) -> u64) -> Option<Late> {
        let figure = |figure: fn(&Late) -> u64| choose(several.iter().map(figure).collect());
        (!several.is_empty()).then(|| Late {
            half: figure(|late| late.half),
            most: figure(|late| late.most),
            all: figure(|late| late.all),
        })
    }
}

/// Of figures, of which there are some.
fn median(mut figures: Vec<u64>) -> u64 {
    figures.sort_unstable();
    figures[figures.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { packets: 1000, bytes: 500, rate: 0, receivers: 1, routes: 0, batch: 1 };
    const RUN: Measured = Measured {
        load: LOAD,
        wall_micros: 2000,
        processor_micros: 1500,
        system_micros: 1000,
        memory_kib: 3,
        idle_kib: 2,
        late: Some(Late { half: 1, most: 2, all: 3 }),
    };

    #[test]
    fn rates_are_per_second_and_per_packet() {
        assert_eq!(RUN.packets_per_second(), 500_000.0);
        assert_eq!(RUN.megabytes_per_second(), 250.0);
        assert_eq!(RUN.processor_micros_per_packet(), 1.5);
        assert_eq!(RUN.system_micros_per_packet(), 1.0);
        assert_eq!(RUN.above_idle_kib(), 1);
    }

    #[test]
    fn of_several_runs_each_figure_has_its_median() {
        let runs = [
            Measured { wall_micros: 1, memory_kib: 9, ..RUN },
            RUN,
            Measured { wall_micros: 7000, memory_kib: 5, late: Some(Late { half: 0, most: 2, all: 9 }), ..RUN },
        ];
        assert_eq!(Measured::median(&runs), Some(Measured { memory_kib: 5, ..RUN }));
        assert_eq!(Measured::median(&[]), None);
    }

    #[test]
    fn of_several_receivers_the_latest_counts() {
        let (one, other) = (Late { half: 1, most: 5, all: 6 }, Late { half: 2, most: 3, all: 9 });
        assert_eq!(Late::highest(&[one, other]), Some(Late { half: 2, most: 5, all: 9 }));
        assert_eq!(Late::highest(&[]), None);
    }
}
