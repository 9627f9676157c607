#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernel-collector/direct/request_maker.h"
#include "otlp/gzip.h"

namespace tributary {

// The format of a file of a RequestSpool (docs/spool.md). A file contains one request, as it is sent: with its identity
// and its names. So a request that is sent again after a kill has the same records. A header comes first. It has a
// checksum of its own, so that the numbers of samples and events are known even if the rest is damaged. Then comes the
// request as protobuf in gzip: OTLP profiles for samples with any encoder, OTLP logs for process events.

using RequestId = uint64_t;  // a new id is larger than the ids of all existing files, even after a restart

constexpr size_t kRequestPrefixBytes = 33;
constexpr size_t kRequestHeaderBytesMax = 4096;
constexpr size_t kRequestMarkOffset = 32;           // of a byte that no checksum covers
constexpr size_t kRequestBytesMax = 64u << 20;      // of a request, not compressed
constexpr size_t kRequestFileBytesMax = 16u << 20;  // of a file

std::string RequestName(RequestId id);                             // "request-00000000000000a1.trq"
std::optional<RequestId> ParseRequestName(std::string_view name);  // nullopt if `name` is not the name of a request

// What the header of a file says.
struct RequestHeader {
  bool has_events = false;  // else samples
  bool in_doubt = false;    // the receiver may have accepted the request
  otlp::RequestIdentity identity;
  SampleCounts counts;
  uint64_t dropped_strings = 0;
  uint64_t request_bytes = 0;  // of the request, not compressed
  bool is_whole = false;       // the file has the right size. The request behind the header may still be damaged

  size_t body_offset = 0;
};

// Returns the content of the file. ResourceExhausted: it would be too large. To make a compressor takes milliseconds.
absl::StatusOr<std::string> EncodeRequest(RequestId id, const DirectRequest& request, otlp::GzipCompressor& gzip);
// The byte at kRequestMarkOffset.
inline std::string_view RequestMark(bool in_doubt) { return {in_doubt ? "?" : "\0", 1}; }

// `start` is the start of a file of `file_bytes`: all of it, or the prefix and kRequestHeaderBytesMax. InvalidArgument:
// the header is damaged. FailedPrecondition: a newer release wrote the file.
absl::StatusOr<RequestHeader> DecodeRequestHeader(RequestId id, std::string_view start, uint64_t file_bytes);
// Also decodes the request. InvalidArgument: the file is damaged.
absl::StatusOr<DirectRequest> DecodeRequest(RequestId id, std::string_view file);

}  // namespace tributary
