//! The order in which the packages are published: a registry refuses a package whose dependencies it lacks.

use anyhow::{Result, bail};

use crate::sh::Program;
use crate::workspace::{Kind, Package, Workspace};

/// `cargo xtask package --publish-order`: prints the names of the published packages in their order, a line each, then
/// runs `cargo publish --dry-run` for all of them, which needs the registry's index. Nothing is published.
///
/// # Errors
/// Packages depend on each other in a circle, or cargo refuses one.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let libraries: Vec<&Package> = workspace.libraries().collect();
    let order = sorted(&libraries)?;
    println!("{}", order.join("\n"));
    let chosen: String = order.iter().map(|name| format!(" -p {name}")).collect();
    // `cargo xtask package` builds the packages; this command is about the registry's rules alone.
    let publish = format!("publish --dry-run --no-verify --allow-dirty --quiet{chosen}");
    Program::cargo(&workspace.root, &publish).run()
}

/// Returns the names of `libraries`, each behind all members that it needs to be built.
fn sorted<'a>(libraries: &[&'a Package]) -> Result<Vec<&'a str>> {
    let mut order: Vec<&str> = Vec::new();
    while order.len() < libraries.len() {
        let is_next = |package: &&&Package| {
            let mut needs = package
                .dependencies
                .iter()
                .filter(|needs| needs.is_member && needs.kind == Kind::Normal);
            !order.contains(&package.name.as_str())
                && needs.all(|needs| order.contains(&needs.name.as_str()))
        };
        let Some(next) = libraries.iter().find(is_next) else {
            bail!("no package can be published after {}", order.join(", "));
        };
        order.push(&next.name);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, needs: &[&str]) -> Package {
        let dependency = |name: &&str| Dependency {
            name: (*name).to_owned(),
            kind: Kind::Normal,
            is_member: true,
        };
        let dependencies = needs.iter().map(dependency).collect();
        Package { name: name.to_owned(), dependencies, ..Package::default() }
    }

    #[test]
    fn a_package_comes_behind_what_it_needs() {
        let all = [package("a", &["c", "b"]), package("b", &[]), package("c", &["b"])];
        assert_eq!(sorted(&all.iter().collect::<Vec<_>>()).unwrap(), ["b", "c", "a"]);
    }

    #[test]
    fn a_circle_or_a_package_that_is_not_published_is_an_error() {
        for all in [
            [package("a", &["b"]), package("b", &["a"])],
            [package("a", &["z"]), package("b", &[])],
        ] {
            assert!(sorted(&all.iter().collect::<Vec<_>>()).is_err());
        }
    }
}
