#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "kernel-collector/direct/sample_set.h"
#include "kernel-collector/direct/set_requests.h"
#include "otlp/profile_logs.h"
#include "otlp/profiles_builder.h"
#include "otlp/request_identity.h"
#include "profile/sample_counts.h"

namespace tributary {

// One request that is ready to be sent, and what it contains: samples or process events.
struct DirectRequest {
  otlp::ProfilesRequestPtr samples;  // with profile ids
  otlp::LogsRequestPtr events;
  otlp::RequestIdentity identity;
  SampleCounts counts;
  uint64_t dropped_strings = 0;
  bool in_doubt = false;  // the receiver may have accepted it

  bool empty() const { return samples == nullptr && events == nullptr; }
};

// Turns sample sets into requests, and gives each request its identity. The samples of all sets come first, and then
// their process events. Used by one thread.
class DirectRequestMaker {
 public:
  // `samples`, `events`: identities of the first requests. Their sessions must differ.
  DirectRequestMaker(otlp::ProfilesBuilder::Options options, otlp::RequestIdentity samples,
                     otlp::RequestIdentity events)
      : options_(std::move(options)), samples_(std::move(samples)), events_(std::move(events)) {}

  // Begins with the next sets. They must outlive the requests that are made of them. `on_named`: as in SetRequests.
  void Begin(std::span<const SampleSet> sets, SymbolLookup symbols, std::function<void()> on_named = [] {});
  // Returns the next request of these sets. It is empty if nothing is left.
  DirectRequest Next();

 private:
  const EventSet::Item* NextEvent();
  DirectRequest NextEvents();

  const otlp::ProfilesBuilder::Options options_;
  otlp::RequestIdentity samples_, events_;  // of the next request
  std::optional<SetRequests> requests_;
  std::span<const SampleSet> event_sets_;  // whose events are left; the next one is in the first set
  size_t next_event_ = 0;
};

}  // namespace tributary
