#include "kernel-collector/direct/request_maker.h"

#include <utility>

#include "otlp/event_logs.h"
#include "otlp/table_order.h"

namespace tributary {

void DirectRequestMaker::Begin(std::span<const SampleSet> sets, SymbolLookup symbols, std::function<void()> on_named) {
  event_sets_ = sets;
  requests_.emplace(sets, std::move(symbols), options_, std::move(on_named));
  next_event_ = 0;
}

DirectRequest DirectRequestMaker::Next() {
  SetRequests::Made made = requests_->Next();
  if (made.request == nullptr) return NextEvents();
  DirectRequest out;
  out.identity = samples_;
  samples_.first = otlp::SetProfileIds(samples_, made.request.get());
  // Logs have no tables.
  if (options_.size_of == otlp::ProfilesBuilder::SizeOf::kProfiles) otlp::OrderTables(made.request.get());
  out.samples = std::move(made.request);
  out.counts = std::move(made.samples);
  out.dropped_strings = made.dropped_strings;
  return out;
}

const EventSet::Item* DirectRequestMaker::NextEvent() {
  while (!event_sets_.empty() && next_event_ == event_sets_.front().events.items.size()) {
    event_sets_ = event_sets_.subspan(1);
    next_event_ = 0;
  }
  return event_sets_.empty() ? nullptr : &event_sets_.front().events.items[next_event_];
}

DirectRequest DirectRequestMaker::NextEvents() {
  DirectRequest out;
  if (NextEvent() == nullptr) return out;
  out.identity = events_;
  otlp::RecordLogs logs(out.identity, options_.scope_version);
  for (const EventSet::Item* item = NextEvent(); item != nullptr && logs.bytes() < options_.bytes_soft;
       item = NextEvent()) {
    const ProcessEvent& event = item->event;
    otlp::AddEvent(event_sets_.front().events.resources[item->resource],
                   {.time = item->time,
                    .kind = event.kind,
                    .pid = event.pid,
                    .parent = event.parent,
                    .start_time_ns = event.start_time_ns,
                    .uid = event.uid,
                    .name = item->name,
                    .executable_path = item->executable_path,
                    .events = event.events,
                    .processes = event.processes,
                    .end = event.end},
                   &logs);
    out.counts.AddEvents(event.events);
    ++events_.first;
    ++next_event_;
  }
  out.events = logs.Finish();
  return out;
}

}  // namespace tributary
