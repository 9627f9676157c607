#include "reducer/export/record_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "reducer/export/event_attributes.h"
#include "reducer/metadata/rollout_fields.h"

namespace tributary {
namespace {

// Each of these functions returns a text that differs for two records of one kind.
std::string TextOf(const store::EventRecord& event) {
  return fmt::format("{},{},{},{},{};", event.node_id, event.pid.value, event.start_time_ns, event.time.value,
                     static_cast<int>(event.kind));
}

std::string TextOf(const store::LossRecord& loss) {
  constexpr int kSeveralReasons = -1;
  return fmt::format(
      "{},{},{},{},{},{},{},{};", loss.node_id, loss.type.name, loss.type.unit, static_cast<int>(loss.type.aggregation),
      loss.reason ? static_cast<int>(*loss.reason) : kSeveralReasons, loss.samples, loss.first.value, loss.last.value);
}

std::string TextOf(const Rollout& rollout) {
  return fmt::format("{},{},{},{},{},{},{};", rollout.cluster, rollout.kind, rollout.name_space, rollout.name,
                     VersionOf(rollout).hash, rollout.at.value, rollout.no);
}

// `Record`: the type of a record. `send`: the method of RecordSender for such records.
template <typename Record>
class Batch : public RecordBatch {
 public:
  using SendMethod = RecordResult (RecordSender::*)(std::span<const Record>, const otlp::RequestIdentity&, int64_t);

  Batch(std::vector<Record> records, RecordSender& sender, SendMethod send)
      : records_(std::move(records)), sender_(sender), send_(send) {}

  size_t size() const override { return records_.size(); }
  void Cut(size_t size) override { records_.resize(size); }
  uint64_t ContentOf(size_t size) const override {
    std::string text;
    for (const Record& record : std::span(records_).first(size)) text += TextOf(record);
    return otlp::ContentDigest(text);
  }
  RecordResult Send(const otlp::RequestIdentity& identity, int64_t timeout_ns) override {
    return (sender_.*send_)(records_, identity, timeout_ns);
  }

 protected:
  std::vector<Record>& records() { return records_; }

 private:
  std::vector<Record> records_;
  RecordSender& sender_;
  const SendMethod send_;
};

class EventBatch : public Batch<store::EventRecord> {
 public:
  EventBatch(std::vector<store::EventRecord> events, store::Store& store, uint32_t shard, const EventFacts& facts,
             RecordSender& sender)
      : Batch(std::move(events), sender, &RecordSender::SendEvents), store_(store), shard_(shard), facts_(facts) {}

  absl::StatusOr<uint64_t> Complete() override {
    if (!facts_.are_sent) return 0;
    ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard_));
    reader->CancelIf(facts_.is_cancelled);
    return AddProcessAttributes(*reader, records());
  }

 private:
  store::Store& store_;
  const uint32_t shard_;
  const EventFacts facts_;
};

class EventSource : public RecordSource {
 public:
  EventSource(store::Store& store, RecordSender& sender, const EventFacts& facts)
      : store_(store), sender_(sender), facts_(facts) {}

  std::string_view position_suffix() const override { return ".events"; }
  std::string_view noun() const override { return "process events"; }
  int64_t hold_ns() const override { return facts_.hold_ns; }
  absl::StatusOr<Read> ReadBehind(uint32_t shard, const Position& from, size_t records_max) override {
    ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
    Read read{.begin = from};
    ASSIGN_OR_RETURN(read.expired, CountExpired(*reader, &read.begin));
    std::vector<store::EventRecord> events;
    const auto add = [&events](const store::ProcessEventRow& event) {
      events.emplace_back(event);
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(read.next.chunk, reader->ScanCommittedEvents(from.chunk, records_max, add));
    read.next.samples = read.begin.samples;
    ASSIGN_OR_RETURN(const uint64_t passed, CountExpired(*reader, &read.next));
    // Events in damaged chunks were passed, and not read.
    if (read.next.chunk >= from.chunk && passed > events.size()) read.damaged = passed - events.size();
    read.records = std::make_unique<EventBatch>(std::move(events), store_, shard, facts_, sender_);
    return read;
  }
  absl::StatusOr<uint64_t> FindExpired(uint32_t shard, Position* at) override {
    ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
    return CountExpired(*reader, at);
  }

 private:
  // Sets the position's number, and returns by how much it has grown. A position without a number is that of a new
  // exporter, or of an earlier release. The number is smaller than before if an older copy has replaced the data, or if
  // chunks before the position were joined to one behind it.
  static absl::StatusOr<uint64_t> CountExpired(store::StoreReader& reader, Position* at) {
    const absl::StatusOr<uint64_t> passed = reader.CountPassedEvents(at->chunk);
    if (absl::IsNotFound(passed.status())) return 0;  // the shard is not ready: the position stays
    RETURN_IF_ERROR(passed.status());
    const uint64_t before = std::exchange(at->samples, *passed).value_or(*passed);
    return *passed > before ? *passed - before : 0;
  }

  store::Store& store_;
  RecordSender& sender_;
  const EventFacts facts_;
};

class LossSource : public RecordSource {
 public:
  LossSource(store::Store& store, RecordSender& sender) : store_(store), sender_(sender) {}

  std::string_view position_suffix() const override { return ".losses"; }
  std::string_view noun() const override { return "losses"; }
  absl::StatusOr<Read> ReadBehind(uint32_t shard, const Position& from, size_t records_max) override {
    ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
    std::vector<store::LossRecord> losses;
    const auto add = [&losses](const store::LossRecord& loss) {
      losses.push_back(loss);
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(const int64_t next, reader->ScanCommittedLosses(from.chunk, records_max, add));
    // The numbers of losses have no gaps, until the store removes some. A new exporter does not count what expired
    // before its first start.
    const int64_t expired = from.chunk > 0 ? next - from.chunk - static_cast<int64_t>(losses.size()) : 0;
    return Read{
        .records = std::make_unique<Batch<store::LossRecord>>(std::move(losses), sender_, &RecordSender::SendLosses),
        .begin = from,
        .next = {.chunk = next, .samples = std::nullopt},
        .expired = static_cast<uint64_t>(std::max<int64_t>(expired, 0))};
  }

 private:
  store::Store& store_;
  RecordSender& sender_;
};

class RolloutSource : public RecordSource {
 public:
  RolloutSource(const RolloutLog& rollouts, RecordSender& sender) : rollouts_(rollouts), sender_(sender) {}

  std::string_view position_suffix() const override { return ".rollouts"; }
  std::string_view noun() const override { return "rollouts"; }
  bool is_in_first_shard() const override { return true; }
  absl::StatusOr<Read> ReadBehind(uint32_t, const Position& from, size_t records_max) override {
    RolloutLog::Numbered numbered = rollouts_.ListBehind(from.chunk, records_max);
    return Read{
        .records = std::make_unique<Batch<Rollout>>(std::move(numbered.rollouts), sender_, &RecordSender::SendRollouts),
        .begin = from,
        .next = {.chunk = numbered.next, .samples = std::nullopt},
        .is_cut = numbered.is_cut};
  }

 private:
  const RolloutLog& rollouts_;
  RecordSender& sender_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeEventSource(store::Store& store, RecordSender& sender, const EventFacts& facts) {
  return std::make_unique<EventSource>(store, sender, facts);
}

std::unique_ptr<RecordSource> MakeLossSource(store::Store& store, RecordSender& sender) {
  return std::make_unique<LossSource>(store, sender);
}

std::unique_ptr<RecordSource> MakeRolloutSource(const RolloutLog& rollouts, RecordSender& sender) {
  return std::make_unique<RolloutSource>(rollouts, sender);
}

}  // namespace tributary
