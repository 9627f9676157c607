#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "profile/attributes.h"

namespace tributary {

// What an OpenTelemetry SDK in a process publishes of its resource for whoever can read its memory: a mapping named
// OTEL_CTX with a header of 32 bytes, and a protobuf message somewhere. Source: OTEP 4719 (Process Context),
// opentelemetry/proto/processcontext/v1development. Everything in it is hostile.

constexpr size_t kProcessContextBytesMax = 64u << 10;  // of the message
constexpr size_t kProcessContextAttributesMax = 512;

struct ProcessContext {
  Attributes attributes;  // of the resource, and those beside it; numbers and booleans as text
  size_t dropped = 0;     // lists, maps and bytes, and what is over a limit
};

// A message opentelemetry.proto.processcontext.v1development.ProcessContext. InvalidArgument: it is none.
absl::StatusOr<ProcessContext> DecodeProcessContext(std::string_view message);

// Where a process's memory map (/proc/PID/maps, as text) shows the mapping; nullopt without one.
std::optional<uint64_t> FindProcessContext(std::string_view maps);

// Looks for a context and reads it. NotFound: the process publishes none. InvalidArgument: what it publishes makes no
// sense. Unavailable: it was being changed. Others: the process is gone. Takes as long as listing the process's
// mappings does (some 200 µs), and as long as the process likes: its memory may be a file that does not answer.
absl::StatusOr<ProcessContext> ReadProcessContext(const std::string& proc_root, Pid pid);

}  // namespace tributary
