//! Names of kernel code, from a guest's `/proc/kallsyms`.

/// The functions of a guest's kernel and of its modules.
#[derive(Clone, Debug)]
pub struct Symbols {
    /// Addresses with names, sorted by address.
    functions: Vec<(u64, String)>,
}

impl Symbols {
    /// Parses lines of an address, a type and a name, in any order. Other lines are ignored.
    pub(super) fn parse(text: &str) -> Self {
        let function = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
            let name = words.next()?.to_owned();
            (is_code && address > 0).then_some((address, name))
        };
        let mut functions: Vec<_> = text.lines().filter_map(function).collect();
        functions.sort();
        Self { functions }
    }

    /// Returns the function that contains `address`: the last one that begins at or before it. `None` if
    /// there is none.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|&(start, _)| start <= address);
        after.checked_sub(1).map(|index| self.functions[index].1.as_str())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let symbols = Symbols::parse(
            "ffffffff81000100 T second\nffffffff81000000 t first\nffffffff81000050 D data\n\
             ffffffffc0000000 t virtnet_poll\t[virtio_net]\n\nrxo-done 0",
        );
        assert_eq!(symbols.name(0xffff_ffff_80ff_ffff), None);
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), Some("first"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0060), Some("first"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0100), Some("second"));
        assert_eq!(symbols.name(0xffff_ffff_c000_0abc), Some("virtnet_poll"));
    }

    #[test]
    fn addresses_that_the_kernel_hides_are_no_functions() {
        assert!(Symbols::parse("0000000000000000 T hidden").is_empty());
    }
}
