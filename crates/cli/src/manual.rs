//! `esker completions SHELL` and `esker man`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Console;
use crate::arguments::Arguments;
use crate::failure::Result;

pub(crate) fn completions(shell: Shell, console: &mut Console<'_>) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "esker", &mut text);
    console.out.write_all(&text)?;
    Ok(())
}

/// One page: the program, then each command.
pub(crate) fn page(console: &mut Console<'_>) -> Result<()> {
    let mut program = Arguments::command();
    program.build();
    clap_mangen::Man::new(program.clone()).render(&mut console.out)?;
    for command in program.get_subcommands() {
        let name = command.get_name().to_uppercase();
        writeln!(console.out, ".SH \"ESKER {name}\"")?;
        let page = clap_mangen::Man::new(command.clone());
        page.render_description_section(&mut console.out)?;
        page.render_synopsis_section(&mut console.out)?;
        page.render_options_section(&mut console.out)?;
    }
    Ok(())
}
