//! The machine code of a kernel as assembly, with what each stretch is for.

use dtc_compiler::codegen::cranelift::{MachineCode, Microkernel};
use dtc_compiler::plan::{Direction, Plan, StepId};
use dtc_measure::report;
use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, Mnemonic, OpKind};
use std::collections::BTreeSet;
use std::fmt::Write;
use yaxpeax_arch::{Arch, Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::{ARMv8, Operand};

/// Columns of an instruction before the remark behind it.
const INSTRUCTION: usize = 44;

/// Characters of a step that are shown.
const STEP: usize = 100;

/// A decoded instruction.
struct Line {
    /// Where it is, in bytes from the beginning of the kernel.
    address: u64,
    text: String,
    /// Where it jumps to.
    target: Option<u64>,
}

/// The instructions for an x86-64.
fn x86_64(code: &[u8]) -> Vec<Line> {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_first_operand_char_index(8);
    options.set_space_after_operand_separator(true);
    options.set_branch_leading_zeros(false);
    let line = |instruction: Instruction| {
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        let jumps = instruction.op0_kind() == OpKind::NearBranch64 && instruction.mnemonic() != Mnemonic::Call;
        let target = jumps.then(|| instruction.near_branch_target());
        Line { address: instruction.ip(), text, target }
    };
    Decoder::with_ip(64, code, 0, DecoderOptions::NONE).into_iter().map(line).collect()
}

/// The instructions for an AArch64.
fn aarch64(code: &[u8]) -> Vec<Line> {
    let line = |(index, word): (usize, &[u8])| {
        let address = index as u64 * 4;
        match <ARMv8 as Arch>::Decoder::default().decode(&mut U8Reader::new(word)) {
            Err(_) => Line { address, text: format!(".byte   {word:02x?}"), target: None },
            Ok(instruction) => {
                let text = instruction.to_string();
                let jumps = ["b", "cb", "tb"].iter().any(|start| text.starts_with(start)) && !text.starts_with("bl");
                let offset = instruction.operands.iter().find_map(|operand| match operand {
                    Operand::PCOffset(offset) if jumps => Some(*offset),
                    _ => None,
                });
                Line { address, text, target: offset.map(|offset| address.wrapping_add_signed(offset)) }
            }
        }
    };
    code.chunks(4).enumerate().map(line).collect()
}

/// What a kernel calls.
fn name(microkernel: Microkernel) -> String {
    match microkernel {
        Microkernel::Copy => "copies a contiguous piece".to_owned(),
        Microkernel::Rows(bytes) => format!("moves rows of {bytes} bytes"),
        Microkernel::Planes(bytes) => format!("moves planes of rows of {bytes} bytes"),
        Microkernel::Tile(bytes) => format!("moves tiles of rows of {bytes} bytes"),
        Microkernel::List32(bytes) => format!("moves {bytes} bytes at each of a list of 32-bit offsets"),
        Microkernel::List64(bytes) => format!("moves {bytes} bytes at each of a list of 64-bit offsets"),
        Microkernel::Runs => "moves runs of a list".to_owned(),
    }
}

/// A kernel for this machine as assembly, or nothing on architectures that are not disassembled here.
pub fn listing(code: &MachineCode, plan: &Plan, direction: Direction) -> Option<String> {
    let (lines, machine, registers) = match std::env::consts::ARCH {
        "x86_64" => (x86_64(&code.code), "x86-64", "rdi, packed rsi, count rdx, tables rcx"),
        "aarch64" => (aarch64(&code.code), "AArch64", "x0, packed x1, count x2, tables x3"),
        _ => return None,
    };
    let mut text = String::new();
    let bytes = code.code.len();
    // Writing to a string cannot fail.
    let _ =
        writeln!(text, "; {direction}, {bytes} bytes for {machine}: memory {registers}; addresses are bytes from here");
    write_lines(&lines, code, plan, &mut text);
    Some(text)
}

fn write_lines(lines: &[Line], code: &MachineCode, plan: &Plan, text: &mut String) {
    // Cranelift marks no jumps that it adds at the ends of loops: they belong to what is before them.
    let step_at = |address: u64| {
        let before = code.sources.partition_point(|source| u64::from(source.range.start) <= address);
        code.sources[..before].last().map(|source| source.step)
    };
    let labels: BTreeSet<u64> = lines.iter().filter_map(|line| line.target).collect();
    let label = |target: u64| format!(".L{}", labels.range(..target).count() + 1);
    let mut shown = None;
    for (index, line) in lines.iter().enumerate() {
        let step = step_at(line.address);
        if labels.contains(&line.address) {
            // The last jump back to here is that of the loop which begins here.
            let jumps = lines[index..].iter().filter(|jump| jump.target == Some(line.address));
            let repeated = jumps.map(|jump| step_at(jump.address)).next_back();
            let remark = match repeated {
                None => String::new(),
                Some(Some(Some(step))) => format!("    ; loop of #{}", step.index()),
                Some(_) => "    ; loop over the elements".to_owned(),
            };
            let _ = writeln!(text, "{}:{remark}", label(line.address));
            shown = None;
        }
        if let Some(Some(step)) = step
            && shown != Some(step)
        {
            let _ = writeln!(text, "    ; {}", describe(plan, step));
            shown = Some(step);
        }
        let instruction = match line.target {
            Some(target) => format!("{:<8}{}", line.text.split_whitespace().next().unwrap_or(""), label(target)),
            None => line.text.clone(),
        };
        let next = lines.get(index + 1).map_or(code.code.len() as u64, |next| next.address);
        let called = code.relocations.iter().find(|call| (line.address..next).contains(&call.offset.into()));
        let remark = match (called, line.target) {
            (Some(call), _) => format!("; the address of what {}", name(call.microkernel)),
            (None, Some(target)) if target <= line.address => match step {
                Some(Some(step)) => format!("; again, until #{} is done", step.index()),
                _ => "; the next element".to_owned(),
            },
            _ => String::new(),
        };
        let line = format!("    {:04x}  {instruction:<INSTRUCTION$}{remark}", line.address);
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// A step in the words of the plan.
fn describe(plan: &Plan, step: StepId) -> String {
    report::cut(&format!("#{} = {}", step.index(), plan.step(step)), STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_x86_64_are_decoded() {
        // mov rax, [rdi+8]; dec rdx; jne 0; ret
        let code = [0x48, 0x8b, 0x47, 0x08, 0x48, 0xff, 0xca, 0x75, 0xf7, 0xc3];
        let lines = x86_64(&code);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts[0], "mov     rax, [rdi+8]");
        assert_eq!((lines[2].address, lines[2].target), (7, Some(0)));
        assert_eq!((texts[3], lines[3].target), ("ret", None));
    }

    #[test]
    fn instructions_of_aarch64_are_decoded() {
        // ldr x0, [x1, #8]; cbnz x2, 0; bl 0; ret
        let words: [u32; 4] = [0xf940_0420, 0xb5ff_ffe2, 0x97ff_fffe, 0xd65f_03c0];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let lines = aarch64(&code);
        assert!(lines[0].text.starts_with("ldr x0, [x1"), "{}", lines[0].text);
        assert_eq!((lines[1].address, lines[1].target), (4, Some(0)));
        assert_eq!((lines[2].target, lines[3].target), (None, None));
        assert!(lines[3].text.starts_with("ret"));
    }
}
