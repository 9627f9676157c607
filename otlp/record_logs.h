#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/types.h"
#include "otlp/attribute_values.h"
#include "otlp/profile_logs.h"
#include "otlp/request_identity.h"
#include "profile/attributes.h"

namespace opentelemetry::proto::logs::v1 {
class ScopeLogs;
}

namespace tributary::otlp {

// What all records have that are no samples.
struct RecordHead {
  UnixNs time, observed;
  bool is_warning = false;
  std::string name;  // of the event
  std::string body;  // for people who read the log
};

// Builds a logs request with records that are no samples. event_logs.h, loss_logs.h and rollout_logs.h add records to
// it. Each record has the identity's sender and session, and a number of its own. docs/export-records.md describes the
// records.
class RecordLogs {
 public:
  // `identity` must outlive the RecordLogs. Its number is that of the first record.
  RecordLogs(const RequestIdentity& identity, std::string_view scope_version);
  ~RecordLogs();

  // Adds a record. `fill` adds its attributes.
  void Add(const Attributes& resource, const RecordHead& head, absl::FunctionRef<void(KeyValues*)> fill);
  size_t bytes() const { return bytes_; }  // an upper bound of the serialized size
  // Do not use this object afterwards.
  LogsRequestPtr Finish() { return std::move(request_); }

 private:
  const RequestIdentity& identity_;
  const std::string session_;
  const std::string version_;
  uint64_t next_;
  size_t bytes_ = 0;
  LogsRequestPtr request_;
  std::map<Attributes, ::opentelemetry::proto::logs::v1::ScopeLogs*> scopes_;  // by resource
};

}  // namespace tributary::otlp
