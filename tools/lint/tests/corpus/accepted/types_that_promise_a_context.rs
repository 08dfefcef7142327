use context::*;

type Job = fn(&mut Cx);

struct Jobs {
    list: Vec<Box<dyn FnMut(&mut Cx)>>,
    first: Option<Job>,
}

impl Jobs {
    fn add(&mut self, job: impl FnMut(&mut Cx) + 'static) {
        self.list.push(Box::new(job));
    }

    fn set_first(&mut self, job: fn(&mut Cx), _other: &dyn Fn(&mut Cx) -> u8) {
        self.first = Some(job);
    }
}
