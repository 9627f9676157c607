#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "intake/testing/fake_spool_storage_testing.h"
#include "kernel-collector/direct/batch_sender.h"
#include "kernel-collector/direct/direct_testing.h"
#include "kernel-collector/direct/spool_testing.h"
#include "otlp/json.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

// For tests: a BatchSender with a spool, its disk and its receiver.

namespace tributary {

inline uint64_t CountRecords(const otlp::ProfilesRequest& request) {
  uint64_t records = 0;
  for (const auto& resource : request.resource_profiles()) {
    for (const auto& scope : resource.scope_profiles()) {
      for (const auto& profile : scope.profiles()) {
        for (const auto& sample : profile.samples()) {
          records += static_cast<uint64_t>(sample.timestamps_unix_nano_size());
        }
      }
    }
  }
  return records;
}

// A receiver that remembers what it accepted.
struct FakeReceiver {
  enum class State { kUp, kDown, kLosesAnswers, kHangs };

  otlp::SendResult Take(const std::string& session, uint64_t first, uint64_t records, std::string text,
                        int64_t timeout_ns) {
    otlp::SendResult result;
    if (state == State::kHangs) {
      hang(timeout_ns);
      result.status = absl::DeadlineExceededError("no answer");
      result.may_retry = result.in_doubt = true;
      return result;
    }
    if (is_dead() || state == State::kDown) {
      result.status = absl::UnavailableError("down");
      result.may_retry = true;
      return result;
    }
    ++requests;
    received_records += records;
    const auto [known, is_new] = accepted.try_emplace({session, first}, text);
    if (is_new) accepted_records += records;
    // A request that is sent again is the same, with its names and its ids.
    EXPECT_EQ(known->second, text);
    result.left_out_samples = left_out_samples;
    if (state == State::kLosesAnswers) {
      result.status = absl::UnavailableError("lost");
      result.may_retry = result.in_doubt = true;
    }
    return result;
  }

  State state = State::kUp;
  uint64_t left_out_samples = 0;  // of each request, as a printer of text leaves them out
  uint64_t requests = 0;
  uint64_t received_records = 0, accepted_records = 0;  // samples and events; repeated ones are accepted once
  std::map<std::pair<std::string, uint64_t>, std::string> accepted;  // by session and number
  std::function<void(int64_t timeout_ns)> hang;
  std::function<bool()> is_dead = [] { return false; };  // of the sender: it sends nothing any more
};

class SenderTo : public otlp::ProfilesSender, public otlp::LogsSender {
 public:
  explicit SenderTo(FakeReceiver& receiver) : receiver_(receiver) {}
  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override {
    return receiver_.Take(identity.SessionText(), identity.first, CountRecords(request), request.SerializeAsString(),
                          timeout_ns);
  }
  otlp::SendResult SendLogs(const otlp::LogsRequest& request, int64_t timeout_ns) override {
    const std::string text = otlp::ToJson(request);
    const std::string key = "\"tributary.sequence\",\"value\":{\"intValue\":\"";
    uint64_t records = 0;
    for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) ++records;
    return receiver_.Take("events", std::stoull(text.substr(text.find(key) + key.size())), records, text, timeout_ns);
  }
  void Cancel() override {}

 private:
  FakeReceiver& receiver_;
};

class SenderSpoolTest : public testing::Test {
 protected:
  struct Setup {
    std::array<uint8_t, 16> session{2};
    uint64_t spool_bytes = 1 << 20;
    size_t queue_bytes = 1 << 20;
    bool sends_events = true;
    size_t sets_together = 1;
    int64_t together_wait_ns = 0;
  };
  // Starts a collector. Its predecessor must be gone.
  void Start(const Setup& setup) {
    sender_.reset();
    pinned_ = {};
    auto spool =
        RequestSpool::Open(setup.spool_bytes, std::make_unique<BorrowedStorage>(disk_, faults_), clock_, metrics_);
    ASSERT_TRUE(spool.ok()) << spool.status();
    found_ = (*spool)->FoundOf({2});
    BatchSender::Options options{.queue_bytes_max = setup.queue_bytes,
                                 .names = false,
                                 .sets_together = setup.sets_together,
                                 .together_wait_ns = setup.together_wait_ns};
    options.identity = {.sender = "n", .session = setup.session};
    options.event_identity = {.sender = "n", .session = EventSession(setup.session)};
    auto to = std::make_unique<SenderTo>(receiver_);
    otlp::LogsSender* events = setup.sends_events ? to.get() : nullptr;
    sender_ = std::make_unique<BatchSender>(
        std::move(options), BatchSender::Receiver{.samples = std::move(to), .events = events}, *std::move(spool),
        BatchSender::Callbacks{.need_symbols = [](const ExecutableId&) {},
                               .progressed =
                                   [this] {
                                     if (disk_.dead()) return;
                                     const BatchSender::Totals totals = sender_->totals();
                                     pinned_ = totals.sent + totals.lost.TotalLost();
                                   }},
        clock_, metrics_);
  }
  // One sample and one event.
  void Push() {
    batches_.Add("prog", 0x2010 + pushed_.total());
    batches_.AddEvent(ProcessEventKind::kExit, "prog");
    PushTaken();
  }
  void PushTaken() {
    SampleSet set = CopySamples(batches_.Take(), [](const Process&, const Dictionary&) { return Attributes(); });
    pushed_ += CountRecords(set);
    sender_->Push(std::move(set));
  }
  // Runs for some time.
  void Run(int64_t ns) {
    const int64_t end = clock_.Monotonic().value + ns;
    while (clock_.Monotonic().value < end && !disk_.dead()) {
      clock_.Advance(std::min(sender_->RunOnce(), end - clock_.Monotonic().value));
    }
  }
  void CheckLaw() {
    const BatchSender::Totals totals = sender_->totals();
    EXPECT_EQ(totals.sent + totals.waiting + totals.lost.TotalLost(), pushed_);
  }
  uint64_t Failures(const char* operation) {
    return metrics_.AddCounter("tributary_spool_failures_total", "", {{"operation", operation}}).value();
  }
  uint64_t Counted(const char* name) { return metrics_.AddCounter(name, "").value(); }
  uint64_t Repeated() {
    return Counted("tributary_direct_repeated_samples_total") +
           Counted("tributary_direct_repeated_process_events_total");
  }
  static uint64_t Records(const SampleCounts& counts) { return counts.total() + counts.events(); }

  intake::FakeSpoolStorage disk_{1};
  DiskFaults faults_;
  FakeClock clock_;
  Metrics metrics_;
  FakeReceiver receiver_;
  TestBatches batches_;
  std::unique_ptr<BatchSender> sender_;
  SampleCounts pushed_, pinned_, found_;
};

}  // namespace tributary
