//! Extended: translates a classic BPF filter into an extended one (eBPF), which a TAP needs.
//!
//! This module is separate because it does not depend on the purpose of a filter. It translates only the
//! instructions that [`program`](super::program) uses, in the same way as the kernel translates a classic filter,
//! and loads the result.

use std::io;
use std::os::fd::OwnedFd;

use libc::sock_filter;

use super::PROTOCOL;
use crate::bpf::{self, Instruction, Kind};

/// Loads `program` into the kernel. The program stays loaded while the returned descriptor is open, or a
/// device uses the program.
///
/// # Errors
/// If the system refuses, most often because this process lacks `CAP_BPF`.
pub(crate) fn load(program: &[sock_filter]) -> io::Result<OwnedFd> {
    bpf::load(&translated(program)?, Kind::SocketFilter)
}

/// Translates a classic filter. Its jumps skip steps, and a step may become several instructions.
///
/// # Errors
/// If the filter has a step that is not translated here.
fn translated(program: &[sock_filter]) -> io::Result<Vec<Instruction>> {
    let steps = program.iter().map(|step| drafts(*step));
    let steps = steps.collect::<Option<Vec<_>>>().ok_or(io::ErrorKind::Unsupported)?;
    let starts: Vec<usize> = steps
        .iter()
        .scan(1, |at, drafts| Some(std::mem::replace(at, *at + drafts.len())))
        .collect();
    let mut all = vec![Instruction::new(MOVE_WIDE, FRAME, ARGUMENT, 0)];
    for (n, drafts) in steps.into_iter().enumerate() {
        for Draft { mut instruction, skips } in drafts {
            if let Some(skips) = skips {
                let target = starts.get(n + 1 + usize::from(skips));
                let target = target.ok_or(io::ErrorKind::InvalidInput)?;
                instruction.offset = (target - (all.len() + 1)) as i16;
            }
            all.push(instruction);
        }
    }
    Ok(all)
}

/// An instruction, and the number of classic steps that it skips if it is a jump.
struct Draft {
    instruction: Instruction,
    skips: Option<u8>,
}

/// Translates one step of a classic filter; `None` if [`program`](super::program) does not use such a step.
fn drafts(step: sock_filter) -> Option<Vec<Draft>> {
    let sock_filter { code, jt, jf, k } = step;
    let code = u32::from(code);
    let value = k as i32;
    let plain = |code: u32, to, from, value| Draft {
        instruction: Instruction::new(code, to, from, value),
        skips: None,
    };
    let jump = |code: u32, skips| Draft { skips: Some(skips), ..plain(code, A, 0, value) };
    let stored = |code: u32, to, from| {
        let offset = -4 * (k as i16 + 1);
        let instruction = Instruction::new(code, to, from, 0).at(offset);
        Draft { instruction, skips: None }
    };
    let (class, mode) = (code & 0x07, code & 0xe0);
    Some(match (class, mode) {
        (libc::BPF_LD, libc::BPF_ABS) if value == PROTOCOL => {
            vec![stored_field(LOAD_WORD, PROTOCOL_AT), plain(TO_HOST_ORDER, A, 0, 16)]
        }
        (libc::BPF_LD, libc::BPF_ABS) => vec![plain(code, 0, 0, value)],
        (libc::BPF_LD, libc::BPF_IND) => vec![plain(code, 0, X, value)],
        (libc::BPF_LD, libc::BPF_IMM) => vec![plain(MOVE_VALUE, A, 0, value)],
        (libc::BPF_ST, _) => vec![stored(STORE_WORD, STACK, A)],
        (libc::BPF_LDX, libc::BPF_MEM) => vec![stored(LOAD_WORD, X, STACK)],
        (libc::BPF_ALU, _) if code & libc::BPF_X == 0 => vec![plain(code, A, 0, value)],
        (libc::BPF_ALU, _) => vec![plain(code, A, X, 0)],
        (libc::BPF_MISC, _) if code == libc::BPF_MISC | libc::BPF_TAX => {
            vec![plain(MOVE_WIDE, X, A, 0)]
        }
        (libc::BPF_JMP, _) if jt == 0 && code == libc::BPF_JMP | libc::BPF_JEQ => {
            vec![jump(JUMP_UNLESS_EQUAL, jf)]
        }
        (libc::BPF_JMP, _) if jf == 0 => vec![jump(code, jt)],
        (libc::BPF_RET, libc::BPF_IMM) if code & libc::BPF_A == 0 => {
            vec![plain(MOVE_VALUE, A, 0, value), plain(EXIT, 0, 0, 0)]
        }
        (libc::BPF_RET, _) => vec![plain(EXIT, 0, 0, 0)],
        _ => return None,
    })
}

/// Returns the instruction that loads the field at this offset of the frame's `__sk_buff`.
fn stored_field(code: u32, offset: i16) -> Draft {
    let instruction = Instruction::new(code, A, FRAME, 0).at(offset);
    Draft { instruction, skips: None }
}

/// The registers: the accumulator, which is the result; the argument of the filter; the frame, in the
/// register that loads use; the index register; the stack, which contains stored values.
const A: u8 = 0;
const ARGUMENT: u8 = 1;
const FRAME: u8 = 6;
const X: u8 = 7;
const STACK: u8 = 10;

/// The codes of extended instructions that classic filters do not have.
const MOVE_WIDE: u32 = 0xbf;
const MOVE_VALUE: u32 = 0xb4;
const LOAD_WORD: u32 = 0x61;
const STORE_WORD: u32 = 0x63;
const TO_HOST_ORDER: u32 = 0xdc;
const JUMP_UNLESS_EQUAL: u32 = 0x55;
const EXIT: u32 = 0x95;

/// The offset of `protocol` in `struct __sk_buff` of linux/bpf.h.
const PROTOCOL_AT: i16 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steering::program;

    #[test]
    fn a_jump_skips_all_instructions_of_the_steps_that_it_skips() {
        let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
        let answer = |k| step(libc::BPF_RET, 0, 0, k);
        let jump = step(libc::BPF_JMP | libc::BPF_JEQ, 0, 2, 7);
        let all = translated(&[jump, answer(1), answer(2), answer(3)]).unwrap();
        // A move and an exit for each of two answers.
        assert_eq!((all[1].code, all[1].offset, all[1].value), (0x55, 4, 7));
        assert_eq!(all.len(), 8);
        assert!(translated(&[jump, answer(1)]).is_err(), "it leads beyond the end");
    }

    #[test]
    fn every_program_is_translated_and_each_jump_stays_within() {
        for queues in [1, 2, 16, 256] {
            let all = translated(&program(queues)).unwrap();
            for (at, one) in all.iter().enumerate().filter(|(_, one)| one.code & 0x07 == 0x05) {
                let target = at as i64 + 1 + i64::from(one.offset);
                assert!(one.code == 0x95 || (target as usize) < all.len());
            }
        }
    }
}
