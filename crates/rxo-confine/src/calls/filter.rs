//! The seccomp filter, compiled from the list of system calls.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};

use super::list::{ABSENT, Rule};
use crate::ConfineError;

/// Installs `rules` as the seccomp filter of this thread. Returns the number of system calls that stay
/// allowed; `None` if the kernel does not support seccomp filters.
pub(super) fn restrict(rules: &[Rule]) -> Result<Option<usize>, ConfineError> {
    let allowed = compiled(rules, SeccompAction::Errno(EPERM), SeccompAction::Allow);
    // With ENOSYS, a C library retries with an older call. The kernel runs both filters, and the stricter
    // result counts.
    let absent: Vec<Rule> = ABSENT.iter().copied().map(Rule::Always).collect();
    let absent = compiled(&absent, SeccompAction::Allow, SeccompAction::Errno(ENOSYS));
    let (allowed, absent) = allowed.and_then(|it| Ok((it, absent?))).map_err(refused)?;
    // The order matters: the list forbids the call that installs another filter.
    match apply_filter(&absent).and_then(|()| apply_filter(&allowed)) {
        Ok(()) => Ok(Some(rules_by_call(rules).len())),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

fn compiled(
    rules: &[Rule],
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, Error> {
    let mut by_call = BTreeMap::<i64, Vec<SeccompRule>>::new();
    for (call, rules) in rules_by_call(rules) {
        let conditions = rules.into_iter().map(conditions).collect::<Result<Vec<_>, _>>()?;
        // A rule without conditions allows the call, whatever conditions other rules have.
        let is_always = conditions.iter().any(Vec::is_empty);
        let rules = conditions.into_iter().filter(|_| !is_always).map(SeccompRule::new);
        by_call.insert(call, rules.collect::<Result<_, _>>()?);
    }
    let arch = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(by_call, otherwise, listed, arch)?.try_into()?)
}

fn rules_by_call(rules: &[Rule]) -> BTreeMap<i64, Vec<Rule>> {
    let mut by_call = BTreeMap::<i64, Vec<Rule>>::new();
    for rule in rules {
        by_call.entry(rule.call()).or_default().push(*rule);
    }
    by_call
}

fn conditions(rule: Rule) -> Result<Vec<SeccompCondition>, BackendError> {
    let masked = |(argument, mask, value): (u8, u32, u32)| {
        let compare = SeccompCmpOp::MaskedEq(mask.into());
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value.into())
    };
    let is_not = |argument, value: u32| {
        let length = SeccompCmpArgLen::Dword;
        SeccompCondition::new(argument, length, SeccompCmpOp::Ne, value.into())
    };
    match rule {
        Rule::Always(_) => Ok(Vec::new()),
        Rule::If(_, one) => Ok(vec![masked(one)?]),
        Rule::IfBoth(_, one, other) => Ok(vec![masked(one)?, masked(other)?]),
        Rule::Unless(_, argument, values) => {
            values.into_iter().map(|value| is_not(argument, value)).collect()
        }
    }
}

/// Returns `true` if the kernel has no seccomp filters, or if the parent of this process forbids them.
fn is_missing(error: &Error) -> bool {
    let code = match error {
        Error::Seccomp(error) | Error::Prctl(error) => error.raw_os_error(),
        _ => None,
    };
    matches!(code, Some(libc::ENOSYS | libc::EINVAL | libc::EPERM))
}

fn refused(error: Error) -> ConfineError {
    ConfineError::refused("system calls (seccomp)")(io::Error::other(error))
}

const EPERM: u32 = libc::EPERM as u32;
const ENOSYS: u32 = libc::ENOSYS as u32;
