#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tributary {

// The kind of a frame's code. The values are part of the wire format and of the store: only append new values, and add
// a row to kFrameKinds.
enum class FrameKind : uint8_t {
  kUnknown = 0,      // an address that no mapping covered
  kNative = 1,       // machine code of a file; the address is an ELF virtual address
  kKernel = 2,       // kernel: offset from _stext; module: offset from .text; generated code: offset from its start
  kInlined = 3,      // only in results: a function inlined into native code
  kRoot = 4,         // only in results: all stacks together
  kGo = 5,           // like kNative, but compiled by Go. Nodes send kNative, and the reducer's symbol table corrects it
  kPython = 6,       // a Python function; its name and line come from the node, and its executable is the source file
  kInterpreter = 7,  // like kNative: code of an interpreter that runs the language frames further inside
  kJit = 8,          // code that a process generated; the name comes from the node (perf map, jitdump)
};

// How a frame without a symbol is named.
enum class FrameNaming : uint8_t {
  kUnknown,      // "[unknown]"
  kFileAddress,  // "libc.so.6+0x1234"
  kKernel,       // like kFileAddress; "[kernel]+0x1234" if no file is known
  kOwn,  // FrameKindRow::unnamed: frames of the kind come with their names, and their executable is the source file
};

struct FrameKindRow {
  std::string_view name;       // in API answers and in the CLI
  std::string_view color;      // key of the color in the web page and the CLI; "file": a color for each file
  std::string_view otlp_type;  // the attribute profile.frame.type; "": the kind occurs only in results
  std::string_view mark;       // appended to the name in folded stacks
  FrameNaming naming;
  bool has_address;  // Frame::address can be looked up in the symbol table of Frame::executable
  // The kind's number in the API answers of old releases. Those answers did not contain the list of kinds. -1: old
  // releases do not know the kind.
  int8_t old_number = -1;
  std::string_view language;    // in filters and metrics; "": the kind occurs only in results
  std::string_view unnamed;     // with kOwn: the name of a frame that was sent without one
  bool is_interpreted = false;  // frames of the kind kInterpreter run it, and are folded away around it
};

// All differences between kinds. To add a kind, change only this file. If it has a new color, also add the color to
// ui/src/flame/colors.ts and cli/picture.cc.
constexpr auto kFrameKinds = std::to_array<FrameKindRow>({
    {"unknown", "unknown", "unknown", "", FrameNaming::kUnknown, false, 4, "unknown"},
    {"native", "file", "native", "", FrameNaming::kFileAddress, true, 1, "native"},
    {"kernel", "kernel", "kernel", "_[k]", FrameNaming::kKernel, true, 2, "kernel"},
    {"inlined", "inlined", "", "_[i]", FrameNaming::kFileAddress, true, 3},
    {"root", "root", "", "", FrameNaming::kOwn, false, 0},
    {"go", "file", "go", "", FrameNaming::kFileAddress, true, -1, "go"},
    {"python", "python", "cpython", "", FrameNaming::kOwn, false, -1, "python", "[python]", true},
    {"interpreter", "file", "native", "", FrameNaming::kFileAddress, true, -1, "native"},
    {"jit", "jit", "jit", "", FrameNaming::kOwn, false, -1, "jit", "[jit]"},
});
constexpr uint8_t kFrameKindCount = kFrameKinds.size();

constexpr const FrameKindRow& RowOf(FrameKind kind) {
  const auto number = static_cast<size_t>(kind);
  return kFrameKinds[number < kFrameKindCount ? number : 0];
}
// Returns true if a node or an importer may send this kind. `number` is from outside and may have any value.
constexpr bool IsFrameKind(uint64_t number) {
  return number < kFrameKindCount && !kFrameKinds[number].otlp_type.empty();
}

}  // namespace tributary
