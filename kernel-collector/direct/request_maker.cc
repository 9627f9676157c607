#include "kernel-collector/direct/request_maker.h"

#include <utility>

#include "otlp/event_logs.h"

namespace tributary {

void DirectRequestMaker::Begin(const SampleSet& set, SymbolLookup symbols, std::function<void()> on_named) {
  set_ = &set;
  requests_.emplace(set, std::move(symbols), options_, std::move(on_named));
  next_event_ = 0;
}

DirectRequest DirectRequestMaker::Next() {
  SetRequests::Made made = requests_->Next();
  if (made.request == nullptr) return NextEvents();
  DirectRequest out;
  out.identity = samples_;
  samples_.first = otlp::SetProfileIds(samples_, made.request.get());
  out.samples = std::move(made.request);
  out.counts = std::move(made.samples);
  out.dropped_strings = made.dropped_strings;
  return out;
}

DirectRequest DirectRequestMaker::NextEvents() {
  DirectRequest out;
  const std::vector<EventSet::Item>& items = set_->events.items;
  if (next_event_ == items.size()) return out;
  out.identity = events_;
  otlp::RecordLogs logs(out.identity, options_.scope_version);
  while (next_event_ < items.size() && logs.bytes() < options_.bytes_soft) {
    const EventSet::Item& item = items[next_event_++];
    const ProcessEvent& event = item.event;
    otlp::AddEvent(set_->events.resources[item.resource],
                   {.time = item.time,
                    .kind = event.kind,
                    .pid = event.pid,
                    .parent = event.parent,
                    .start_time_ns = event.start_time_ns,
                    .uid = event.uid,
                    .name = item.name,
                    .executable_path = item.executable_path,
                    .events = event.events,
                    .processes = event.processes,
                    .end = event.end},
                   &logs);
    out.counts.AddEvents(event.events);
    ++events_.first;
  }
  out.events = logs.Finish();
  return out;
}

}  // namespace tributary
