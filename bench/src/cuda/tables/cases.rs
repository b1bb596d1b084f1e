//! Layouts of paged caches whose blocks a table of the call lists, as inference engines have them.

use dtc_measure::samples::word;
use std::fmt::Write;

/// Loops of a layout, the outermost first, around runs of bytes.
pub enum Loop {
    /// Iterations, and bytes from one to the next.
    Stride(u64, i64),
    /// The entries of the table, in bytes from place to place.
    Table(i64),
}

/// A layout.
pub struct TableCase {
    /// What it is called.
    pub name: &'static str,
    /// Its loops, in packed order.
    pub loops: Vec<Loop>,
    /// What lies in the innermost loop, in the notation of types.
    pub innermost: Innermost,
    /// Entries of the table.
    pub entries: u64,
    /// Places that the entries name.
    pub places: u64,
}

/// What the innermost loop moves.
pub enum Innermost {
    /// A run of bytes.
    Run(u64),
    /// Two fields: a type, and its packed bytes.
    Type(&'static str, u64),
}

/// Places of a pool for each that is listed.
const POOL: u64 = 4;

/// The cases. Shapes are those of the models that names tell: layers, heads, elements of 2 bytes.
pub fn cases() -> Vec<TableCase> {
    let case = |name, entries, loops, innermost| TableCase { name, loops, innermost, entries, places: POOL * entries };
    let run = Innermost::Run;
    vec![
        // Blocks of 16 tokens, 8 heads: all layers, K and V of a block together.
        case("A Llama-3-8B, blocks of 32 KiB", 512, paged(512, 32, 32 << 10), run(32 << 10)),
        case("B Llama-3-70B TP8, blocks of 4 KiB", 512, paged(512, 80, 4 << 10), run(4 << 10)),
        // One of 4 heads of every token.
        case(
            "C one head of four, 256 of 1,024 bytes",
            512,
            vec![Loop::Stride(160, (512 * POOL * (16 << 10)) as i64), Loop::Table(16 << 10), Loop::Stride(16, 1024)],
            run(256),
        ),
        // Rows of a compressed cache, token by token.
        case("D DeepSeek-V3, rows of 656 bytes", 32_768, rows(32_768, 61, 656), run(656)),
        case("D rows of 576 bytes", 32_768, rows(32_768, 61, 576), run(576)),
        // Every eighth token of a page of 64.
        case(
            "E Kimi K3 DCP 8, rows of 576 bytes",
            876,
            vec![Loop::Stride(24, (876 * POOL * 64 * 576) as i64), Loop::Table(64 * 576), Loop::Stride(8, 8 * 576)],
            run(576),
        ),
        case(
            "E two fields, 128 and 4 bytes",
            8192,
            vec![Loop::Stride(24, (8192 * POOL * 8448) as i64), Loop::Table(8448)],
            Innermost::Type(
                "struct [1@0 (hvector 8 1 1024 (contiguous 128 byte)), 1@8192 (hvector 8 1 32 (contiguous 4 byte))]",
                8 * 132,
            ),
        ),
        // From layers of tokens to pages of heads.
        case(
            "F Qwen3-235B, heads of 256 bytes, permuted",
            128,
            vec![
                Loop::Table(64 * 1024),
                Loop::Stride(4, 256),
                Loop::Stride(94 * 2, (128 * POOL * 64 * 1024) as i64),
                Loop::Stride(64, 1024),
            ],
            run(256),
        ),
    ]
}

/// The case whose pages are also copied to pages of another order, and those pages: all heads of a page one after the other.
pub fn permuted() -> Option<[TableCase; 2]> {
    let source = cases().pop()?;
    let page = source.packed_bytes() / source.entries;
    let (name, entries, places) = ("pages in the order of heads", source.entries, source.places);
    let loops = vec![Loop::Table(page as i64)];
    Some([source, TableCase { name, loops, innermost: Innermost::Run(page), entries, places }])
}

/// For each block, K and V of all layers.
fn paged(entries: u64, layers: u64, bytes: u64) -> Vec<Loop> {
    vec![Loop::Table(bytes as i64), Loop::Stride(2 * layers, (entries * POOL * bytes) as i64)]
}

/// For each layer, the rows of all tokens.
fn rows(entries: u64, layers: u64, bytes: u64) -> Vec<Loop> {
    vec![Loop::Stride(layers, (entries * POOL * bytes) as i64), Loop::Table(bytes as i64)]
}

impl TableCase {
    /// Bytes of the innermost loop.
    fn innermost_bytes(&self) -> u64 {
        match self.innermost {
            Innermost::Run(bytes) | Innermost::Type(_, bytes) => bytes,
        }
    }

    /// Packed bytes.
    pub fn packed_bytes(&self) -> u64 {
        let iterations = |each: &Loop| match each {
            Loop::Stride(iterations, _) => *iterations,
            Loop::Table(_) => self.entries,
        };
        self.loops.iter().map(iterations).product::<u64>() * self.innermost_bytes()
    }

    /// The type, with what is written for the table.
    fn notation(&self, table: &dyn Fn(i64) -> String) -> String {
        let mut text = match self.innermost {
            Innermost::Run(bytes) => format!("contiguous {bytes} byte"),
            Innermost::Type(text, _) => text.to_owned(),
        };
        for each in self.loops.iter().rev() {
            text = match each {
                Loop::Stride(iterations, stride) => format!("hvector {iterations} 1 {stride} ({text})"),
                Loop::Table(pitch) => format!("{} ({text})", table(*pitch)),
            };
        }
        text
    }

    /// The type with a table of the call.
    pub fn tabled(&self) -> String {
        self.notation(&|pitch| format!("table 0 {} {} {pitch}", self.places, self.entries))
    }

    /// The type with the entries written into it.
    pub fn listed(&self, entries: &[i32]) -> String {
        self.notation(&|pitch| {
            let mut text = "hindexed_block 1 [".to_owned();
            for (number, &entry) in entries.iter().enumerate() {
                let _ = write!(text, "{}{}", if number > 0 { ", " } else { "" }, i64::from(entry) * pitch);
            }
            text + "]"
        })
    }

    /// Random places, each at most once, in runs of `run` neighbours.
    pub fn entries(&self, run: u64, seed: u64) -> Vec<i32> {
        let mut runs: Vec<u64> = (0..self.places / run).collect();
        runs.sort_by_key(|&index| word(seed, index));
        runs.iter()
            .flat_map(|first| (0..run).map(move |at| (first * run + at) as i32))
            .take(self.entries as usize)
            .collect()
    }

    /// A kernel as one writes it by hand for this layout, whose constants it has: 16 bytes a thread and iteration. Nothing for
    /// several fields.
    pub fn by_hand(&self) -> Option<String> {
        let Innermost::Run(bytes) = self.innermost else { return None };
        let mut size = bytes / 16;
        let mut place = format!("at % {size}");
        for each in self.loops.iter().rev() {
            match each {
                Loop::Stride(iterations, stride) => {
                    let _ = write!(place, " + (long long)(at / {size} % {iterations}) * {}", stride / 16);
                    size *= iterations;
                }
                Loop::Table(pitch) => {
                    let _ = write!(place, " + (long long)table[at / {size} % {}] * {}", self.entries, pitch / 16);
                    size *= self.entries;
                }
            }
        }
        Some(format!(
            "extern \"C\" __global__ void __launch_bounds__(256)\n{BY_HAND}(uint4 *memory, uint4 *packed, const int *table, int unpack)\n{{\n    \
             for (unsigned at = blockIdx.x * 256 + threadIdx.x; at < {size}; at += gridDim.x * 256) {{\n        \
             const long long place = {place};\n        \
             if (unpack)\n            memory[place] = packed[at];\n        else\n            packed[at] = memory[place];\n    }}\n}}\n"
        ))
    }
}

/// The name of such a kernel.
pub const BY_HAND: &str = "by_hand";
