use context::*;

fn look(cx: &Cx) -> &Cx {
    cx
}

fn stores(cx: Cx) -> Option<Cx> {
    Some(cx)
}

struct Holder {
    cx: Cx,
}

impl Holder {
    fn look(&mut self) -> &Cx {
        look(&self.cx)
    }
}
