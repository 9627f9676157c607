#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel-collector/direct/batch_sender.h"
#include "kernel-collector/direct/direct_testing.h"
#include "otlp/json.h"
#include "otlp/profiles_text.h"
#include "schemas/otlp/logs_service.pb.h"

// For tests: a BatchSender without a spool, and its receiver.

namespace tributary {

inline otlp::SendResult Failure(absl::StatusCode code, bool may_retry, std::optional<int64_t> retry_after_ns = {}) {
  otlp::SendResult result;
  result.status = Error(code, "no");
  result.may_retry = may_retry;
  result.retry_after_ns = retry_after_ns;
  return result;
}

// Answers from a script, then OK.
class FakeSender : public otlp::ProfilesSender, public otlp::LogsSender {
 public:
  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override {
    timeouts.push_back(timeout_ns);
    first_numbers.push_back(identity.first);
    const otlp::SendResult result = Answer();
    if (result.status.ok()) texts.push_back(otlp::FormatProfiles(request, {.layout = otlp::TextLayout::kCollector}));
    return result;
  }
  otlp::SendResult SendLogs(const otlp::LogsRequest& request, int64_t) override {
    otlp::SendResult result = Answer();
    if (result.status.ok()) texts.push_back(otlp::ToJson(request));
    return result;
  }
  void Cancel() override { cancelled = true; }
  otlp::SendResult Answer() {
    if (cancelled) return Failure(absl::StatusCode::kCancelled, true);
    if (script.empty()) return {};
    otlp::SendResult result = script.front();
    script.pop_front();
    return result;
  }

  std::deque<otlp::SendResult> script;
  std::vector<std::string> texts;
  std::vector<int64_t> timeouts;
  std::vector<uint64_t> first_numbers;
  bool cancelled = false;
};

class BatchSenderTest : public testing::Test {
 protected:
  BatchSenderTest() { Open({.names = false}); }
  void Open(BatchSender::Options options) {
    auto sender = std::make_unique<FakeSender>();
    receiver_ = sender.get();
    sender_ = std::make_unique<BatchSender>(
        std::move(options), BatchSender::Receiver{.samples = std::move(sender), .events = receiver_}, nullptr,
        BatchSender::Callbacks{.need_symbols = [this](const ExecutableId& id) { wanted_.push_back(id); },
                               .progressed = [] {}},
        clock_, metrics_);
  }
  void Push(std::string_view program = "prog", int samples = 1) {
    for (int i = 0; i < samples; ++i) batches_.Add(program, 0x2010);
    sender_->Push(CopySamples(batches_.Take(), [](const Process&, const Dictionary&) { return Attributes(); }));
    pushed_ += static_cast<uint64_t>(samples);
  }
  // A set with one sample and one event.
  void PushWithEvent(std::string_view program = "prog") {
    batches_.AddEvent(ProcessEventKind::kExit, program);
    ++pushed_events_;
    Push(program);
  }
  // Sends what is due. Returns the time until more may be due.
  int64_t Run() {
    int64_t wait_ns = 0;
    while (wait_ns == 0) wait_ns = sender_->RunOnce();
    return wait_ns;
  }
  void CheckLaw() {
    const BatchSender::Totals totals = sender_->totals();
    const SampleCounts counted = totals.sent + totals.waiting + totals.lost.TotalLost();
    EXPECT_EQ(pushed_, counted.total());
    EXPECT_EQ(pushed_events_, counted.events());
  }
  uint64_t Counted(const char* name) { return metrics_.AddCounter(name, "").value(); }
  uint64_t Lost(LossReason reason) { return sender_->totals().lost.LostFor(reason).total(); }
  uint64_t Sent() { return sender_->totals().sent.total(); }

  FakeClock clock_;
  Metrics metrics_;
  TestBatches batches_;
  std::vector<ExecutableId> wanted_;
  FakeSender* receiver_ = nullptr;
  std::unique_ptr<BatchSender> sender_;
  uint64_t pushed_ = 0, pushed_events_ = 0;
};

}  // namespace tributary
