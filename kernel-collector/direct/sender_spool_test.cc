#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>

#include "intake/testing/fake_spool_storage_testing.h"
#include "kernel-collector/direct/batch_sender.h"
#include "kernel-collector/direct/direct_testing.h"
#include "kernel-collector/direct/spool_testing.h"
#include "otlp/json.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

// Tests a BatchSender with a spool: outages of the receiver, and kills of the collector.

namespace tributary {
namespace {

// A receiver that remembers what it accepted. Each request has one sample, or one event.
struct Receiver {
  enum class State { kUp, kDown, kLosesAnswers };

  otlp::SendResult Take(const std::string& session, uint64_t first, std::string text) {
    otlp::SendResult result;
    if (is_dead() || state == State::kDown) {
      result.status = absl::UnavailableError("down");
      result.may_retry = true;
      return result;
    }
    ++requests;
    const auto [known, is_new] = accepted.try_emplace({session, first}, text);
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
  std::map<std::pair<std::string, uint64_t>, std::string> accepted;  // by session and number
  std::function<bool()> is_dead = [] { return false; };              // of the sender: it sends nothing any more
};

class SenderTo : public otlp::ProfilesSender, public otlp::LogsSender {
 public:
  explicit SenderTo(Receiver& receiver) : receiver_(receiver) {}
  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity, int64_t) override {
    return receiver_.Take(identity.SessionText(), identity.first, request.SerializeAsString());
  }
  otlp::SendResult SendLogs(const otlp::LogsRequest& request, int64_t) override {
    const std::string text = otlp::ToJson(request);
    const std::string key = "\"tributary.sequence\",\"value\":{\"intValue\":\"";
    return receiver_.Take("events", std::stoull(text.substr(text.find(key) + key.size())), text);
  }
  void Cancel() override {}

 private:
  Receiver& receiver_;
};

class SenderSpoolTest : public testing::Test {
 protected:
  struct Setup {
    std::array<uint8_t, 16> session{2};
    uint64_t spool_bytes = 1 << 20;
    size_t queue_bytes = 1 << 20;
    bool sends_events = true;
  };
  // Starts a collector. Its predecessor must be gone.
  void Start(const Setup& setup) {
    sender_.reset();
    pinned_ = {};
    auto spool = RequestSpool::Open(setup.spool_bytes, std::make_unique<BorrowedStorage>(disk_), clock_, metrics_);
    ASSERT_TRUE(spool.ok()) << spool.status();
    found_ = (*spool)->FoundOf({2});
    BatchSender::Options options{.queue_bytes_max = setup.queue_bytes, .names = false};
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
  uint64_t Counted(const char* name) { return metrics_.AddCounter(name, "").value(); }
  uint64_t Repeated() {
    return Counted("tributary_direct_repeated_samples_total") +
           Counted("tributary_direct_repeated_process_events_total");
  }
  static uint64_t Records(const SampleCounts& counts) { return counts.total() + counts.events(); }

  intake::FakeSpoolStorage disk_{1};
  FakeClock clock_;
  Metrics metrics_;
  Receiver receiver_;
  TestBatches batches_;
  std::unique_ptr<BatchSender> sender_;
  SampleCounts pushed_, pinned_, found_;
};

TEST_F(SenderSpoolTest, DoesNotUseTheDiskWhileTheReceiverAnswers) {
  Start({});
  for (int i = 0; i < 5; ++i) {
    Push();
    Run(kNsPerSecond);
  }
  EXPECT_EQ(receiver_.accepted.size(), 10u);
  EXPECT_EQ(disk_.operations(), 1u);  // the list at the start
  CheckLaw();
}

TEST_F(SenderSpoolTest, KeepsAnOutageOnTheDisk) {
  Start({});
  receiver_.state = Receiver::State::kDown;
  for (int i = 0; i < 5; ++i) {
    Push();
    Run(kNsPerSecond);
  }
  EXPECT_EQ(disk_.names().size(), 10u);
  EXPECT_EQ(sender_->totals().waiting, pushed_);
  CheckLaw();
  receiver_.state = Receiver::State::kUp;
  Push();
  Run(kNsPerMinute);
  EXPECT_EQ(receiver_.accepted.size(), 12u);
  EXPECT_TRUE(disk_.names().empty());
  EXPECT_EQ(sender_->totals().sent, pushed_);
  EXPECT_EQ(Repeated(), 0u);
  CheckLaw();
  // Afterwards requests are sent directly again.
  const uint64_t operations = disk_.operations();
  Push();
  Run(kNsPerSecond);
  EXPECT_EQ(disk_.operations(), operations);
}

TEST_F(SenderSpoolTest, TheNextCollectorSendsWhatAStopLeaves) {
  Start({});
  receiver_.state = Receiver::State::kLosesAnswers;
  for (int i = 0; i < 3; ++i) Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(sender_->totals().waiting, pushed_);
  EXPECT_TRUE(sender_->totals().lost.TotalLost().empty());
  CheckLaw();
  receiver_.state = Receiver::State::kUp;
  Start({.session = {4}});
  EXPECT_EQ(sender_->totals().earlier_waiting, pushed_);
  EXPECT_TRUE(sender_->totals().waiting.empty());
  Run(kNsPerSecond);
  EXPECT_EQ(receiver_.accepted.size(), 6u);
  EXPECT_EQ(receiver_.requests, 7u);  // the first was sent again
  EXPECT_EQ(Repeated(), 1u);
  EXPECT_EQ(sender_->totals().earlier_sent, pushed_);
  EXPECT_TRUE(sender_->totals().earlier_waiting.empty());
  EXPECT_TRUE(sender_->totals().sent.empty());
  EXPECT_EQ(Counted("tributary_direct_earlier_samples_total"), 3u);
  EXPECT_EQ(Counted("tributary_direct_earlier_process_events_total"), 3u);
  EXPECT_EQ(Counted("tributary_direct_samples_total"), 3u);
}

TEST_F(SenderSpoolTest, SamplesOfAnEarlierCollectorThatAreLeftOutAreLost) {
  Start({});
  receiver_.state = Receiver::State::kDown;
  for (int i = 0; i < 2; ++i) Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  receiver_.state = Receiver::State::kUp;
  receiver_.left_out_samples = 1;
  Start({.session = {4}, .sends_events = false});
  Run(kNsPerSecond);
  const BatchSender::Totals totals = sender_->totals();
  EXPECT_EQ(totals.earlier_lost.total(), 2u);
  EXPECT_EQ(totals.earlier_sent.total(), 0u);
  EXPECT_TRUE(totals.earlier_waiting.empty());
  EXPECT_TRUE(totals.lost.TotalLost().empty());
  EXPECT_EQ(metrics_.AddCounter("tributary_direct_lost_samples_total", "", {{"reason", "rejected"}}).value(), 2u);
  EXPECT_EQ(Counted("tributary_direct_samples_total"), 0u);
  EXPECT_EQ(Counted("tributary_direct_earlier_samples_total"), 0u);
}

TEST_F(SenderSpoolTest, AnEncoderWithoutEventsLosesThemAsNotTaken) {
  Start({});
  receiver_.state = Receiver::State::kDown;
  for (int i = 0; i < 2; ++i) Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  receiver_.state = Receiver::State::kUp;
  Start({.session = {4}, .sends_events = false});
  Run(kNsPerSecond);
  EXPECT_EQ(sender_->totals().earlier_sent, SampleCounts(2));
  EXPECT_EQ(sender_->totals().earlier_lost.events(), 2u);
  EXPECT_EQ(metrics_.AddCounter("tributary_direct_lost_process_events_total", "", {{"reason", "not_taken"}}).value(),
            2u);
  EXPECT_TRUE(disk_.names().empty());
}

TEST_F(SenderSpoolTest, AFullSpoolLosesTheOldest) {
  Start({.spool_bytes = 4 * RequestSpool::kBlockBytes});
  receiver_.state = Receiver::State::kDown;
  for (int i = 0; i < 5; ++i) {
    Push();
    Run(kNsPerSecond);
    CheckLaw();
  }
  EXPECT_EQ(
      sender_->totals().lost.LostFor(LossReason::kSpoolOverflow), SampleCounts(3) + [] {
        SampleCounts events;
        events.AddEvents(3);
        return events;
      }());
  EXPECT_EQ(disk_.names().size(), 4u);
}

// While the disk is full, samples wait in memory. A full queue loses the oldest of them.
TEST_F(SenderSpoolTest, GoesOnWithMemoryWhileTheDiskIsFull) {
  Start({.queue_bytes = 8'000});
  disk_.set_capacity(0);
  receiver_.state = Receiver::State::kDown;
  for (int i = 0; i < 20; ++i) {
    Push();
    Run(kNsPerSecond);
    CheckLaw();
  }
  const SampleCounts lost = sender_->totals().lost.LostFor(LossReason::kSpoolOverflow);
  EXPECT_GT(lost.total(), 0u);
  EXPECT_LT(lost.total(), 20u);
  EXPECT_GT(metrics_.AddCounter("tributary_spool_failures_total", "", {{"operation", "append"}}).value(), 0u);
  disk_.set_capacity(UINT64_MAX);
  receiver_.state = Receiver::State::kUp;
  Run(kNsPerMinute);
  EXPECT_EQ(receiver_.accepted.size(), 2 * (20 - lost.total()));
  CheckLaw();
}

TEST_F(SenderSpoolTest, TheEndLosesWhatTheDiskDoesNotTake) {
  Start({});
  receiver_.state = Receiver::State::kDown;
  Push();
  Run(kNsPerSecond);
  disk_.set_capacity(0);
  Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(sender_->totals().waiting.total(), 1u);
  EXPECT_EQ(sender_->totals().lost.LostFor(LossReason::kShutdown).total(), 1u);
  CheckLaw();
}

TEST_F(SenderSpoolTest, SpillsAQueueThatIsHalfFull) {
  Start({.queue_bytes = 8'000});
  receiver_.state = Receiver::State::kDown;
  const Gauge& bytes = metrics_.AddGauge("tributary_direct_queue_bytes", "");
  while (bytes.value() <= 4'000) Push();
  EXPECT_TRUE(disk_.names().empty());
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(disk_.names().size(), Records(pushed_));
  EXPECT_EQ(bytes.value(), 0);
  CheckLaw();
}

// Kills the collector at each operation on the disk. The next collector sends each sample and event that was in the
// spool, and the loss that it reports for the killed one is right. The receiver accepts and forgets to answer
// meanwhile.
TEST_F(SenderSpoolTest, SurvivesAKillAtEachOperation) {
  bool was_killed = true;
  for (uint64_t kill = 0; was_killed; ++kill) {
    SCOPED_TRACE(kill);
    sender_.reset();
    disk_ = intake::FakeSpoolStorage(kill);
    receiver_ = {};
    receiver_.is_dead = [this] { return disk_.dead(); };
    pushed_ = {};
    const uint64_t repeated_before = Repeated();
    Start({});
    disk_.KillAfter(kill);
    const std::array states = {Receiver::State::kLosesAnswers, Receiver::State::kDown, Receiver::State::kUp,
                               Receiver::State::kLosesAnswers, Receiver::State::kUp};
    for (const Receiver::State state : states) {
      receiver_.state = state;
      for (int i = 0; i < 2 && !disk_.dead(); ++i) {
        Push();
        Run(4 * kNsPerSecond);
      }
    }
    was_killed = disk_.dead();
    if (!was_killed) sender_->Flush(MonotonicNs{INT64_MAX});
    const SampleCounts pinned = pinned_;
    sender_.reset();
    disk_.Restart();
    receiver_.state = Receiver::State::kUp;
    Start({.session = {4}});
    const SampleCounts lost = was_killed ? pushed_ - pinned - found_ : SampleCounts();
    Run(kNsPerMinute);
    EXPECT_TRUE(disk_.names().empty());
    const BatchSender::Totals totals = sender_->totals();
    EXPECT_TRUE(totals.earlier_waiting.empty());
    EXPECT_LE(Records(totals.earlier_lost), 1u);  // the request that was being written
    const uint64_t arrived = receiver_.accepted.size();
    const uint64_t counted = arrived + Records(lost) + Records(totals.earlier_lost);
    // If the kill comes between an answer and its note in the pins, the request counts as lost, too.
    EXPECT_GE(counted, Records(pushed_));
    EXPECT_LE(counted, Records(pushed_) + 1);
    // What waited in memory is at most what was pushed last.
    EXPECT_LE(Records(lost), 4u);
    // Each request that arrived twice was counted. A mark that was written before a kill counts although nothing was
    // sent.
    EXPECT_GE(Repeated() - repeated_before, receiver_.requests - arrived);
    EXPECT_LE(Repeated() - repeated_before, receiver_.requests - arrived + 1);
    ASSERT_LT(kill, 1000u);
  }
}

}  // namespace
}  // namespace tributary
