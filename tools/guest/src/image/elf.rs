//! What an ELF file says about itself, as far as running it in a guest goes: whether it is a whole x86-64 Linux program,
//! its interpreter, and the shared libraries it asks for.

use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{LittleEndian, pod};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

type Header = elf::FileHeader64<LittleEndian>;
type Segment = elf::ProgramHeader64<LittleEndian>;

/// A program or shared library that was found to be whole: all that its program headers name lies within the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfFile {
    /// The dynamic loader that the kernel is to start with it; none for a static program.
    pub interpreter: Option<PathBuf>,
    /// Names of the libraries it needs, in order.
    pub needed: Vec<String>,
    /// Directories to look for them in, as written: `$ORIGIN` is not replaced yet.
    pub search_path: Vec<String>,
}

/// Whether a file that starts like this claims to be an ELF file.
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(&elf::ELFMAG)
}

/// Reads an ELF file; an error says why a guest could not run it.
pub fn read(bytes: &[u8]) -> Result<ElfFile, String> {
    if !is_elf(bytes) {
        return Err("not a program: neither an ELF file nor a script".into());
    }
    check_identity(bytes)?;
    let corrupt = |what: &str| format!("corrupt ELF file: {what}");
    let header = Header::parse(bytes).map_err(|error| corrupt(&error.to_string()))?;
    let endian = LittleEndian;
    match header.e_type(endian) {
        elf::ET_EXEC | elf::ET_DYN => {}
        elf::ET_REL => return Err("an object file: it has not been linked".into()),
        elf::ET_CORE => return Err("a core dump, not a program".into()),
        kind => return Err(corrupt(&format!("unknown type {kind}"))),
    }
    let segments = header.program_headers(endian, bytes).map_err(|error| corrupt(&error.to_string()))?;
    if !segments.iter().any(|segment| segment.p_type(endian) == elf::PT_LOAD) {
        return Err(corrupt("nothing in it is to be loaded"));
    }
    for segment in segments.iter().filter(|segment| segment.p_type(endian) != elf::PT_NULL) {
        segment.data(endian, bytes).map_err(|()| corrupt("it is shorter than its headers say"))?;
        let memory_end = segment.p_vaddr(endian).checked_add(segment.p_memsz(endian));
        if segment.p_type(endian) == elf::PT_LOAD
            && (segment.p_memsz(endian) < segment.p_filesz(endian) || memory_end.is_none())
        {
            return Err(corrupt("a segment does not fit its memory"));
        }
    }
    let interpreter = segments
        .iter()
        .find_map(|segment| segment.interpreter(endian, bytes).transpose())
        .transpose()
        .map_err(|error| corrupt(&error.to_string()))?
        .map(|path| PathBuf::from(OsStr::from_bytes(path)));
    let (needed, search_path) = read_dynamic(segments, bytes).map_err(|what| corrupt(&what))?;
    Ok(ElfFile { interpreter, needed, search_path })
}

fn check_identity(bytes: &[u8]) -> Result<(), String> {
    let header = bytes.get(..20).ok_or("corrupt ELF file: it ends within its header")?;
    let machine = if header[5] == elf::ELFDATA2MSB {
        u16::from_be_bytes([header[18], header[19]])
    } else {
        u16::from_le_bytes([header[18], header[19]])
    };
    let architecture = match machine {
        elf::EM_X86_64 if header[4] == elf::ELFCLASS32 => "x32",
        elf::EM_X86_64 => "",
        elf::EM_386 => "32-bit x86",
        elf::EM_AARCH64 => "64-bit Arm",
        elf::EM_ARM => "32-bit Arm",
        elf::EM_RISCV => "RISC-V",
        elf::EM_PPC64 => "64-bit PowerPC",
        elf::EM_S390 => "IBM Z",
        elf::EM_MIPS => "MIPS",
        elf::EM_LOONGARCH => "LoongArch",
        other => return Err(format!("a program for another architecture (ELF machine {other}); guests are x86-64")),
    };
    if !architecture.is_empty() {
        return Err(format!("a program for {architecture}; guests are x86-64"));
    }
    match header[7] {
        elf::ELFOSABI_SYSV | elf::ELFOSABI_GNU => Ok(()),
        other => Err(format!("a program for another operating system (ELF OS/ABI {other}); guests run Linux programs")),
    }
}

/// The needed libraries and the search path.
fn read_dynamic(segments: &[Segment], bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), String> {
    let endian = LittleEndian;
    let Some(entries) = segments
        .iter()
        .find_map(|segment| segment.dynamic(endian, bytes).transpose())
        .transpose()
        .map_err(|error| error.to_string())?
    else {
        return Ok((Vec::new(), Vec::new()));
    };
    let value_of =
        |tag: u32| entries.iter().find(|entry| entry.tag32(endian) == Some(tag)).map(|entry| entry.d_val(endian));
    let Some(strings_at) = value_of(elf::DT_STRTAB) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let strings = file_bytes_at(segments, bytes, strings_at).ok_or("its string table is not in the file")?;
    let string = |offset: u64| -> Result<String, String> {
        let rest =
            usize::try_from(offset).ok().and_then(|offset| strings.get(offset..)).ok_or("a name is not in the file")?;
        let end = rest.iter().position(|&byte| byte == 0).ok_or("a name does not end")?;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    let mut needed = Vec::new();
    for entry in entries.iter().take_while(|entry| entry.tag32(endian) != Some(elf::DT_NULL)) {
        if entry.tag32(endian) == Some(elf::DT_NEEDED) {
            needed.push(string(entry.d_val(endian))?);
        }
    }
    // The older DT_RPATH counts only where there is no DT_RUNPATH (ld.so(8)).
    let search_path = match value_of(elf::DT_RUNPATH).or_else(|| value_of(elf::DT_RPATH)) {
        Some(offset) => string(offset)?.split(':').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
        None => Vec::new(),
    };
    Ok((needed, search_path))
}

/// The bytes of the file from those on that are loaded at an address, to the end of their segment.
fn file_bytes_at<'a>(segments: &[Segment], bytes: &'a [u8], address: u64) -> Option<&'a [u8]> {
    let endian = LittleEndian;
    segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD).find_map(|segment| {
        let data = segment.data(endian, bytes).ok()?;
        let offset = usize::try_from(address.checked_sub(segment.p_vaddr(endian))?).ok()?;
        data.get(offset..).filter(|rest| !rest.is_empty())
    })
}

/// A static program of `code` alone, loaded at 4 MiB; for programs too small to need a compiler.
pub fn tiny_program(code: &[u8]) -> Vec<u8> {
    use object::endian::{U16, U32, U64};
    const LOAD_ADDRESS: u64 = 0x40_0000;
    let header_bytes = size_of::<Header>() + size_of::<Segment>();
    let length = (header_bytes + code.len()) as u64;
    let endian = LittleEndian;
    let header = Header {
        e_ident: elf::Ident {
            magic: elf::ELFMAG,
            class: elf::ELFCLASS64,
            data: elf::ELFDATA2LSB,
            version: elf::EV_CURRENT,
            os_abi: elf::ELFOSABI_SYSV,
            abi_version: 0,
            padding: [0; 7],
        },
        e_type: U16::new(endian, elf::ET_EXEC),
        e_machine: U16::new(endian, elf::EM_X86_64),
        e_version: U32::new(endian, elf::EV_CURRENT.into()),
        e_entry: U64::new(endian, LOAD_ADDRESS + header_bytes as u64),
        e_phoff: U64::new(endian, size_of::<Header>() as u64),
        e_shoff: U64::new(endian, 0),
        e_flags: U32::new(endian, 0),
        e_ehsize: U16::new(endian, size_of::<Header>() as u16),
        e_phentsize: U16::new(endian, size_of::<Segment>() as u16),
        e_phnum: U16::new(endian, 1),
        e_shentsize: U16::new(endian, 0),
        e_shnum: U16::new(endian, 0),
        e_shstrndx: U16::new(endian, 0),
    };
    let segment = Segment {
        p_type: U32::new(endian, elf::PT_LOAD),
        p_flags: U32::new(endian, elf::PF_R | elf::PF_X),
        p_offset: U64::new(endian, 0),
        p_vaddr: U64::new(endian, LOAD_ADDRESS),
        p_paddr: U64::new(endian, LOAD_ADDRESS),
        p_filesz: U64::new(endian, length),
        p_memsz: U64::new(endian, length),
        p_align: U64::new(endian, 0x1000),
    };
    let mut bytes = pod::bytes_of(&header).to_vec();
    bytes.extend_from_slice(pod::bytes_of(&segment));
    bytes.extend_from_slice(code);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mov eax, 60; xor edi, edi; syscall`
    const EXIT_0: &[u8] = &[0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];

    #[test]
    fn a_tiny_program_is_whole_and_static() {
        let program = read(&tiny_program(EXIT_0)).unwrap();
        assert_eq!(program, ElfFile { interpreter: None, needed: vec![], search_path: vec![] });
    }

    #[test]
    fn a_dynamic_program_names_its_loader_and_libraries() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let program = read(&own).unwrap();
        assert!(program.interpreter.unwrap().starts_with("/lib64"));
        assert!(program.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", program.needed);
    }

    #[test]
    fn each_unusable_file_has_its_own_message() {
        let good = tiny_program(EXIT_0);
        let with = |position: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[position] = value;
            read(&bytes).unwrap_err()
        };
        assert!(with(0, 0).contains("neither an ELF file nor a script"));
        assert!(with(18, 183).contains("64-bit Arm"));
        assert!(with(4, elf::ELFCLASS32).contains("x32"));
        assert!(with(7, 9).contains("another operating system"));
        assert!(with(16, 1).contains("object file"));
        assert!(read(&good[..good.len() - 1]).unwrap_err().contains("shorter"));
        assert!(read(&good[..30]).unwrap_err().contains("corrupt"));
    }

    #[test]
    fn a_file_with_any_byte_changed_is_never_a_panic() {
        let good = tiny_program(EXIT_0);
        for position in 0..good.len() {
            for value in [0, 0x7f, 0xff] {
                let mut changed = good.clone();
                changed[position] = value;
                let _ = read(&changed);
            }
        }
    }
}
