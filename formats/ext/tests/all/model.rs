//! What a file system should hold, kept in plain memory; and the comparison with what it does.

use crate::image::{Scratch, tool};
use crate::mount::Mount;
use ext::{Kind, SetMode};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    File(Vec<u8>),
    Dir { names: BTreeMap<Vec<u8>, u32>, parent: u32 },
    Symlink(Vec<u8>),
    Other(u16, (u32, u32)),
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub nodes: BTreeMap<u32, Node>,
    pub links: BTreeMap<u32, u32>,
    pub attributes: BTreeMap<u32, BTreeMap<Vec<u8>, Vec<u8>>>,
}

pub const ROOT: u32 = 2;

impl Model {
    pub fn new() -> Self {
        let mut this = Self::default();
        this.nodes.insert(ROOT, Node::Dir { names: BTreeMap::new(), parent: ROOT });
        this
    }

    pub fn names(&mut self, dir: u32) -> &mut BTreeMap<Vec<u8>, u32> {
        match self.nodes.get_mut(&dir) {
            Some(Node::Dir { names, .. }) => names,
            other => panic!("{dir} is no directory but {other:?}"),
        }
    }

    pub fn is_dir(&self, number: u32) -> bool {
        matches!(self.nodes.get(&number), Some(Node::Dir { .. }))
    }

    /// Whether `above` is `dir` or has it somewhere below it.
    pub fn is_above(&self, above: u32, dir: u32) -> bool {
        let mut at = dir;
        loop {
            if at == above {
                return true;
            }
            match self.nodes.get(&at) {
                Some(Node::Dir { parent, .. }) if at != ROOT => at = *parent,
                _ => return false,
            }
        }
    }

    pub fn forget(&mut self, number: u32) {
        self.nodes.remove(&number);
        self.links.remove(&number);
        self.attributes.remove(&number);
    }

    /// Compares all of it with what is mounted.
    pub fn compare(&self, mount: &Mount) {
        for (number, node) in &self.nodes {
            let inode = mount.inode(*number).unwrap_or_else(|error| panic!("inode {number}: {error:?}"));
            match node {
                Node::File(data) => {
                    assert_eq!(inode.kind(), Some(Kind::File));
                    let found = mount.read(*number).expect("a file");
                    assert_eq!(found.len(), data.len(), "size of {number}");
                    assert!(
                        found == *data,
                        "contents of {number} from byte {:?}",
                        found.iter().zip(data).position(|(a, b)| a != b)
                    );
                }
                Node::Dir { names, parent } => {
                    let mut found = mount.names(*number).expect("a directory");
                    found.retain(|(name, _)| name != b"lost+found");
                    let count = found.len();
                    let found: BTreeMap<_, _> = found.into_iter().collect();
                    assert_eq!(count, found.len(), "each name of {number} once");
                    assert_eq!(&found, names, "names of {number}");
                    let dirs = names.values().filter(|inode| self.is_dir(**inode)).count() as u16;
                    assert_eq!(inode.links(), 2 + dirs + u16::from(*number == ROOT), "links of directory {number}");
                    assert_eq!(mount.see(|fs, disk| fs.lookup(disk, &inode, b"..")).expect("a parent"), *parent);
                    for (name, expected) in names.iter().take(40) {
                        assert_eq!(mount.see(|fs, disk| fs.lookup(disk, &inode, name)), Ok(*expected));
                    }
                    assert_eq!(
                        mount.see(|fs, disk| fs.lookup(disk, &inode, b"is not there")),
                        Err(ext::Error::NotFound)
                    );
                }
                Node::Symlink(target) => {
                    assert_eq!(mount.see(|fs, disk| fs.read_link(disk, &inode)).expect("a link"), *target);
                }
                Node::Other(mode, device) => {
                    assert_eq!(inode.mode(), *mode);
                    if inode.device().is_some() {
                        assert_eq!(inode.device(), Some(*device));
                    }
                }
            }
            if let Some(links) = self.links.get(number) {
                assert_eq!(u32::from(inode.links()), *links, "links of {number}");
            }
            let found = mount.see(|fs, disk| fs.attributes(disk, &inode)).expect("attributes");
            let found: BTreeMap<_, _> = found.into_iter().map(|one| (one.name, one.value)).collect();
            assert_eq!(found, self.attributes.get(number).cloned().unwrap_or_default(), "attributes of {number}");
            for (name, value) in &found {
                assert_eq!(mount.see(|fs, disk| fs.attribute(disk, &inode, name)).as_ref(), Ok(value));
            }
        }
    }

    /// Compares files, directories and links with what debugfs finds in an image.
    pub fn compare_with_debugfs(&self, image: &[u8]) {
        let scratch = Scratch::new();
        let file = scratch.0.join("image");
        std::fs::write(&file, image).expect("room for the image");
        let out = scratch.0.join("out");
        std::fs::create_dir(&out).expect("a directory");
        let command = format!("rdump / {}", out.display());
        let (text, _) = tool("debugfs", &["-R", &command, file.to_str().expect("a name")]);
        self.compare_dir(ROOT, &out, &text);
    }

    fn compare_dir(&self, dir: u32, path: &std::path::Path, text: &str) {
        use std::os::unix::ffi::OsStrExt;
        let Some(Node::Dir { names, .. }) = self.nodes.get(&dir) else { panic!("a directory") };
        for (name, number) in names {
            let path = path.join(std::ffi::OsStr::from_bytes(name));
            match &self.nodes[number] {
                Node::File(data) => {
                    let found =
                        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}: {text}", path.display()));
                    assert!(found == *data, "contents of {} as debugfs finds them", path.display());
                }
                Node::Dir { .. } => self.compare_dir(*number, &path, text),
                Node::Symlink(target) => {
                    assert_eq!(std::fs::read_link(&path).expect("a link").as_os_str().as_bytes(), target);
                }
                Node::Other(..) => {}
            }
        }
    }

    pub fn set_attribute(&mut self, mount: &mut Mount, number: u32, name: &[u8], value: &[u8]) -> ext::Result<()> {
        mount.change(|tx| {
            let mut inode = tx.fs().inode(tx, number)?;
            tx.set_attribute(&mut inode, name, value, SetMode::Any)
        })?;
        self.attributes.entry(number).or_default().insert(name.into(), value.into());
        Ok(())
    }
}
