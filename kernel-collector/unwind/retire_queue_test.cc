#include "kernel-collector/unwind/retire_queue.h"

#include <gtest/gtest.h>

#include "kernel-collector/probes/fake_unwind_maps_testing.h"
#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

class RetireQueueTest : public testing::Test {
 protected:
  void Retire(uint64_t cost) {
    queue->Retire(cost, [this] { ++freed; });
  }

  FakeUnwindMaps maps;
  FakeExecutor executor;
  std::unique_ptr<RetireQueue> queue = std::make_unique<RetireQueue>(maps, executor, /*batch=*/10);
  int freed = 0;
};

TEST_F(RetireQueueTest, ManyShareAGrace) {
  Retire(4);
  Retire(4);
  EXPECT_EQ(executor.RunAll(), 0u);
  EXPECT_FALSE(queue->waiting());
  Retire(4);
  EXPECT_TRUE(queue->waiting());
  EXPECT_EQ(freed, 0);
  executor.RunAll();
  EXPECT_EQ(freed, 3);
  EXPECT_EQ(maps.graces, 1);
  EXPECT_TRUE(queue->empty());
}

TEST_F(RetireQueueTest, WaitsAgainForRetirementsDuringAGrace) {
  Retire(1);
  queue->Flush();
  Retire(1);
  queue->Flush();
  EXPECT_EQ(executor.waiting(), 1u);
  executor.RunAll();
  EXPECT_EQ(freed, 2);
  EXPECT_EQ(maps.graces, 2);
}

TEST_F(RetireQueueTest, AFullWorkerOnlyDelays) {
  executor.capacity = 0;
  Retire(20);
  queue->Flush();
  EXPECT_TRUE(queue->waiting());
  executor.capacity = 10;
  queue->Retry();
  executor.RunAll();
  EXPECT_EQ(freed, 1);
}

TEST_F(RetireQueueTest, FreesNothingAfterItsDestruction) {
  Retire(20);
  queue.reset();
  executor.RunAll();
  EXPECT_EQ(freed, 0);
}

class NoGrace : public FakeUnwindMaps {
 public:
  absl::Status WaitGrace() override { return ok ? absl::OkStatus() : absl::InternalError("no"); }
  bool ok = false;
};

TEST(RetireQueue, FreesNothingAfterAFailedGrace) {
  NoGrace maps;
  FakeExecutor executor;
  RetireQueue queue(maps, executor, 10);
  int freed = 0;
  queue.Retire(10, [&] { ++freed; });
  executor.RunAll();
  EXPECT_EQ(freed, 0);
  maps.ok = true;
  queue.Retry();
  executor.RunAll();
  EXPECT_EQ(freed, 1);
}

}  // namespace
}  // namespace tributary
