//! Measures how fast the addr2line crate looks up addresses: `addr2line_bench FILE ADDRESSES ANSWERS`. Each address has
//! 8 bytes, little-endian. The answer for each address goes to ANSWERS, in the format of symbols_bench.cc. The measured
//! times go to stdout as JSON.

use addr2line::Context;
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection};
use std::{env, error::Error, fs, io::Write};

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

const PASSES: usize = 5;

fn cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// FNV-1a.
struct Hash(u32);
impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(16_777_619);
        }
    }
}

fn touch(bytes: &[u8]) -> u64 {
    match bytes {
        [] => 0,
        [first, ..] => u64::from(*first) + u64::from(bytes[bytes.len() - 1]),
    }
}

/// Calls `visit` for every frame with its name as stored in the file, the path of its source file, and its line.
fn look_up<'a>(context: &Context<Bytes<'a>>, address: u64, mut visit: impl FnMut(&'a [u8], &str, u32)) -> Result<(), gimli::Error> {
    let mut frames = context.find_frames(address).skip_all_loads()?;
    while let Some(frame) = frames.next()? {
        let name: &'a [u8] = frame.function.as_ref().map_or(&[], |function| function.name.slice());
        let (file, line) = frame.location.map_or(("", 0), |at| (at.file.unwrap_or(""), at.line.unwrap_or(0)));
        visit(name, file, line);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, path, addresses_path, answers_path] = arguments.as_slice() else {
        return Err("usage: addr2line_bench FILE ADDRESSES ANSWERS".into());
    };
    let addresses: Vec<u64> =
        fs::read(addresses_path)?.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();

    let started = cpu_s();
    let mapped = unsafe { memmap2::Mmap::map(&fs::File::open(path)?)? };
    let object = object::File::parse(&*mapped)?;
    let section = |id: SectionId| -> Result<Bytes, object::Error> {
        let data = match object.section_by_name(id.name()) {
            Some(section) => section.data()?,
            None => &[],
        };
        Ok(EndianSlice::new(data, LittleEndian))
    };
    let context = Context::from_dwarf(Dwarf::load(section)?)?;
    let open_s = cpu_s() - started;

    let started = cpu_s();
    let (mut frames, mut touched) = (0u64, 0u64);
    for address in &addresses {
        look_up(&context, *address, |name, file, line| {
            frames += 1;
            touched += touch(name) + touch(file.as_bytes()) + u64::from(line);
        })?;
    }
    let first_s = cpu_s() - started;

    let mut warm_s = f64::MAX;
    for _ in 0..PASSES {
        let started = cpu_s();
        for address in &addresses {
            look_up(&context, *address, |name, file, line| {
                touched += touch(name) + touch(file.as_bytes()) + u64::from(line);
            })?;
        }
        warm_s = warm_s.min(cpu_s() - started);
    }

    let mut answers = Vec::with_capacity(addresses.len() * 12);
    for address in &addresses {
        let (mut depth, mut lines, mut names) = (0u32, Hash(2_166_136_261), Hash(2_166_136_261));
        let mut inner: &[u8] = &[];
        look_up(&context, *address, |name, _, line| {
            depth += 1;
            lines.add(&line.to_le_bytes());
            names.add(inner);
            inner = name;
        })?;
        for number in [depth, lines.0, names.0] {
            answers.extend(number.to_le_bytes());
        }
    }
    fs::File::create(answers_path)?.write_all(&answers)?;

    let count = addresses.len() as f64;
    println!(
        "{{\"open_ms\": {:.3}, \"first_per_s\": {:.0}, \"warm_per_s\": {:.0}, \"frames\": {frames}, \"touched\": {touched}}}",
        open_s * 1e3,
        count / first_s,
        count / warm_s
    );
    Ok(())
}
