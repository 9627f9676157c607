#include "kernel-collector/probes/predecessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tributary {
namespace {

std::array<uint8_t, 16> Id(uint8_t n) {
  std::array<uint8_t, 16> id{};
  id[15] = n;
  return id;
}

trib_session Owner(std::vector<uint64_t> attributed, uint8_t first_id = 1) {
  trib_session owner = {};
  for (size_t i = 0; i < attributed.size(); ++i) {
    owner.shares[i].session_id[15] = static_cast<uint8_t>(first_id + i);
    owner.shares[i].attributed[TRIB_TYPE_CPU] = attributed[i];
    owner.shares[i].asked = 1;
  }
  return owner;
}

Accounting Counters(uint64_t captured, uint64_t ring_full = 0) {
  Accounting counters{.captured = captured, .idle = 5};
  counters.lost[static_cast<size_t>(LossReason::kRingFull)] = ring_full;
  return counters;
}

TEST(Predecessor, ReturnsNothingWithoutCaptures) { EXPECT_FALSE(ToPredecessor(AddEnded(Owner({0}), Counters(0)))); }

TEST(Predecessor, TheSessionUsedLastComesFirst) {
  trib_session owner = Owner({100, 20, 3});
  owner.last_slot = 1;
  auto predecessor = ToPredecessor(AddEnded(owner, Counters(150, 7)));
  ASSERT_TRUE(predecessor);
  EXPECT_EQ(predecessor->accounting, Counters(150, 7));
  EXPECT_THAT(predecessor->shares, testing::ElementsAre(Predecessor::Share{Id(2), 20}, Predecessor::Share{Id(1), 100},
                                                        Predecessor::Share{Id(3), 3}));
  EXPECT_EQ(predecessor->unattributed(), 27u);
  EXPECT_FALSE(predecessor->stopped);
}

TEST(Predecessor, AddsUpDeathsBeforeTheFirstReport) {
  trib_session second = Owner({40}, 2);
  second.stopped = 1;
  second.ended = AddEnded(Owner({100}), Counters(130));
  auto both = ToPredecessor(AddEnded(second, Counters(50)));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->accounting.captured, 180u);
  EXPECT_EQ(both->accounting.idle, 10u);
  EXPECT_THAT(both->shares, testing::ElementsAre(Predecessor::Share{Id(2), 40}, Predecessor::Share{Id(1), 100}));
  EXPECT_EQ(both->unattributed(), 40u);
  EXPECT_FALSE(both->stopped) << "one of them was killed";
  // A third collector that died before it sampled changes nothing.
  trib_session third = Owner({});
  third.ended = AddEnded(second, Counters(50));
  EXPECT_EQ(ToPredecessor(AddEnded(third, Counters(0)))->accounting.captured, 180u);
}

TEST(Predecessor, CountsHandedOnSamplesAsCapturedByTheOwner) {
  trib_session owner = Owner({60});
  owner.ended = TakenOver(40);
  auto predecessor = ToPredecessor(AddEnded(owner, Counters(25)));
  ASSERT_TRUE(predecessor);
  EXPECT_EQ(predecessor->accounting.captured, 65u);
  EXPECT_EQ(predecessor->unattributed(), 5u);
  EXPECT_FALSE(predecessor->stopped);
  // A collector that captured nothing may have sent samples that another had left.
  EXPECT_EQ(ToPredecessor(AddEnded(owner, Counters(0)))->shares.size(), 1u);
}

TEST(Predecessor, StoppedWhenAllStopped) {
  trib_session first = Owner({1}), second = Owner({2}, 2);
  first.stopped = second.stopped = 1;
  second.ended = AddEnded(first, Counters(9));
  EXPECT_TRUE(ToPredecessor(second.ended)->stopped);
  EXPECT_TRUE(ToPredecessor(AddEnded(second, Counters(9)))->stopped);
}

TEST(Predecessor, DropsTheOldestShareWithItsAttributedSamples) {
  trib_session_ended ended = {};
  uint8_t id = 1;
  for (int life = 0; life < 6; ++life, id += 6) {
    trib_session owner = Owner({10, 10, 10, 10, 10, 10}, id);
    owner.ended = ended;
    ended = AddEnded(owner, Counters(66));
  }
  auto all = ToPredecessor(ended);
  EXPECT_EQ(all->shares.size(), size_t{TRIB_SESSION_ENDED_SHARES_MAX});
  EXPECT_EQ(all->shares.front().session_id, Id(31));
  EXPECT_EQ(all->accounting.captured, 6u * 66 - 40) << "four shares of 10 are gone";
  EXPECT_EQ(all->unattributed(), 6u * 6);
}

// Collectors that found no reducer, however many, do not evict the shares of sessions that a reducer may know.
TEST(Predecessor, DropsSessionsThatNoReducerCanKnow) {
  trib_session_ended ended = AddEnded(Owner({60}), Counters(100));
  for (uint8_t life = 2; life < 200; ++life) {
    trib_session owner = Owner({0}, life);
    owner.shares[0].asked = 0;
    owner.ended = ended;
    ended = AddEnded(owner, Counters(1));
  }
  EXPECT_THAT(ToPredecessor(ended)->shares, testing::ElementsAre(Predecessor::Share{Id(1), 60}));
  EXPECT_EQ(ToPredecessor(ended)->accounting.captured, 298u);
}

// The first session stays because the loss is counted in it. After a later session has sent something, that session may
// have reported the first one.
TEST(Predecessor, KeepsTheFirstSessionEvenIfNoReducerKnewIt) {
  trib_session alone = Owner({0});
  alone.shares[0].asked = 0;
  trib_session next = Owner({7}, 2);
  next.ended = AddEnded(alone, Counters(5));
  EXPECT_THAT(ToPredecessor(next.ended)->shares, testing::ElementsAre(Predecessor::Share{Id(1), 0}));
  trib_session third = Owner({8}, 3);
  third.ended = AddEnded(next, Counters(9));
  EXPECT_THAT(
      ToPredecessor(AddEnded(third, Counters(9)))->shares,
      testing::ElementsAre(Predecessor::Share{Id(3), 8}, Predecessor::Share{Id(2), 7}, Predecessor::Share{Id(1), 0}));
}

TEST(Predecessor, LimitsAttributedToCaptured) {
  auto predecessor = ToPredecessor(AddEnded(Owner({UINT64_MAX}), Counters(5)));
  EXPECT_EQ(predecessor->unattributed(), 0u);
  trib_session owner = Owner({1});
  owner.last_slot = UINT32_MAX;
  EXPECT_EQ(ToPredecessor(AddEnded(owner, Counters(5)))->shares.size(), 1u);
}

TEST(Predecessor, ADeadProcessHasNoStart) {
  EXPECT_TRUE(ProcessStartTicks("/proc", Pid{getpid()}));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(ProcessStartTicks("/proc", Pid{child})) << "not waited for yet";
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(ProcessStartTicks("/proc", Pid{child}));
}

TEST(Predecessor, StartIsReadBehindAnyName) {
  const std::string root = testing::TempDir() + "/predecessor_proc";
  std::filesystem::create_directories(root + "/7");
  std::ofstream(root + "/7/stat") << "7 (a) Z 1) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9";
  EXPECT_EQ(ProcessStartTicks(root, Pid{7}), 4242u);
  std::ofstream(root + "/7/stat") << "7 (a) S 1 7";
  EXPECT_FALSE(ProcessStartTicks(root, Pid{7}));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace tributary
