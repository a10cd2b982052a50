//! CLIENT: what a connection says of itself.

use super::call::{Call, Outcome, SYNTAX};

const NOT_PLAIN: &str = "cannot contain spaces, newlines or special characters.";

fn is_plain(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

/// Refuses what is no name of a connection.
pub(super) fn expect_name(name: &[u8]) -> Outcome {
    const NAME_BYTES_MAX: usize = 1_024;
    if name.len() > NAME_BYTES_MAX || !is_plain(name) {
        return Err(format!("ERR Client names {NOT_PLAIN}").into());
    }
    Ok(())
}

pub(super) fn id(call: &mut Call<'_>) -> Outcome {
    call.reply.integer(i64::try_from(call.state.id).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn name(call: &mut Call<'_>) -> Outcome {
    let name = Some(call.state.name.as_slice()).filter(|name| !name.is_empty());
    call.reply.optional(name);
    Ok(())
}

pub(super) fn set_name(call: &mut Call<'_>) -> Outcome {
    let name = call.argument(2);
    expect_name(name)?;
    call.state.name = name.to_vec();
    call.reply.ok();
    Ok(())
}

/// CLIENT SETINFO, as libraries send it after connecting.
pub(super) fn set_info(call: &mut Call<'_>) -> Outcome {
    let field = match call.word(2).as_str() {
        "LIB-NAME" => "lib-name",
        "LIB-VER" => "lib-ver",
        _ => {
            let option = String::from_utf8_lossy(call.argument(2));
            return Err(format!("ERR Unrecognized option '{option}'").into());
        }
    };
    if !is_plain(call.argument(3)) {
        return Err(format!("ERR {field} {NOT_PLAIN}").into());
    }
    call.reply.ok();
    Ok(())
}

/// What is on or off, and makes no difference here.
pub(super) fn switch(call: &mut Call<'_>) -> Outcome {
    if !matches!(call.word(2).as_str(), "ON" | "OFF") {
        return Err(SYNTAX.into());
    }
    call.reply.ok();
    Ok(())
}
