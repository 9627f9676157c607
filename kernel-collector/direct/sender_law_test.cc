#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "kernel-collector/direct/batch_sender_testing.h"

namespace tributary {
namespace {

// Random pushes, failures, tables and times: the law holds at every step.
TEST_F(BatchSenderTest, TheLawHolds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    pushed_ = pushed_events_ = 0;
    std::mt19937_64 random(seed);
    Open({.queue_bytes_max = 6'000,
          .names = seed % 2 == 0,
          .sets_together = 1 + random() % 4,
          .together_wait_ns = static_cast<int64_t>(random() % (20 * kNsPerSecond)),
          .builder = {.bytes_soft = 3'000, .bytes_hard = 6'000}});
    for (int step = 0; step < 400; ++step) {
      switch (random() % 9) {
        case 0:
          Push(std::string(1, static_cast<char>('a' + random() % 4)), static_cast<int>(random() % 20));
          break;
        case 4:
          PushWithEvent(std::string(1, static_cast<char>('a' + random() % 4)));
          break;
        case 1:
          if (receiver_->script.empty()) {
            receiver_->script = {Failure(absl::StatusCode::kUnavailable, random() % 4 != 0)};
          }
          break;
        case 2:
          for (const ExecutableId& id : std::exchange(wanted_, {})) {
            if (random() % 2 == 0) sender_->AddSymbols(id, TableFor(id));
          }
          break;
        case 3:
          clock_.Advance(static_cast<int64_t>(random() % (10 * kNsPerSecond)));
          break;
        default:
          sender_->RunOnce();
      }
      CheckLaw();
    }
    sender_->Flush(MonotonicNs{INT64_MAX});
    EXPECT_TRUE(sender_->totals().waiting.empty());
    EXPECT_GT(Sent(), 0u);
    EXPECT_GT(sender_->totals().sent.events(), 0u);
    CheckLaw();
  }
}

}  // namespace
}  // namespace tributary
