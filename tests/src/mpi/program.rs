//! A C program that builds many types with the calls of an MPI, and prints that MPI's answers about them.

use super::bounds::packs_the_type_map;
use super::{Mpi, compiler};
use dtc_compiler::codegen::mpi_c;
use dtc_compiler::datatype::Datatype;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

/// The answers of an MPI about a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `MPI_Type_size`.
    pub size: u64,
    /// Lower bound from `MPI_Type_get_extent`.
    pub lb: i64,
    /// Extent from `MPI_Type_get_extent`.
    pub extent: i64,
    /// True lower bound from `MPI_Type_get_true_extent`.
    pub true_lb: i64,
    /// True extent from `MPI_Type_get_true_extent`.
    pub true_extent: i64,
    /// Bytes that `MPI_Pack` wrote for two elements; 0 if [`packs_the_type_map`] is false.
    pub packed: u64,
    /// [`hash`] of those bytes. The byte at each displacement was [`fill`].
    pub hash: u64,
}

/// Value of the byte at a displacement.
pub fn fill(displacement: i64) -> u8 {
    ((displacement as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as u8
}

/// FNV-1a with 64 bits.
pub fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Number of types in one C file.
const TYPES_IN_A_FILE: usize = 250;

const MAIN: &str = r#"
static unsigned char fill(long displacement)
{
    return (unsigned char)((unsigned long)displacement * 0x9e3779b97f4a7c15ul >> 53);
}

static void ask(MPI_Datatype type, int packs)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    int size, position = 0;
    unsigned long hash = 0xcbf29ce484222325ul;
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &true_lb, &true_extent);
    if (packs && size > 0) {
        long low = true_lb + (extent < 0 ? extent : 0), high = true_lb + true_extent + (extent > 0 ? extent : 0);
        unsigned char *memory = malloc(high - low), *packed = malloc(2 * (size_t)size);
        for (long at = low; at < high; at++) memory[at - low] = fill(at);
        MPI_Pack(memory - low, 2, type, packed, 2 * size, &position, MPI_COMM_WORLD);
        for (int at = 0; at < position; at++) hash = (hash ^ packed[at]) * 0x100000001b3ul;
        free(memory);
        free(packed);
    }
    printf("%d %ld %ld %ld %ld %d %lu\n", size, (long)lb, (long)extent, (long)true_lb, (long)true_extent, position, hash);
    fflush(stdout);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (unsigned long at = 0; at < sizeof types / sizeof *types; at++) ask(types[at].build(), types[at].packs);
    MPI_Finalize();
    return 0;
}
"#;

/// Whether the MPI's compiler is installed.
pub fn is_installed(mpi: Mpi) -> bool {
    Command::new(compiler(mpi)).arg("-show").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Compiles one program for all types in a directory, runs it, and returns its answers, type by type.
///
/// # Errors
///
/// Files cannot be written, the compiler fails, or the program ends early; then the error names the current type.
pub fn ask(mpi: Mpi, types: &[Datatype], directory: &Path) -> io::Result<Vec<Answer>> {
    let lines = run(mpi, types, directory, MAIN, &[])?;
    Ok(lines.iter().map_while(|line| answer(line)).collect())
}

/// Compiles one program of all types in a directory, and returns its path. Its `main` finds them in an array `types` of `{
/// MPI_Datatype (*build)(void); int packs; }`; `packs` is [`packs_the_type_map`].
///
/// # Errors
///
/// If files cannot be written, or the compiler fails.
pub fn build(
    compiler: &Path,
    mpi: Mpi,
    types: &[Datatype],
    directory: &Path,
    text: &str,
    arguments: &[String],
) -> io::Result<PathBuf> {
    let mut sources = Vec::new();
    let mut main = String::from("#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n\n");
    for (part, chunk) in types.chunks(TYPES_IN_A_FILE).enumerate() {
        let mut source = String::new();
        for (at, datatype) in chunk.iter().enumerate() {
            let name = format!("build_type_{}", part * TYPES_IN_A_FILE + at);
            let emitted = mpi_c::emit(datatype);
            let _ = writeln!(source, "#define build_type {name}\n{emitted}#undef build_type\n");
            let _ = writeln!(main, "MPI_Datatype {name}(void);");
        }
        let file = directory.join(format!("types{part}.c"));
        fs::write(&file, source)?;
        sources.push(file);
    }
    let _ = writeln!(main, "\nstatic const struct {{ MPI_Datatype (*build)(void); int packs; }} types[] = {{");
    for (at, datatype) in types.iter().enumerate() {
        let packs = packs_the_type_map(mpi, datatype);
        let _ = writeln!(main, "    {{ build_type_{at}, {} }},", u8::from(packs));
    }
    let _ = writeln!(main, "}};\n{text}");
    let file = directory.join("main.c");
    fs::write(&file, main)?;
    sources.push(file);

    let program = directory.join("program");
    let built =
        Command::new(compiler).args(["-w", "-O0", "-o"]).arg(&program).args(&sources).args(arguments).output()?;
    if !built.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&built.stderr).into_owned()));
    }
    Ok(program)
}

/// Runs what [`build`] compiles with the MPI's compiler; its `main` prints a line for each type. Returns the lines.
///
/// # Errors
///
/// Those of [`build`], and if the program prints too few lines: then the error names the type it was asked about.
pub fn run(
    mpi: Mpi,
    types: &[Datatype],
    directory: &Path,
    text: &str,
    arguments: &[String],
) -> io::Result<Vec<String>> {
    let program = build(Path::new(compiler(mpi)), mpi, types, directory, text, arguments)?;
    // One process needs no launcher. Open MPI needs permission to run as root.
    let ran = Command::new(&program)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
        .output()?;
    let lines: Vec<String> = String::from_utf8_lossy(&ran.stdout).lines().map(str::to_owned).collect();
    if let Some(unanswered) = types.get(lines.len()) {
        let stderr = String::from_utf8_lossy(&ran.stderr);
        let at = lines.len();
        return Err(io::Error::other(format!(
            "{mpi:?} ended with {} at type {at}:\n{unanswered}\n{stderr}",
            ran.status
        )));
    }
    Ok(lines)
}

fn answer(line: &str) -> Option<Answer> {
    let mut words = line.split(' ');
    let mut number = || words.next()?.parse::<i128>().ok();
    Some(Answer {
        size: number()? as u64,
        lb: number()? as i64,
        extent: number()? as i64,
        true_lb: number()? as i64,
        true_extent: number()? as i64,
        packed: number()? as u64,
        hash: number()? as u64,
    })
}
