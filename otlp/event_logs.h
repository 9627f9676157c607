#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/types.h"
#include "otlp/profile_logs.h"
#include "otlp/request_identity.h"
#include "profile/attributes.h"
#include "profile/process_event.h"

namespace opentelemetry::proto::logs::v1 {
class ScopeLogs;
}

namespace tributary::otlp {

// One process event, as profile/process_event.h describes it.
struct EventInfo {
  UnixNs time;
  ProcessEventKind kind = ProcessEventKind::kStart;
  Pid pid, parent;
  uint32_t uid = 0;
  std::string_view name, executable_path;
  uint32_t events = 1, processes = 1;
  ProcessEnd end;  // of an exit or a sum
};

// Builds a logs request with a record for each process event. docs/export.md describes the records.
class EventLogs {
 public:
  // `identity` must outlive the EventLogs. Its number is that of the first event.
  EventLogs(const RequestIdentity& identity, std::string_view scope_version);
  ~EventLogs();

  void Add(const Attributes& resource, const EventInfo& event);
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
