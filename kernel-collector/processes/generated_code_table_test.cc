#include "kernel-collector/processes/generated_code_table.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr uint64_t kAt = 0xffffffffc0100000;

class GeneratedCodeTableTest : public testing::Test {
 protected:
  void Add(uint64_t begin, uint64_t size, std::string_view name, int64_t time) {
    table.Add({begin, begin + size, "bpf", name}, MonotonicNs{time});
  }
  void Remove(uint64_t begin, uint64_t size, std::string_view name, int64_t time) {
    table.Remove({begin, begin + size, "bpf", name}, MonotonicNs{time});
  }
  void Merge(std::vector<GeneratedCode> listed, int64_t read_at) { table.Merge(listed, MonotonicNs{read_at}); }
  static GeneratedCode Listed(uint64_t begin, uint64_t size, std::string name) {
    return {.begin = begin, .end = begin + size, .owner = "bpf", .name = std::move(name)};
  }
  // Returns the function's name; "": none; with "?": unsure.
  std::string At(uint64_t address, int64_t time) const {
    auto found = table.Find(address, MonotonicNs{time});
    return found ? found->file->only_function + (found->unsure ? "?" : "") : "";
  }

  Metrics metrics;
  GeneratedCodeTable table{metrics};
};

TEST_F(GeneratedCodeTableTest, KnowsCodeSinceItsEventUpToItsEnd) {
  Add(kAt, 0x80, "a", 100);
  EXPECT_EQ(At(kAt, 99), "");
  EXPECT_EQ(At(kAt, 100), "a");
  EXPECT_EQ(At(kAt + 0x7f, 100), "a");
  EXPECT_EQ(At(kAt + 0x80, 100), "");
  EXPECT_EQ(At(kAt - 1, 100), "");
  EXPECT_EQ(table.Find(kAt + 8, MonotonicNs{100})->offset, 8u);
}

TEST_F(GeneratedCodeTableTest, TheSameNameIsTheSameExecutableAtEveryAddress) {
  Add(kAt, 0x80, "bpf_prog_1_x", 1);
  Add(kAt + 0x1000, 0x90, "bpf_prog_1_x", 2);
  Add(kAt + 0x2000, 0x80, "bpf_prog_2_x", 3);
  const auto a = table.Find(kAt, MonotonicNs{9})->file, b = table.Find(kAt + 0x1000, MonotonicNs{9})->file;
  EXPECT_TRUE(a->id.known());
  EXPECT_EQ(a->id, b->id);
  EXPECT_NE(a->id, table.Find(kAt + 0x2000, MonotonicNs{9})->file->id);
  EXPECT_EQ(a->path, "[bpf] bpf_prog_1_x");
}

TEST_F(GeneratedCodeTableTest, DistinguishesCodeAtReusedAddresses) {
  Add(kAt, 0x80, "a", 100);
  Remove(kAt, 0x80, "a", 200);
  EXPECT_EQ(At(kAt, 250), "a");  // still running when its removal event was written
  Add(kAt + 0x40, 0x80, "b", 300);
  EXPECT_EQ(At(kAt + 0x40, 299), "a");
  EXPECT_EQ(At(kAt + 0x40, 300), "b");
  EXPECT_EQ(At(kAt, 299), "a");
  EXPECT_EQ(At(kAt, 300), "");
  Remove(kAt + 0x40, 0x80, "b", 400);
  Add(kAt, 0x80, "a", 500);
  EXPECT_EQ(At(kAt + 0x40, 250), "a");
  EXPECT_EQ(At(kAt + 0x40, 450), "b");
  EXPECT_EQ(At(kAt + 0x40, 500), "a");
}

TEST_F(GeneratedCodeTableTest, ForgetsRemovedCodeLater) {
  Add(kAt, 0x80, "a", 100);
  Remove(kAt, 0x80, "other", 150);  // of unknown code
  Remove(kAt, 0x80, "a", 200);
  table.DropOld(MonotonicNs{200 + GeneratedCodeTable::kGraceNs});
  EXPECT_EQ(At(kAt, 150), "a");
  table.DropOld(MonotonicNs{201 + GeneratedCodeTable::kGraceNs});
  EXPECT_EQ(At(kAt, 150), "");
  EXPECT_EQ(table.size(), 0u);
}

TEST_F(GeneratedCodeTableTest, TakesEarlierCodeFromKallsyms) {
  Merge({Listed(kAt, 0x1000, "a"), Listed(kAt + 0x1000, 0x1000, "b")}, 100);
  EXPECT_EQ(At(kAt + 0xfff, 1), "a");
  EXPECT_EQ(At(kAt + 0x1000, 1), "b");
  // The end of "a" is only derived from its neighbour: other code may come between.
  Add(kAt + 0x800, 0x80, "c", 200);
  EXPECT_EQ(At(kAt + 0x7ff, 200), "a");
  EXPECT_EQ(At(kAt + 0x800, 200), "c");
  EXPECT_EQ(At(kAt + 0x880, 200), "");
  // The event with the code's length may be read after kallsyms.
  Add(kAt, 0x100, "a", 90);
  EXPECT_EQ(At(kAt + 0xff, 1), "a");
  EXPECT_EQ(At(kAt + 0x100, 200), "");
}

TEST_F(GeneratedCodeTableTest, AnEventYoungerThanTheListWins) {
  Add(kAt, 0x80, "new", 150);
  Merge({Listed(kAt, 0x1000, "old"), Listed(kAt + 0x1000, 0x1000, "b")}, 100);
  EXPECT_EQ(At(kAt, 150), "new");
  EXPECT_EQ(At(kAt + 0x1000, 150), "b");
}

TEST_F(GeneratedCodeTableTest, KnowsCodeWithoutEventsSinceThePreviousMerge) {
  Merge({}, 100);
  Merge({Listed(kAt, 0x1000, "quiet")}, 200);
  EXPECT_EQ(At(kAt, 99), "");
  EXPECT_EQ(At(kAt, 150), "quiet");
}

TEST_F(GeneratedCodeTableTest, IsUnsureAfterALossUntilKallsymsConfirms) {
  Merge({}, 50);
  Add(kAt, 0x80, "stays", 100);
  Add(kAt + 0x1000, 0x80, "went", 100);
  Add(kAt + 0x2000, 0x80, "replaced", 100);
  table.NoteLoss();
  EXPECT_EQ(At(kAt, 150), "stays?");
  Merge({Listed(kAt, 0x80, "stays"), Listed(kAt + 0x2000, 0x80, "other")}, 200);
  EXPECT_EQ(At(kAt, 150), "stays");
  EXPECT_EQ(At(kAt + 0x1000, 150), "");
  // The time of the replacement is unknown.
  EXPECT_EQ(At(kAt + 0x2000, 150), "");
  EXPECT_EQ(At(kAt + 0x2000, 200), "other");
}

TEST_F(GeneratedCodeTableTest, KallsymsRevokesARemovalAfterALoss) {
  Add(kAt, 0x80, "a", 100);
  Remove(kAt, 0x80, "a", 150);
  table.NoteLoss();
  Merge({Listed(kAt, 0x80, "a")}, 200);
  table.DropOld(MonotonicNs{300 + GeneratedCodeTable::kGraceNs});
  EXPECT_EQ(At(kAt, 300), "a");
}

TEST_F(GeneratedCodeTableTest, IsCapped) {
  for (uint64_t i = 0; i < GeneratedCodeTable::kLiveMax + 10; ++i) Add(kAt + i * 16, 16, "p" + std::to_string(i), 1);
  EXPECT_EQ(table.size(), GeneratedCodeTable::kLiveMax);
  EXPECT_EQ(metrics.AddCounter("tributary_collector_generated_code_refused_total", "").value(), 10u);
  EXPECT_EQ(At(kAt, 1), "p0");
}

TEST_F(GeneratedCodeTableTest, HandlesTheHighestAddresses) {
  Merge({Listed(~uint64_t{0} - 0x100, 0x100, "last")}, 1);
  EXPECT_EQ(At(~uint64_t{0} - 1, 1), "last");
  EXPECT_EQ(At(~uint64_t{0}, 1), "");
  EXPECT_EQ(At(0, 1), "");
}

}  // namespace
}  // namespace tributary
