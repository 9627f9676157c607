#include "kernel-collector/processes/resource_reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "kernel-collector/processes/process_context.h"
#include "kernel-collector/processes/process_environment.h"

namespace tributary {
namespace {

constexpr MonotonicNs kNever{std::numeric_limits<int64_t>::max()};

using Text = std::shared_ptr<const std::string>;

Text Shared(std::string text) { return text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text)); }

bool AreEqual(const Text& a, const Text& b) { return a == b || (a != nullptr && b != nullptr && *a == *b); }

}  // namespace

struct ResourceReader::Reading {
  ProcessRunPtr run;
  ProcessRunPtr forked_from;  // kept alive while this reading may need its environment
  bool of_context = false;    // false: of the environment
  absl::StatusOr<ProcessEnvironment> environment = absl::UnknownError("");
  absl::StatusOr<ProcessContext> context = absl::UnknownError("");
  MonotonicNs ended;
};

ResourceReader::ResourceReader(Options options, Executor& executor, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      executor_(executor),
      clock_(clock),
      unread_(metrics.AddCounter(
          "tributary_collector_environments_unread_total",
          "Sampled processes whose environment is unknown, for example because the process ended before it was read")),
      contexts_(metrics.AddCounter("tributary_collector_process_contexts_total",
                                   "How often an OpenTelemetry process context was read")),
      contexts_refused_(metrics.AddCounter("tributary_collector_process_contexts_refused_total",
                                           "How often an OpenTelemetry process context was malformed")),
      dropped_(metrics.AddCounter(
          "tributary_collector_resource_attributes_dropped_total",
          "Attributes from the environments and OpenTelemetry process contexts of processes that were dropped, because "
          "they exceeded a limit or were not text")) {}

void ResourceReader::Want(const ProcessRunPtr& run, MonotonicNs now, const ProcessTable& processes) {
  // /proc shows nothing any more for a run that has ended or that an exec has replaced.
  if (processes.Find(run->pid) != run || run->exited) {
    if (run->environment == ProcessRun::Environment::kUnread) Inherit(run);
    run->context_due = kNever;
    return;
  }
  WantEnvironment(run);
  if (now < run->context_due) return;
  if (run->context_period_ns != 0) {
    auto reading = std::make_shared<Reading>();
    reading->run = run;
    reading->of_context = true;
    if (!Submit(std::move(reading))) return;
  }
  run->context_period_ns =
      run->context_period_ns == 0 ? kFirstContextNs : std::min(10 * run->context_period_ns, kContextPeriodMaxNs);
  run->context_due = MonotonicNs{now.value + run->context_period_ns};
}

void ResourceReader::WantEnvironment(const ProcessRunPtr& run) {
  if (run->environment != ProcessRun::Environment::kUnread) return;
  auto reading = std::make_shared<Reading>();
  reading->run = run;
  reading->forked_from = run->forked_from.lock();
  if (Submit(std::move(reading))) run->environment = ProcessRun::Environment::kReading;
}

bool ResourceReader::Submit(std::shared_ptr<Reading> reading) {
  if (reading->run->is_being_read) return false;  // the next sample asks again
  return reading->run->is_being_read = executor_.Submit(
             [reading, proc_root = options_.proc_root, names = options_.names, pid = reading->run->pid,
              &clock = clock_] {
               if (reading->of_context) {
                 reading->context = ReadProcessContext(proc_root, pid);
               } else {
                 reading->environment = ReadProcessEnvironment(proc_root, pid, names);
               }
               reading->ended = clock.Monotonic();
             },
             scope_.Wrap([this, reading] { read_.push_back(reading); }));
}

std::vector<ProcessRunPtr> ResourceReader::Settle(const ProcessTable& processes) {
  for (const auto& reading : std::exchange(read_, {})) {
    ProcessRun& run = *reading->run;
    run.is_being_read = false;
    // A run that began before the reading's end, by an exec or under the same pid, may be the run that was read.
    const ProcessRunPtr current = processes.Find(run.pid);
    const bool replaced = current != nullptr && current.get() != &run && current->began <= reading->ended;
    const bool ended = run.exited && run.last_seen <= reading->ended;
    if (reading->of_context) {
      TakeContext(*reading, !replaced && !ended);
    } else {
      TakeEnvironment(*reading, !replaced && !ended);
    }
    if (!run.heirs.empty()) WantEnvironment(reading->run);  // this was not possible during the reading
  }
  return std::exchange(learned_, {});
}

void ResourceReader::TakeEnvironment(Reading& reading, bool was_it) {
  if (!was_it || !reading.environment.ok()) return Inherit(reading.run);
  // A process that is ending, or is in the middle of an exec, shows an empty environment before its event arrives.
  if (reading.environment->is_empty && reading.forked_from != nullptr) return Inherit(reading.run);
  dropped_.Add(reading.environment->dropped);
  Settled(reading.run, Shared(std::move(reading.environment->attributes)));
}

// Handles a run that can no longer be read. The run inherits the environment of the run that forked it, if that
// environment is known or will be known.
void ResourceReader::Inherit(const ProcessRunPtr& run) {
  const ProcessRunPtr from = run->forked_from.lock();
  if (from != nullptr && from->environment == ProcessRun::Environment::kKnown && from->environment_attributes) {
    return Settled(run, from->environment_attributes);
  }
  const bool is_coming = from != nullptr && from->environment != ProcessRun::Environment::kKnown;
  if (!is_coming || from->heirs.size() >= ProcessRun::kHeirsMax) {
    return Settled(run, std::nullopt);
  }
  run->environment = ProcessRun::Environment::kReading;
  from->heirs.push_back(run);
  WantEnvironment(from);
}

// Stores the environment in a run and in all runs that wait for it; nullopt: unknown.
void ResourceReader::Settled(const ProcessRunPtr& run, const std::optional<Text>& environment) {
  std::vector<ProcessRunPtr> all = {run};
  while (!all.empty()) {
    const ProcessRunPtr one = std::move(all.back());
    all.pop_back();
    one->environment = ProcessRun::Environment::kKnown;
    for (ProcessRunPtr& heir : std::exchange(one->heirs, {})) all.push_back(std::move(heir));
    if (!environment) unread_.Add();
    if (!environment || *environment == nullptr) continue;
    one->environment_attributes = *environment;
    Learn(one);
  }
}

void ResourceReader::TakeContext(Reading& reading, bool was_it) {
  if (!was_it || absl::IsUnavailable(reading.context.status())) return;
  Text attributes;
  if (reading.context.ok()) {
    contexts_.Add();
    size_t dropped = reading.context->dropped;
    attributes = Shared(EncodeResource(reading.context->attributes, &dropped));
    // A context that was only read again must not be counted again.
    if (!AreEqual(attributes, reading.run->context_attributes)) dropped_.Add(dropped);
  } else if (absl::IsInvalidArgument(reading.context.status())) {
    return contexts_refused_.Add();
  }
  if (AreEqual(attributes, reading.run->context_attributes)) return;
  reading.run->context_attributes = std::move(attributes);
  Learn(reading.run);
}

void ResourceReader::Learn(const ProcessRunPtr& run) {
  size_t dropped = 0;
  run->attributes = Shared(MergeResources(run->environment_attributes ? *run->environment_attributes : "",
                                          run->context_attributes ? *run->context_attributes : "", &dropped));
  dropped_.Add(dropped);
  learned_.push_back(run);
}

}  // namespace tributary
