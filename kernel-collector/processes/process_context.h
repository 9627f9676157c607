#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "profile/attributes.h"

namespace tributary {

// The resource that an OpenTelemetry SDK in a process publishes for readers of the process's memory: a mapping named
// OTEL_CTX with a header of 32 bytes, and a protobuf message at another address. Source: OTEP 4719 (Process Context),
// opentelemetry/proto/processcontext/v1development. All of its content is hostile.

constexpr size_t kProcessContextBytesMax = 64u << 10;  // of the message
constexpr size_t kProcessContextAttributesMax = 512;

struct ProcessContext {
  Attributes attributes;  // of the resource, and additional ones; numbers and booleans as text
  size_t dropped = 0;     // lists, maps, bytes, and attributes above a limit
};

// Decodes a message opentelemetry.proto.processcontext.v1development.ProcessContext. InvalidArgument if `message` is
// not such a message.
absl::StatusOr<ProcessContext> DecodeProcessContext(std::string_view message);

// Returns the address of the mapping in a process's memory map (/proc/PID/maps, as text), or nullopt if there is none.
std::optional<uint64_t> FindProcessContext(std::string_view maps);

// Finds a context and reads it. NotFound: the process publishes none. InvalidArgument: the published data is malformed.
// Unavailable: the process was changing it. Other errors: the process is gone. A call takes at least as long as the
// listing of the process's mappings (some 200 µs). The process can delay the call without limit, because its memory may
// be a file that does not answer.
absl::StatusOr<ProcessContext> ReadProcessContext(const std::string& proc_root, Pid pid);

}  // namespace tributary
