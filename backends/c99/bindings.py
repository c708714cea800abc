"""Files beside an emitted source: a build for CMake, and bindings for Python (ctypes) and for Rust."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files

from oco.backends.c99.flags import numeric, portable
from oco.backends.c99.interface import Named
from oco.backends.c99.module import CSource
from oco.backends.c99.return_codes import error_size
from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import DType

_CODES = {DType.FLOAT: "d", DType.INT: "q", DType.BOOL: "b"}
_RUST = {DType.FLOAT: "f64", DType.INT: "i64", DType.BOOL: "bool"}
_RUST_WORDS = frozenset(
    [
        "abstract",
        "as",
        "async",
        "await",
        "become",
        "box",
        "const",
        "crate",
        "do",
        "dyn",
        "enum",
        "extern",
        "final",
        "fn",
        "impl",
        "in",
        "let",
        "loop",
        "macro",
        "match",
        "mod",
        "move",
        "mut",
        "override",
        "priv",
        "pub",
        "ref",
        "self",
        "static",
        "struct",
        "super",
        "trait",
        "try",
        "type",
        "typeof",
        "unsafe",
        "unsized",
        "use",
        "virtual",
        "where",
        "yield",
        "memory",
        "round",
        "code",
        "out",
        "loss",
        "g",
        "h",
    ]
)


def beside(source: CSource) -> dict[str, str]:
    """Texts of the files by name."""
    name, fused = source.name, source.interface.arithmetic.fused
    return {
        "CMakeLists.txt": _CMAKE.replace("@NAME@", name).replace("@NUMERIC@", " ".join(numeric(fused))),
        f"{name}.py": _of_numbers(_python(source), source, "ctypes.c_double", "ctypes.c_float"),
        f"{name}.rs": _of_numbers("\n".join(_rust(source)) + "\n", source, "f64", "f32"),
        "Cargo.toml": _CARGO.replace("NAME", name),
        "build.rs": _BUILD.replace("NAME", name).replace("FLAGS", ", ".join(f'"{flag}"' for flag in portable(fused))),
    }


def _of_numbers(text: str, source: CSource, double: str, single: str) -> str:
    """Text of a binding with the numbers of the source."""
    return re.sub(rf"\b{re.escape(double)}\b", single, text) if source.interface.arithmetic.single else text


_CMAKE = """\
# cmake -B build -DBUILD_SHARED_LIBS=ON && cmake --build build
cmake_minimum_required(VERSION 3.10)
project(oco_@NAME@ C)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(oco_@NAME@ @NAME@.c)
set_target_properties(oco_@NAME@ PROPERTIES OUTPUT_NAME @NAME@ C_STANDARD 99 C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON
                                          WINDOWS_EXPORT_ALL_SYMBOLS ON)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(oco_@NAME@ PRIVATE @NUMERIC@)
endif()
target_include_directories(oco_@NAME@ PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
find_library(MATH_LIBRARY m)
if(MATH_LIBRARY)
  target_link_libraries(oco_@NAME@ PUBLIC ${MATH_LIBRARY})
endif()

add_executable(oco_@NAME@_example @NAME@_example.c)
set_target_properties(oco_@NAME@_example PROPERTIES OUTPUT_NAME @NAME@_example C_STANDARD 99)
target_link_libraries(oco_@NAME@_example oco_@NAME@)
"""

_CARGO = """\
[package]
name = "NAME"
version = "0.1.0"
edition = "2021"
build = "build.rs"

[lib]
path = "NAME.rs"
"""

_BUILD = """\
//! Compiles NAME.c with $CC (or cc) and $AR (or ar) into a static library.
use std::{env, process::Command};

fn run(variable: &str, otherwise: &str, arguments: &[&str]) {
    let tool = env::var(variable).unwrap_or_else(|_| otherwise.to_string());
    let status = Command::new(&tool).args(arguments).status().expect("a C compiler and ar are needed");
    assert!(status.success(), "{} failed", tool);
}

fn main() {
    let out = env::var("OUT_DIR").unwrap();
    let (object, library) = (format!("{}/NAME.o", out), format!("{}/libNAME.a", out));
    run("CC", "cc", &[FLAGS, "-fPIC", "-c", "NAME.c", "-o", &object]);
    run("AR", "ar", &["crs", &library, &object]);
    println!("cargo:rustc-link-search=native={}", out);
    println!("cargo:rustc-link-lib=static=NAME");
    if env::var("CARGO_CFG_UNIX").is_ok() {
        println!("cargo:rustc-link-lib=m");
    }
    println!("cargo:rerun-if-changed=NAME.c");
}
"""


# Python.


def _python(source: CSource) -> str:
    """Module with the learner, its tables filled in."""
    text = files("oco.backends.c99").joinpath("ctypes_binding.py").read_text(encoding="utf-8")
    before, _, rest = text.partition("# begin tables\n")
    after = rest.partition("# end tables\n")[2]
    return before + "\n".join(_tables(source)) + "\n" + after


def _tables(source: CSource) -> Iterator[str]:
    of = source.interface
    yield f'NAME = "{source.name}"'
    yield f"TURNS = {source.ring.turns if source.ring else 1}"
    yield f"STATE_SIZE = {source.state_size}"
    yield f"ERROR_SIZE = {error_size(of)}"
    yield f"STARTS = {tuple(d.field.name for d in of.decisions)!r}"
    tables = {"CONTEXT": of.known, "INPUTS": of.inputs, "DRAWS": of.draws, "DECISIONS": of.decisions}
    for table, items in tables.items():
        rows = {n.field.name: (_CODES[n.type.dtype], n.type.shape) for n in items}
        yield f"{table} = {rows!r}"
    yield f"VALUES = {of.outputs!r}"
    yield f"MEASURES = {of.program.measure is not None}"
    yield f"PREPARES = {of.program.prepare is not None}"
    yield f"WATCHES = {'alarm' in of.heads()}"
    yield f"CERTIFICATE = { {n.name: n.type.shape for n in of.proof}!r}"


# Rust.


def _rust(source: CSource) -> Iterator[str]:
    """Module with the learner: memory of the struct, and a method for each function."""
    of, name = source.interface, source.name
    inputs, draws, known = _renamed(of.inputs), _renamed(of.draws), _renamed(of.known)
    decisions = _renamed(of.decisions)
    yield f"//! Learner of {name}: `cargo build` compiles {name}.c. Arrays are slices, row by row."
    yield "#![allow(non_snake_case)]"
    yield ""
    yield "use std::ffi::CStr;"
    yield "use std::os::raw::{c_char, c_int};"
    yield ""
    yield 'extern "C" {'
    yield f"    fn {name}_version() -> *const c_char;"
    yield f"    fn {name}_sizeof() -> i64;"
    yield f"    fn {name}_error(code: i64, text: *mut c_char) -> *const c_char;"
    starts = ", ".join(f"{r}: *const f64" for r, _ in decisions)
    yield f"    fn {name}_init(memory: *mut u64, {starts});"
    if of.program.prepare is not None:
        yield f"    fn {name}_prepare({_foreign(known)}) -> i64;"
    outs = ", ".join(f"{r}: *mut f64" for r, _ in decisions)
    yield f"    fn {name}_decide({_foreign(draws)}, {outs}) -> i64;"
    yield f"    fn {name}_observe({_foreign([*inputs, *draws])}) -> i64;"
    if source.ring is not None:
        given = _foreign([*inputs, *draws]).replace("memory: *mut u64", "memory: *mut u64, round: i64", 1)
        yield f"    fn {name}_observe_round({given}) -> i64;"
        yield f"    fn {name}_skip(memory: *mut u64, round: i64) -> i64;"
        yield f"    fn {name}_pending(memory: *const u64, rounds: *mut i64) -> i64;"
    if of.proof:
        outs = ", ".join(f"{r}: *mut f64" for r, _ in _renamed(of.proof))
        yield f"    fn {name}_certificate(memory: *mut u64, {outs});"
    if "alarm" in of.heads():
        yield f"    fn {name}_alarm(memory: *const u64, statement: *mut *const c_char) -> i64;"
    yield f"    fn {name}_save(memory: *const u64, bytes: *mut u8);"
    yield f"    fn {name}_load(memory: *mut u64, bytes: *const u8, size: i64) -> c_int;"
    yield "}"
    yield ""
    yield (
        _RUST_HEAD.replace("NAME", name)
        .replace("ERROR_SIZE", str(error_size(of)))
        .replace("NULLS", ", ".join("std::ptr::null()" for _ in decisions))
        .replace("STATE_SIZE", str(source.state_size))
    )
    if of.program.prepare is not None:
        yield "    /// Takes what is known of this round before `decide`."
        yield from _method(name, "prepare", known, [])
    yield "    /// Decision of this round, written into the arguments."
    yield from _method(name, "decide", draws, decisions)
    yield "    /// Takes what the round revealed and goes on; wrong data change nothing."
    yield from _method(name, "observe", [*inputs, *draws], [])
    if source.ring is not None:
        yield "    /// Takes what an open round revealed, in any order; wrong data change nothing."
        yield from _method(name, "observe_round", [*inputs, *draws], [], "round")
        yield from _RUST_LATER.replace("NAME", name).replace("TURNS", str(source.ring.turns)).split("\n")
    if of.proof:
        yield "    /// Bounds of what fixed decisions lost so far, and what proves them: the regret is at most loss - (least - rounding)."
        yield from _method(name, "certificate", [], _renamed(of.proof), refuses=False)
    if "alarm" in of.heads():
        yield from _RUST_ALARM.replace("NAME", name).split("\n")
    yield "}"


_RUST_HEAD = """\
/// What a function refused, in words; the learner is as before.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    pub code: i64,
    pub message: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for Error {}

fn checked(code: i64) -> Result<(), Error> {
    if code == 0 {
        return Ok(());
    }
    let mut text = [0 as c_char; ERROR_SIZE];
    let message = unsafe { CStr::from_ptr(NAME_error(code, text.as_mut_ptr())) }.to_string_lossy().into_owned();
    Err(Error { code, message })
}

/// Model, algorithm, and digits that change with either.
pub fn version() -> String {
    unsafe { CStr::from_ptr(NAME_version()) }.to_string_lossy().into_owned()
}

/// A learner: decide, then observe, round by round.
#[derive(Clone)]
pub struct Learner {
    memory: Vec<u64>,
}

impl Default for Learner {
    fn default() -> Self {
        Self::new()
    }
}

impl Learner {
    /// Learner before its first round, at the model's first decision.
    pub fn new() -> Self {
        let size = unsafe { NAME_sizeof() } as usize;
        let mut memory = vec![0u64; (size + 7) / 8];
        unsafe { NAME_init(memory.as_mut_ptr(), NULLS) };
        Learner { memory }
    }

    /// State as bytes, the same on every machine.
    pub fn save(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; STATE_SIZE];
        unsafe { NAME_save(self.memory.as_ptr(), bytes.as_mut_ptr()) };
        bytes
    }

    /// Goes to a state that `save` gave; the code says why it is none of this learner.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), i32> {
        let code = unsafe { NAME_load(self.memory.as_mut_ptr(), bytes.as_ptr(), bytes.len() as i64) };
        if code == 0 { Ok(()) } else { Err(code) }
    }
"""

_RUST_LATER = """\
    /// Goes on without the data of an open round.
    pub fn skip(&mut self, round: i64) -> Result<(), Error> {
        checked(unsafe { NAME_skip(self.memory.as_mut_ptr(), round) })
    }

    /// Open rounds, the oldest first.
    pub fn pending(&self) -> Vec<i64> {
        let mut rounds = vec![0i64; TURNS];
        let count = unsafe { NAME_pending(self.memory.as_ptr(), rounds.as_mut_ptr()) };
        rounds.truncate(count as usize);
        rounds
    }"""

_RUST_ALARM = """\
    /// Round in which what the model states of its streams was refuted, and the statement; None while nothing is.
    pub fn alarm(&self) -> Option<(i64, String)> {
        let mut statement: *const c_char = std::ptr::null();
        let since = unsafe { NAME_alarm(self.memory.as_ptr(), &mut statement) };
        if since == 0 {
            return None;
        }
        Some((since, unsafe { CStr::from_ptr(statement) }.to_string_lossy().into_owned()))
    }"""

Renamed = list[tuple[str, Named]]
"""Values with their names in Rust."""


def _renamed(items: Sequence[Named]) -> Renamed:
    results: Renamed = []
    used = set(_RUST_WORDS)
    for n in items:
        results.append((identifier(n.name, frozenset(used)), n))
        used.add(results[-1][0])
    return results


def _foreign(items: Renamed) -> str:
    """Parameters of a foreign function: the memory, then arrays by address and numbers by value."""
    forms = [f"{r}: *const {_RUST[n.type.dtype]}" if n.type.shape else f"{r}: {_RUST[n.type.dtype]}" for r, n in items]
    return ", ".join(["memory: *mut u64", *forms])


def _method(
    name: str, function: str, inputs: Renamed, outputs: Renamed, *numbers: str, refuses: bool = True
) -> Iterator[str]:
    """Method that checks lengths and calls a foreign function; integers of these names come first. `refuses`: it returns a code."""
    forms = [f"{r}: &[{_RUST[n.type.dtype]}]" if n.type.shape else f"{r}: {_RUST[n.type.dtype]}" for r, n in inputs]
    forms += [f"{r}: &mut [f64]" if n.type.shape else f"{r}: &mut f64" for r, n in outputs]
    forms = ["&mut self", *(f"{number}: i64" for number in numbers), *forms]
    yield f"    pub fn {function}({', '.join(forms)}){' -> Result<(), Error>' if refuses else ''} {{"
    for r, n in (*inputs, *outputs):
        if n.type.shape:
            yield f'        assert_eq!({r}.len(), {n.size}, "entries of {r}");'
    given = [f"{r}.as_ptr()" if n.type.shape else r for r, n in inputs]
    given += [f"{r}.as_mut_ptr()" if n.type.shape else r for r, n in outputs]
    call = f"unsafe {{ {name}_{function}({', '.join(['self.memory.as_mut_ptr()', *numbers, *given])}) }}"
    yield f"        checked({call})" if refuses else f"        {call}"
    yield "    }"
    yield ""
