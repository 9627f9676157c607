#include "otlp/pass_thread.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <vector>

namespace tributary::otlp {
namespace {

constexpr int64_t kLongNs = 3600 * kNsPerSecond;

// What a FakeWork has done. It outlives the work.
class Record {
 public:
  void AddPass() {
    Change([this] { ++passes_; });
  }
  void AddFlush(MonotonicNs deadline) {
    Change([&] { flushes_.push_back(deadline.value); });
  }
  void AddDone() {
    Change([this] { ++done_; });
  }
  void Cancel() {
    Change([this] { cancelled_ = true; });
  }
  void SetHangs() {
    Change([this] { hangs_ = true; });
  }
  void HangUntilCancel() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !hangs_ || cancelled_; });
  }
  void AwaitPasses(int passes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return passes_ >= passes; });
  }
  void AwaitDone() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ > 0; });
  }
  // Read these after the end of the thread.
  int done() const { return done_; }
  bool cancelled() const { return cancelled_; }
  const std::vector<int64_t>& flushes() const { return flushes_; }

 private:
  template <typename Function>
  void Change(Function change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int passes_ = 0, done_ = 0;
  bool hangs_ = false, cancelled_ = false;
  std::vector<int64_t> flushes_;
};

// A pass hangs until Cancel if the record says so.
class FakeWork {
 public:
  explicit FakeWork(Record& record) : record_(record) {}
  int64_t RunOnce() {
    record_.AddPass();
    record_.HangUntilCancel();
    return kLongNs;
  }
  void Flush(MonotonicNs deadline) { record_.AddFlush(deadline); }
  void Cancel() { record_.Cancel(); }

 private:
  Record& record_;
};

class PassThreadTest : public ::testing::Test {
 protected:
  void Flush(int64_t deadline) {
    thread_->Flush(MonotonicNs{deadline}, [this] { record_.AddDone(); });
  }

  Record record_;
  std::unique_ptr<PassThread<FakeWork>> thread_ =
      std::make_unique<PassThread<FakeWork>>(std::make_unique<FakeWork>(record_));
};

TEST_F(PassThreadTest, WakeBeginsAPassAtOnce) {
  thread_->Start();
  record_.AwaitPasses(1);
  thread_->Wake();
  record_.AwaitPasses(2);
  thread_.reset();
}

TEST_F(PassThreadTest, AWakeDuringAPassIsNotForgotten) {
  record_.SetHangs();
  thread_->Start();
  record_.AwaitPasses(1);
  thread_->Wake();
  thread_->work().Cancel();
  record_.AwaitPasses(2);
  thread_.reset();
}

TEST_F(PassThreadTest, OnlyTheFirstFlushHasAnEffect) {
  thread_->Start();
  Flush(5);
  Flush(6);
  record_.AwaitDone();
  Flush(7);
  thread_.reset();
  EXPECT_EQ(record_.flushes(), std::vector<int64_t>{5});
  EXPECT_EQ(record_.done(), 1);
}

TEST_F(PassThreadTest, FlushWaitsForThePass) {
  record_.SetHangs();
  thread_->Start();
  record_.AwaitPasses(1);
  Flush(5);
  EXPECT_EQ(record_.done(), 0) << "the pass hangs";
  thread_->work().Cancel();
  record_.AwaitDone();
  thread_.reset();
  EXPECT_EQ(record_.flushes(), std::vector<int64_t>{5});
}

TEST_F(PassThreadTest, TheDestructorCancelsThePass) {
  record_.SetHangs();
  thread_->Start();
  record_.AwaitPasses(1);
  thread_.reset();
  EXPECT_TRUE(record_.cancelled());
  EXPECT_EQ(record_.done(), 0);
}

TEST_F(PassThreadTest, MayBeDestroyedBeforeItStarts) {
  thread_.reset();
  EXPECT_FALSE(record_.cancelled());
  EXPECT_TRUE(record_.flushes().empty());
}

}  // namespace
}  // namespace tributary::otlp
