#include "cli/text.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/status.h"
#include "cli/cli_data_testing.h"
#include "cli/commands.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

TEST(Text, FormatsNumbers) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1'234'567), "1,234,567");
  EXPECT_EQ(FormatNs(1'500), "1.5 us");
  EXPECT_EQ(FormatValue(1'500, "nanoseconds"), "1.5 us");
  EXPECT_EQ(FormatValue(2048, "bytes"), "2.0 KiB");
  EXPECT_EQ(FormatValue(1'234, "obj\nects"), "1,234 obj\\x0aects");
  EXPECT_EQ(MeasureTitle({}), "CPU time");
  EXPECT_EQ(FormatValue(7, std::string(64, 'u')), "7 " + std::string(31, 'u') + "…");
  EXPECT_EQ(MeasureTitle({.type = "alloc_space", .unit = "bytes"}), "alloc_space");
  EXPECT_EQ(MeasureTitle({.type = "inuse_space", .unit = "bytes", .is_gauge = true}), "inuse_space on average");
  EXPECT_EQ(MeasureTitle({.type = "cpu", .unit = "cycles"}), "cpu") << "no time";
  EXPECT_EQ(MeasureTitle({.type = "off_cpu"}), "time off the CPU");
  EXPECT_EQ(FormatNs(45'000'000), "45.0 ms");
  EXPECT_EQ(FormatNs(12'340'000'000), "12.34 s");
  EXPECT_EQ(FormatNs(125'000'000'000), "2 min 05 s");
  EXPECT_EQ(FormatNs(3'720'000'000'000), "1 h 02 min");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatPercent(1, 3), "33.33%");
  EXPECT_EQ(FormatPercent(1, 0), "-");
}

TEST(Text, FormatsRatesByTheUnit) {
  EXPECT_EQ(FormatRate(1.84e9, {}), "1.84") << "cores";
  EXPECT_EQ(FormatRate(1.84e9, {.type = "off_cpu"}), "1.84 s/s");
  const Measure bytes{.type = "alloc_space", .unit = "bytes"};
  EXPECT_EQ(FormatRate(3 << 20, bytes), "3.0 MiB/s");
  EXPECT_EQ(FormatRate(0.5, bytes), "0.5 B/s");
  EXPECT_EQ(FormatRate(3 << 20, {.type = "inuse_space", .unit = "bytes", .is_gauge = true}), "3.0 MiB");
  const Measure objects{.type = "alloc_objects", .unit = "obj\nects"};
  EXPECT_EQ(FormatRate(1'234.4, objects), "1,234 obj\\x0aects/s");
  EXPECT_EQ(FormatRate(0.0125, objects), "0.0125 obj\\x0aects/s");
}

TEST(Text, CutsByLetters) {
  EXPECT_EQ(CutToWidth("short", 5), "short");
  EXPECT_EQ(CutToWidth("longer", 5), "long…");
  EXPECT_EQ(CutToWidth("gr\xc3\xbc\xc3\x9f"
                       "en",
                       4),
            "gr\xc3\xbc…");
  EXPECT_EQ(CutToWidth("x", 0), "");
}

TEST(Table, AlignsByLetters) {
  EXPECT_EQ(WriteTable({"A", "NUMBER"}, {false, true}, {{"\xc3\xbc", "1"}, {"long", "1,000"}}),
            "A     NUMBER\n\xc3\xbc          1\nlong   1,000\n");
}

TEST(StatusCommand, ShowsTheCountsPerNodeAndTheHealthOfStacks) {
  EXPECT_EQ(WriteStatus(*ParseStatus(testing::kStatusJson), ParseStackHealth(testing::kStackHealthJson)),
            "NODE   STATE           RATE  CAPTURED  STORED  IN FLIGHT  LOST                              WIRE\n"
            "web-1  connected  19 Hz x 2     1,140   1,100          5  35 (ring_full 30, stack_error 5)  5.4 KiB\n"
            "total                           1,140   1,100          5  35 (ring_full 30, stack_error 5)  5.4 KiB\n"
            "\nrefused, cut or delayed since the reducer started (docs/limits.md explains the reasons)\n"
            "NODE   REASON      AMOUNT\n"
            "web-1  trie_quota   1,200\n"
            "\nstacks: complete 90.91%, unknown 9.09%\n"
            "last 5 minutes: 94.73% complete (without kernel_only stacks); 1,000 samples: complete 90.00%, kernel_only "
            "5.00%, "
            "no_table 4.00%, frame_pointer_lost 1.00%\n"
            "\nincomplete stacks, by the executable in which the stack walk stopped\n"
            "SAMPLES  SHARE  EXECUTABLE  WHY                                IN\n"
            "     45  4.50%  libold.so   no_table 40, frame_pointer_lost 5  server, ba\\x07tch\n"
            "      5  0.50%  [unmapped]  frame_pointer_lost 5\n"
            "and 3 more executables: see Stack health on the reducer's web page\n"
            "\n"
            "reducer 0.1.0: up 12.00 s, CPU 0.5 s, memory 50.0 MiB, disk 1.0 MiB, 1 shards, 12 symbol tables\n");
}

TEST(StatusCommand, ExplainsUnknownRecentHealth) {
  StatusAnswer status = *ParseStatus(testing::kStatusJson);
  EXPECT_NE(WriteStatus(status, Error(absl::StatusCode::kNotFound, "there is no such path"))
                .find("last 5 minutes: there is no such path\n"),
            std::string::npos);
  EXPECT_NE(WriteStatus(status, StackHealthAnswer()).find("last 5 minutes: no stacks yet\n"), std::string::npos);
}

TEST(StatusCommand, ShowsTheCountsOfEachSampleType) {
  const StatusAnswer status =
      *ParseStatus(R"({"nodes": [], "total": {"captured": 50, "stored": 44, "in_flight": 1, "types": [
    {"name": "cpu", "unit": "nanoseconds", "captured": 40, "stored": 39, "in_flight": 1, "lost": {}},
    {"name": "al\u0007loc", "unit": "bytes", "captured": 10, "stored": 5, "in_flight": 0, "lost": {"ring_full": 5}}]}})");
  EXPECT_NE(WriteStatus(status, StackHealthAnswer())
                .find("\nSAMPLE TYPE  UNIT         CAPTURED  STORED  IN FLIGHT  LOST\n"
                      "cpu          nanoseconds        40      39          1  0\n"
                      "al\\x07loc    bytes              10       5          0  5 (ring_full 5)\n"
                      "\nstacks: "),
            std::string::npos)
      << WriteStatus(status, StackHealthAnswer());
}

// Nothing went wrong with samples of containers that opted out.
TEST(StatusCommand, ShowsOptedOutSamplesApartFromLosses) {
  const StatusAnswer status = *ParseStatus(R"({"nodes": [], "total": {"captured": 1250, "stored": 0, "in_flight": 0,
    "lost": {"opted_out": 1250}}})");
  EXPECT_EQ(status.total.TotalLost(), 0u);
  EXPECT_EQ(status.total.OptedOut(), 1250u);
  EXPECT_NE(WriteStatus(status, StackHealthAnswer()).find("  0; opted out: 1,250  0 B\n"), std::string::npos)
      << WriteStatus(status, StackHealthAnswer());
}

TEST(StatusCommand, ShowsDamage) {
  const StatusAnswer status = *ParseStatus(R"({"total": {}, "nodes": [], "damage": [
    {"shard": 3, "kind": "samples", "count": 1200, "reason": "stored samples are \u0007corrupt"}]})");
  EXPECT_NE(WriteStatus(status, StackHealthAnswer())
                .find("docs/store.md explains what happens)\n"
                      "SHARD  KIND     COUNT  FIRST REASON\n"
                      "    3  samples  1,200  stored samples are \\x07corrupt\n"
                      "\nstacks: "),
            std::string::npos)
      << WriteStatus(status, StackHealthAnswer());
}

TEST(StatusCommand, ShowsClusters) {
  setenv("TZ", "UTC", 1);
  StatusAnswer status = *ParseStatus(testing::kStatusJson);
  EXPECT_TRUE(status.clusters.empty()) << "an older reducer says nothing of them";
  status = *ParseStatus(R"({"total": {}, "nodes": [], "clusters": [
    {"id": "cluster/prod", "connected": true, "entities": 12345, "last_told": 1763700131000},
    {"id": "cluster/\u0007", "connected": false, "entities": 0, "last_told": 0}]})");
  EXPECT_NE(WriteStatus(status, StackHealthAnswer())
                .find("\nCLUSTER       STATE      ENTITIES  LAST UPDATE\n"
                      "cluster/prod  connected    12,345  2025-11-21 04:42:11\n"
                      "cluster/\\x07  gone              0  none since the reducer started\n"
                      "\nstacks: "),
            std::string::npos)
      << WriteStatus(status, StackHealthAnswer());
  EXPECT_FALSE(ParseStatus(R"({"total": {}, "nodes": [], "clusters": 3})").ok());
}

TEST(TopCommand, ShowsSharesAndEscapesNames) {
  EXPECT_EQ(WriteTop(*ParseTop(testing::kTopJson)),
            "1.00 s CPU time in 100 samples\n\n"
            "  SELF   TOTAL  SELF TIME  FUNCTION        EXECUTABLE\n"
            "60.00%  60.00%   600.0 ms  spin            truth\n"
            "30.00%  90.00%   300.0 ms  do_\\x07syscall  [kernel]\n");
  EXPECT_EQ(WriteTop(TopAnswer()), "no samples match\n");
}

}  // namespace
}  // namespace tributary::cli
