#pragma once

#include <cstdint>
#include <memory>

#include "otlp/profiles_builder.h"
#include "otlp/request_identity.h"

namespace opentelemetry::proto::collector::logs::v1 {
class ExportLogsServiceRequest;
}

namespace tributary::otlp {

using LogsRequest = ::opentelemetry::proto::collector::logs::v1::ExportLogsServiceRequest;
struct DeleteLogsRequest {  // as DeleteRequest
  void operator()(LogsRequest* request) const;
};
using LogsRequestPtr = std::unique_ptr<LogsRequest, DeleteLogsRequest>;

// What one log record stands for.
enum class LogRecords {
  kStacks,   // all samples of one stack, thread and type in the request
  kSamples,  // one sample. Samples of one thread and stack with the same time stay together, as do those without a time
};

struct LogsText {
  LogsRequestPtr request;
  uint64_t dropped_strings = 0;  // texts and frames that were left out, because a record was full
};

// The frames of a record, inlined functions included. Of a deeper stack, the innermost frames are kept.
inline constexpr int kRecordFramesMax = 1024;
// The texts of one record's stack take at most this many bytes. Further frames have only their type and their address.
inline constexpr size_t kRecordStackBytesMax = 192u << 10;
// Upper bounds of the bytes of a frame in a log record, without its texts, and of a record without its stack and its
// attributes.
inline constexpr size_t kLogFrameBytes = 160;
inline constexpr size_t kLogRecordBytes = 1024;

// Turns a request of profiles into a request of logs. docs/export-records.md describes the records. Each record has the
// identity's sender and session, and the number of its first sample. Numbers follow the order of the profiles request:
// if two records of a session follow each other, the second one begins at the sum of the first one's number and count.
//
// Logs have no dictionary: each record repeats its stack. To limit the size of the result, make the profiles request
// with ProfilesBuilder::Options::size_of.
LogsText MakeLogs(const ProfilesRequest& profiles, const RequestIdentity& identity, LogRecords records);

}  // namespace tributary::otlp
