#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tributary {

// The kind of code that a frame is in. Values are on the wire and in the store: append only, with a row in kFrameKinds.
enum class FrameKind : uint8_t {
  kUnknown = 0,  // an address that no mapping covered
  kNative = 1,   // (executable, ELF virtual address)
  kKernel = 2,   // (kernel, module or generated code, offset from its base: _stext, the module's .text, its begin)
  kInlined = 3,  // only in results: a function inlined into native code
  kRoot = 4,     // only in results: all stacks together
  kGo = 5,       // like kNative, but compiled by Go. Nodes send kNative; symbol tables correct it
};

// How a frame without a symbol is named.
enum class FrameNaming : uint8_t {
  kUnknown,      // "[unknown]"
  kFileAddress,  // "libc.so.6+0x1234"
  kKernel,       // the same; "[kernel]+0x1234" where no file is known
  kOwn,          // Frame::name
};

struct FrameKindRow {
  std::string_view name;       // in answers and in the CLI
  std::string_view color;      // key in the palettes of the page and the CLI; "file" gives each file its own color
  std::string_view otlp_type;  // profile.frame.type; "": only in results
  std::string_view mark;       // appended to the name in folded stacks
  FrameNaming naming;
  bool has_address;  // Frame::address can be looked up in the symbol table of Frame::executable
  // The kind's number in the API answers of old releases, which did not contain the list of kinds. -1: those releases
  // do not know the kind.
  int8_t old_number = -1;
};

// All differences between kinds. A new kind is added here and nowhere else.
constexpr auto kFrameKinds = std::to_array<FrameKindRow>({
    {"unknown", "unknown", "unknown", "", FrameNaming::kUnknown, false, 4},
    {"native", "file", "native", "", FrameNaming::kFileAddress, true, 1},
    {"kernel", "kernel", "kernel", "_[k]", FrameNaming::kKernel, true, 2},
    {"inlined", "inlined", "", "_[i]", FrameNaming::kFileAddress, true, 3},
    {"root", "root", "", "", FrameNaming::kOwn, false, 0},
    {"go", "file", "go", "", FrameNaming::kFileAddress, true},
});
constexpr uint8_t kFrameKindCount = kFrameKinds.size();

constexpr const FrameKindRow& RowOf(FrameKind kind) {
  const auto number = static_cast<size_t>(kind);
  return kFrameKinds[number < kFrameKindCount ? number : 0];
}
// Returns true if a node or an importer may send this kind. `number` may be any number, because it comes from outside.
constexpr bool IsFrameKind(uint64_t number) {
  return number < kFrameKindCount && !kFrameKinds[number].otlp_type.empty();
}

}  // namespace tributary
