//! The name that the command runs under. Its texts follow it: Debian's Device Tree Compiler is a `dtc` too.

use clap::Command;
use std::path::Path;
use std::sync::OnceLock;

/// The name that this process was started as; `otherwise` where the system does not say.
fn name(otherwise: &str) -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let first = std::env::args_os().next();
        let name = first.as_deref().and_then(|path| Path::new(path).file_name()?.to_str());
        name.filter(|name| !name.is_empty()).unwrap_or(otherwise).to_owned()
    })
}

/// A command of dtc, as it is called here: for reports that lead to it.
pub fn called(command: &str) -> String {
    format!("{} {command}", name("dtc"))
}

/// The command under the name of this process, in its help too.
pub fn renamed(command: Command) -> Command {
    let name = name(command.get_name());
    under(command, name)
}

/// The command under a name, in its help too.
fn under(command: Command, name: &'static str) -> Command {
    if command.get_name() == name {
        return command;
    }
    let names = Names::new(&command, name);
    names.of_help(command).name(name)
}

/// A message of this process, which names its commands as they are called here.
pub fn message(command: &Command, text: &str) -> String {
    Names::new(command, name(command.get_name())).of_text(text)
}

/// The names of a command, before and after.
pub struct Names {
    before: String,
    after: String,
    below: Vec<String>,
}

impl Names {
    /// The names of a command that is called `after`.
    pub fn new(command: &Command, after: &str) -> Names {
        let below = command.get_subcommands().map(|below| below.get_name().to_owned());
        Names { before: command.get_name().to_owned(), after: after.to_owned(), below: below.collect() }
    }

    /// The name that texts get.
    pub fn after(&self) -> &str {
        &self.after
    }

    /// A text in which the name of the command stands before those of its subcommands, and only there is replaced: elsewhere it is
    /// that of the project.
    pub fn of_text(&self, text: &str) -> String {
        let mut made = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(&self.before) {
            let (before, behind) = (&rest[..at], &rest[at + self.before.len()..]);
            let alone = !before.ends_with(|last: char| last.is_alphanumeric() || "_-./".contains(last));
            let word = behind.strip_prefix(' ').map(|words| {
                let end = words.find(|each: char| !each.is_ascii_alphanumeric()).unwrap_or(words.len());
                &words[..end]
            });
            let called = alone && word.is_some_and(|word| self.below.iter().any(|below| below == word));
            made.push_str(before);
            made.push_str(if called { &self.after } else { &self.before });
            rest = behind;
        }
        made + rest
    }

    /// A command whose help, and that of all below it, has the name.
    fn of_help(&self, mut command: Command) -> Command {
        let texts = [command.get_about(), command.get_long_about(), command.get_after_long_help()];
        let [about, long_about, after] = texts.map(|text| text.map(|text| self.of_text(&text.to_string())));
        if let Some(text) = about {
            command = command.about(text);
        }
        if let Some(text) = long_about {
            command = command.long_about(text);
        }
        if let Some(text) = after {
            command = command.after_long_help(text);
        }
        let command = command.mut_args(|argument| {
            let texts = [argument.get_help(), argument.get_long_help()];
            let [help, long_help] = texts.map(|text| text.map(|text| self.of_text(&text.to_string())));
            let argument = if let Some(text) = help { argument.help(text) } else { argument };
            if let Some(text) = long_help { argument.long_help(text) } else { argument }
        });
        command.mut_subcommands(|below| self.of_help(below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_are_renamed() {
        let command = Command::new("dtc").subcommand(Command::new("bench")).subcommand(Command::new("man"));
        let names = Names::new(&command, "dtc-types");
        let text = "dtc is fast: see dtc bench, `dtc man`, libdtc bench, dtc benches and a/dtc man";
        let expected = "dtc is fast: see dtc-types bench, `dtc-types man`, libdtc bench, dtc benches and a/dtc man";
        assert_eq!(names.of_text(text), expected);
    }

    #[test]
    fn help_is_renamed_on_all_levels() {
        let argument = clap::Arg::new("file").help("What dtc bench has written");
        let below = Command::new("bench").about("Ends what dtc bench began").arg(argument);
        let mut command = under(Command::new("dtc").subcommand(below), "types");
        assert_eq!(command.get_name(), "types");
        let below = command.find_subcommand_mut("bench").expect("the command").render_long_help().to_string();
        assert!(below.contains("what types bench began") && below.contains("What types bench has written"), "{below}");
    }
}
