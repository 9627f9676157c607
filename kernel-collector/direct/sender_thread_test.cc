// Tests a BatchSender on the thread that it has in DirectOutlet.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "kernel-collector/direct/batch_sender.h"
#include "kernel-collector/direct/direct_testing.h"
#include "otlp/pass_thread.h"

namespace tributary {
namespace {

// A receiver that can hang until Cancel.
class HangingSender : public otlp::ProfilesSender {
 public:
  otlp::SendResult Send(const otlp::ProfilesRequest&, const otlp::RequestIdentity&, int64_t) override {
    std::unique_lock lock(mutex_);
    ++calls_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !hangs_ || cancelled_; });
    otlp::SendResult result;
    if (cancelled_) {
      result = {otlp::CancelledCall()};
      result.in_doubt = true;
    }
    return result;
  }
  void Cancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }
  void SetHangs(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }
  void AwaitCall() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return calls_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false, cancelled_ = false;
  int calls_ = 0;
};

class SenderThreadTest : public testing::Test {
 protected:
  SenderThreadTest() {
    auto receiver = std::make_unique<HangingSender>();
    receiver_ = receiver.get();
    thread_ = std::make_unique<otlp::PassThread<BatchSender>>(std::make_unique<BatchSender>(
        BatchSender::Options{.names = false}, BatchSender::Receiver{.samples = std::move(receiver)}, nullptr,
        BatchSender::Callbacks{.need_symbols = [](const ExecutableId&) {}, .progressed = [] {}}, Clock::Real(),
        metrics_));
  }
  void Push() {
    batches_.Add("prog", 0x2010);
    thread_->work().Push(CopySamples(batches_.Take(), [](const Process&, const Dictionary&) { return Attributes(); }));
    thread_->Wake();
  }
  void Flush(MonotonicNs deadline) {
    thread_->Flush(deadline, [this] {
      const std::lock_guard lock(mutex_);
      is_done_ = true;
      done_.notify_all();
    });
  }
  void AwaitDone() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return is_done_; });
  }

  Metrics metrics_;
  TestBatches batches_;
  HangingSender* receiver_ = nullptr;
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  std::unique_ptr<otlp::PassThread<BatchSender>> thread_;
};

TEST_F(SenderThreadTest, SendsWhatIsPushed) {
  thread_->Start();
  Push();
  receiver_->AwaitCall();
  Push();
  Flush(MonotonicNs{INT64_MAX});
  AwaitDone();
  EXPECT_EQ(thread_->work().totals().sent.total(), 2u);
}

TEST_F(SenderThreadTest, CancelEndsAFlushThatHangs) {
  receiver_->SetHangs(true);
  thread_->Start();
  Push();
  receiver_->AwaitCall();
  Push();
  Flush(MonotonicNs{INT64_MAX});
  thread_->work().Cancel();
  AwaitDone();
  EXPECT_EQ(thread_->work().totals().lost.LostFor(LossReason::kInDoubt).total(), 1u);
  EXPECT_EQ(thread_->work().totals().lost.LostFor(LossReason::kShutdown).total(), 1u);
}

TEST_F(SenderThreadTest, TheDestructorDoesNotWaitForTheReceiver) {
  receiver_->SetHangs(true);
  thread_->Start();
  Push();
  receiver_->AwaitCall();
  thread_.reset();
}

TEST_F(SenderThreadTest, MayBeDestroyedBeforeItStarts) { thread_.reset(); }

}  // namespace
}  // namespace tributary
