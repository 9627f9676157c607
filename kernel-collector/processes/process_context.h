#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "profile/attributes.h"

namespace tributary {

// Reads the resource attributes that an OpenTelemetry SDK publishes in the memory of its process: a mapping named
// OTEL_CTX with a header of 32 bytes, and a protobuf message at another address. Both are untrusted: the process can
// write any bytes into them. Source: OTEP 4719 (Process Context),
// opentelemetry/proto/processcontext/v1development.

constexpr size_t kProcessContextBytesMax = 64u << 10;  // of the message
constexpr size_t kProcessContextAttributesMax = 512;

struct ProcessContext {
  Attributes attributes;  // of the resource, and additional ones; numbers and booleans as text
  size_t dropped = 0;     // lists, maps, bytes, and attributes above a limit
};

// Decodes a message opentelemetry.proto.processcontext.v1development.ProcessContext. InvalidArgument if `message` is
// not such a message.
absl::StatusOr<ProcessContext> DecodeProcessContext(std::string_view message);

// Returns the address of the OTEL_CTX mapping in `maps`, the text of /proc/PID/maps. Returns nullopt if there is no
// such mapping.
std::optional<uint64_t> FindProcessContext(std::string_view maps);

// Finds a process's context and reads it. NotFound: the process publishes no context, or has ended. InvalidArgument:
// the published data is malformed. Unavailable: the process was changing the data during the call. Other errors: the
// process's files in /proc cannot be read. A call reads the list of the process's mappings, which takes some 200 µs.
// The process can delay the call without limit, because its memory may be mapped from a file system that does not
// answer.
absl::StatusOr<ProcessContext> ReadProcessContext(const std::string& proc_root, Pid pid);

}  // namespace tributary
