#include "intake/client/send_window.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary::intake {

namespace {

constexpr size_t kRejected = static_cast<size_t>(LossReason::kRejected);
constexpr size_t kNotTaken = static_cast<size_t>(LossReason::kNotTaken);

}  // namespace

void SendWindow::Begin(uint64_t last_sequence, const Accounting& totals) {
  TRIBUTARY_CHECK(entries_.empty() && last_sequence_ == 0);
  last_sequence_ = last_sequence;
  totals_ = durable_ = totals;
}

void SendWindow::Add(Outgoing out) {
  Entry entry;
  entry.samples = CountRecords(out.batch);
  entry.delta = out.delta;
  entry.delta.captured = entry.samples + out.delta.TotalLost();
  entry.segment = out.segment;
  entry.foreign = out.foreign;
  if (out.base) totals_ = *out.base;
  entry.before = totals_;
  totals_ += entry.delta;
  entry.pending = reported_pending_ = out.pending;
  entry.batch = std::move(out.batch);
  entry.batch.sequence = ++last_sequence_;
  entry.batch.accounting = totals_;
  entry.batch.accounting.captured += out.pending;
  samples_ += entry.samples.total();
  record_bytes_ += RecordBytes(entry.batch);
  entries_.push_back(std::move(entry));
}

// Process events that the reducer did not get. They are lost only when the batch is durable: until then the batch may
// be sent again to a later release of the reducer.
SampleCounts SendWindow::UntakenOf(const Entry& entry) {
  SampleCounts untaken;
  if (entry.without_events) untaken.AddEvents(entry.samples.events());
  return untaken;
}

SampleCounts SendWindow::Ack(uint64_t sequence, const std::function<void(const Entry&)>& acked) {
  SampleCounts untaken;
  while (!entries_.empty() && entries_.front().batch.sequence <= sequence) {
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    if (next_ > 0) --next_;
    samples_ -= entry.samples.total();
    record_bytes_ -= RecordBytes(entry.batch);
    wire_bytes_ -= entry.wire_bytes;
    const SampleCounts of_entry = UntakenOf(entry);
    entry.samples -= of_entry;
    entry.delta.lost[kNotTaken] += of_entry;
    untaken += of_entry;
    durable_ += entry.delta;
    durable_pending_ = entry.pending;
    acked(entry);
  }
  last_sequence_ = std::max(last_sequence_, sequence);
  if (untaken.empty()) return untaken;
  totals_.lost[kNotTaken] += untaken;
  for (Entry& entry : entries_) {
    entry.before.lost[kNotTaken] += untaken;
    entry.batch.accounting.lost[kNotTaken] += untaken;
  }
  return untaken;
}

SampleCounts SendWindow::Reject(uint64_t sequence) {
  auto it =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.batch.sequence == sequence; });
  if (it == entries_.end() || it->samples.empty()) return {};
  const SampleCounts samples = std::exchange(it->samples, {});
  samples_ -= samples.total();
  record_bytes_ -= RecordBytes(it->batch);
  it->batch.samples = {};
  it->batch.events = {};
  it->batch.dictionary.reset();
  it->delta.lost[kRejected] += samples;
  totals_.lost[kRejected] += samples;
  for (; it != entries_.end(); ++it) it->batch.accounting.lost[kRejected] += samples;
  return samples;
}

std::vector<SendWindow::Entry> SendWindow::GiveUp() {
  for (const Entry& entry : entries_) {
    given_up_.push_back({entry.batch.sequence, entry.delta, entry.pending, UntakenOf(entry)});
  }
  std::vector<Entry> given_up(std::make_move_iterator(entries_.begin()), std::make_move_iterator(entries_.end()));
  entries_.clear();
  next_ = 0;
  samples_ = 0;
  record_bytes_ = 0;
  wire_bytes_ = 0;
  totals_ = durable_;
  reported_pending_ = durable_pending_;
  return given_up;
}

void SendWindow::Settle(uint64_t durable_sequence) {
  for (GivenUp& batch : std::exchange(given_up_, {})) {
    if (batch.sequence > durable_sequence) continue;
    batch.delta.lost[kNotTaken] += batch.untaken;
    totals_ += batch.delta;
    durable_ += batch.delta;
    durable_pending_ = batch.pending;
    if (entries_.empty()) reported_pending_ = batch.pending;
    for (Entry& entry : entries_) entry.batch.accounting += batch.delta;
  }
}

void SendWindow::Sent(size_t wire_bytes, bool without_events) {
  Entry& entry = entries_[next_++];
  entry.without_events = without_events;
  entry.wire_bytes = wire_bytes;
  wire_bytes_ += wire_bytes;
}

void SendWindow::Rewind() {
  for (Entry& entry : entries_) entry.wire_bytes = 0;
  next_ = 0;
  wire_bytes_ = 0;
}

}  // namespace tributary::intake
