#include "reducer/ingest/old_day_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace tributary::ingest {
namespace {

using store::Day;

constexpr int64_t kTurn = 100;

class OldDayTurnsTest : public testing::Test {
 protected:
  int64_t Wait(std::initializer_list<int32_t> numbers) {
    std::vector<Day> days;
    for (const int32_t number : numbers) days.emplace_back(number);
    return turns_.Take(days, now_);
  }

  MonotonicNs now_{1'000'000};
  OldDayTurns turns_{kTurn};
};

TEST_F(OldDayTurnsTest, ADayAndTheNextHaveTheirTurnTogether) {
  EXPECT_EQ(Wait({10}), 0);
  EXPECT_EQ(Wait({11}), 0);
  EXPECT_EQ(Wait({11, 10}), 0);
  EXPECT_EQ(Wait({9}), kTurn);
  EXPECT_EQ(Wait({12}), 2 * kTurn);
}

TEST_F(OldDayTurnsTest, ATurnEndsOnlyIfAnotherDayWaits) {
  EXPECT_EQ(Wait({10}), 0);
  now_.value += 10 * kTurn;
  EXPECT_EQ(Wait({11}), 0);
  EXPECT_EQ(Wait({20}), 0) << "nothing waits, and the turn has lasted long enough";
  EXPECT_EQ(Wait({10}), kTurn);
}

// A node that was away for long sends one day after another, with a batch around each midnight.
TEST_F(OldDayTurnsTest, OneNodeWaitsForAtMostOneTurnPerDay) {
  int64_t waited = 0;
  for (int32_t day = 0; day < 30; ++day) {
    for (const int32_t last : {day, day + 1}) {
      const int64_t wait = Wait({day, last});
      waited += wait;
      now_.value += wait;
      EXPECT_EQ(Wait({day, last}), 0) << day;
    }
  }
  EXPECT_EQ(waited, 29 * kTurn) << "the first two days have a common turn";
}

TEST_F(OldDayTurnsTest, ABatchAroundMidnightGetsThrough) {
  EXPECT_EQ(Wait({10}), 0);
  EXPECT_EQ(Wait({11, 12}), kTurn);
  now_.value += kTurn;
  EXPECT_EQ(Wait({11, 12}), 0);
}

// Any number of hostile nodes asks for all other days all the time.
TEST_F(OldDayTurnsTest, EachDayGetsItsTurnBesideHostileNodes) {
  constexpr int32_t kDays = 7;
  int64_t since = 0, longest = 0, uses = 0;
  for (int second = 0; second < 5'000; ++second) {
    now_.value += 10;
    for (int ask = 0; ask < 20; ++ask) {
      for (int32_t day = 0; day < kDays; ++day) {
        if (day != 3) Wait({day});
      }
      Wait({0, 1, 2, 3, 4, 5, 6});
    }
    if (Wait({3}) == 0) {
      ++uses;
      since = second;
    }
    longest = std::max<int64_t>(longest, second - since);
  }
  constexpr int64_t kManyDays = 4;  // turns for a batch with 7 days
  EXPECT_LE(longest * 10, (kDays + kManyDays) * kTurn);
  EXPECT_GE(uses, 5'000 / (kDays + kManyDays));
}

// Counts how often the days in use change: each change costs the writer the load of a trie.
TEST_F(OldDayTurnsTest, BoundsTheTriesThatAreLoaded) {
  int64_t loads = 0;
  std::vector<int32_t> kept;
  const auto use = [&](std::initializer_list<int32_t> days) {
    if (Wait(days) != 0) return;
    for (const int32_t day : days) {
      if (std::erase(kept, day) == 0) ++loads;
      kept.push_back(day);
      if (kept.size() > 2) kept.erase(kept.begin());
    }
  };
  constexpr int64_t kTurns = 100;
  for (int64_t i = 0; i < kTurns * kTurn; ++i) {
    now_.value += 1;
    for (int32_t day = 0; day < 7; ++day) use({day});
    use({0, 2, 4, 6, 8});
    use({5, 6});
  }
  EXPECT_LE(loads, 2 * kTurns + 2);
  EXPECT_GT(loads, kTurns);
}

TEST_F(OldDayTurnsTest, ABatchOfManyDaysHasATurnOfItsOwn) {
  EXPECT_EQ(Wait({10}), 0);
  EXPECT_EQ(Wait({10, 20, 30}), kTurn);
  EXPECT_EQ(Wait({40, 50, 60, 70, 80}), kTurn);
  EXPECT_EQ(Wait({12}), 2 * kTurn);
  now_.value += kTurn;
  EXPECT_EQ(Wait({40, 50, 60, 70, 80}), 0);
  EXPECT_EQ(Wait({12}), 3 * kTurn) << "five days take the time of three turns";
  EXPECT_EQ(Wait({10, 20, 30}), 4 * kTurn) << "only one batch per turn";
  now_.value += 3 * kTurn;
  EXPECT_EQ(Wait({12}), 0);
  now_.value += kTurn;
  EXPECT_EQ(Wait({10, 20, 30}), 0);
}

TEST_F(OldDayTurnsTest, NodesThatHaveGoneDelayNoDayForLong) {
  EXPECT_EQ(Wait({10}), 0);
  EXPECT_EQ(Wait({20}), kTurn);
  EXPECT_EQ(Wait({30}), 2 * kTurn);
  now_.value += 2 * kTurn;
  EXPECT_EQ(Wait({30}), 0);
  now_.value += 10 * kTurn;
  EXPECT_EQ(Wait({20}), 0);
}

TEST_F(OldDayTurnsTest, CanBeSwitchedOff) {
  OldDayTurns off(0);
  for (int32_t day = 0; day < 9; ++day) EXPECT_EQ(off.Take(std::vector<Day>{Day{day}}, now_), 0);
}

}  // namespace
}  // namespace tributary::ingest
