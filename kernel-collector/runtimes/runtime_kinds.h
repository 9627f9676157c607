#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/include/runtimes.h"
#include "elf/elf_file.h"
#include "kernel-collector/processes/runtime_binary.h"

namespace tributary {

// A language runtime whose frames the BPF program reads. To add a runtime, add a row to the table in runtime_kinds.cc
// (docs/adding-a-runtime.md).
struct RuntimeKind {
  std::string_view name;  // in --runtimes
  trib_runtime_kind number;
  // Returns null if the file does not contain the runtime. Must be cheap for such files. Any thread may call it.
  absl::StatusOr<RuntimeBinaryPtr> (*read)(ElfFile& file, std::string_view path);
};
std::span<const RuntimeKind> RuntimeKinds();

// Bit `number` is set if the runtime with this trib_runtime_kind is on.
using RuntimeSet = uint32_t;
RuntimeSet AllRuntimes();

struct RuntimeChoice {
  RuntimeSet runtimes = 0;
  std::vector<std::string_view> unsupported;  // names of runtimes that are not supported yet
};
// Parses the value of --runtimes: "all", "none", or names separated by commas. Upper case, and spaces around a name,
// are allowed. InvalidArgument: a name is unknown; the message has the most similar name.
absl::StatusOr<RuntimeChoice> ParseRuntimes(std::string_view value);

// Returns a sentence about the names, for a warning; "" if there are none.
std::string UnsupportedRuntimes(const RuntimeChoice& choice);

}  // namespace tributary
