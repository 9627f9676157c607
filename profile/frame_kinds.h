#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tributary {

// What sort of code a frame is. Values are on the wire and in the store: append only, with a row in kFrameKinds.
enum class FrameKind : uint8_t {
  kUnknown = 0,  // an address nothing is known of: no mapping covered it
  kNative = 1,   // (executable, ELF virtual address)
  kKernel = 2,   // (kernel, module or generated code, offset from its base: _stext, the module's .text, its begin)
  kInlined = 3,  // only shown: what was inlined into native code
  kRoot = 4,     // only shown: all stacks together
  kGo = 5,       // as kNative, compiled by Go. Nodes tell kNative; symbol tables know better
};

// What a frame is called that no symbol names.
enum class FrameNaming : uint8_t {
  kUnknown,      // "[unknown]"
  kFileAddress,  // "libc.so.6+0x1234"
  kKernel,       // the same; "[kernel]+0x1234" where no file is known
  kOwn,          // what the frame came with: Frame::name
};

struct FrameKindRow {
  std::string_view name;       // in answers and in the CLI
  std::string_view color;      // key of the page's and the CLI's palettes: "file" gives each file a colour of its own
  std::string_view otlp_type;  // profile.frame.type; "": only shown
  std::string_view mark;       // behind the name in folded stacks
  FrameNaming naming;
  bool has_address;  // one that its executable's symbol table knows
  // Its number in answers of releases that did not list the kinds yet; -1: a later kind.
  int8_t old_number = -1;
};

// All that differs between kinds. A kind is added here and nowhere else.
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
// Whether a node or an importer may tell of it: of a number from elsewhere, too.
constexpr bool IsFrameKind(uint64_t number) {
  return number < kFrameKindCount && !kFrameKinds[number].otlp_type.empty();
}

}  // namespace tributary
