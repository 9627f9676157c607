#include "otlp/folded_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class FoldedStacksTest : public ::testing::Test {
 protected:
  FoldedStacksTest() { resource_ = builder_.AddResource({{"service.name", "s"}}); }

  MappingIndex Mapping(const std::string& path) {
    return builder_.AddMapping(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "\x01"), path);
  }
  LocationIndex Frame(const std::string& name, FrameKind kind = FrameKind::kNative) {
    return builder_.AddLocation(kind, MappingIndex(0), next_address_++, {{builder_.AddFunction(name, "", "")}});
  }
  // `frames` begin with the leaf.
  void Sample(const std::vector<LocationIndex>& frames, uint64_t value, uint32_t count = 1,
              TypeIndex type = ProfilesBuilder::kCpu) {
    builder_.AddSample({.resource = resource_,
                        .attributes = {},
                        .link = {},
                        .stack = builder_.AddStack(frames),
                        .type = type,
                        .time = UnixNs{1'700'000'000 * kNsPerSecond},
                        .value = value,
                        .count = count});
  }
  // Returns all lines of all types.
  std::string Lines() {
    const ProfilesRequestPtr request = builder_.Finish();
    FoldedLines lines(*request);
    std::string out;
    for (const FoldedStacks& stacks : FoldStacks(*request, std::vector{0})) {
      out += stacks.type + "/" + stacks.unit + " " + std::to_string(stacks.samples) + "\n";
      for (const FoldedStacks::Entry& entry : stacks.entries) fits_ &= lines.Append(entry, &out);
    }
    return out;
  }

  ProfilesBuilder builder_{{}};
  ResourceIndex resource_;
  uint64_t next_address_ = 0x1000;
  bool fits_ = true;
};

TEST_F(FoldedStacksTest, WritesTheOutermostFrameFirst) {
  const LocationIndex main = Frame("main"), work = Frame("work(int)");
  const LocationIndex kernel = Frame("do_syscall_64", FrameKind::kKernel);
  Sample({work, main}, 10);
  Sample({kernel, work, main}, 10);
  Sample({work, main}, 10);
  EXPECT_EQ(Lines(), "cpu/nanoseconds 3\nmain;work(int) 20\nmain;work(int);do_syscall_64_[k] 10\n");
  EXPECT_TRUE(fits_);
}

// A count above 16 has a profile of its own, with a value instead of time stamps. The sum is the same.
TEST_F(FoldedStacksTest, MultipliesCountsByTheirPeriod) {
  const LocationIndex main = Frame("main");
  Sample({main}, 10);
  Sample({main}, 50 * 11, 50);
  Sample({main}, 25, 2);  // 12 + 13
  EXPECT_EQ(Lines(), "cpu/nanoseconds 53\nmain 585\n");
}

TEST_F(FoldedStacksTest, AddsUpEachTypeInItsUnit) {
  const LocationIndex main = Frame("main"), work = Frame("work");
  const TypeIndex off_cpu = builder_.AddType({"off_cpu", "nanoseconds"});
  Sample({main}, 10);
  Sample({main}, 700, 1, off_cpu);
  Sample({main}, 70, 1, off_cpu);
  Sample({work}, 0, 1, off_cpu);
  EXPECT_EQ(Lines(), "cpu/nanoseconds 1\nmain 10\noff_cpu/nanoseconds 2\nmain 770\n");
}

TEST_F(FoldedStacksTest, CountsWithoutAPeriodAreNotMultiplied) {
  Sample({Frame("main")}, 10);
  const ProfilesRequestPtr request = builder_.Finish();
  auto* profile = request->mutable_resource_profiles(0)->mutable_scope_profiles(0)->mutable_profiles(0);
  profile->clear_period_type();
  const std::vector<FoldedStacks> stacks = FoldStacks(*request, std::vector{0});
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks[0].type, "samples");
  EXPECT_EQ(stacks[0].unit, "count");
  EXPECT_EQ(stacks[0].entries.at(0).value, 1u);
}

TEST_F(FoldedStacksTest, SumsDoNotOverflow) {
  const TypeIndex type = builder_.AddType({"off_cpu", "nanoseconds"});
  const LocationIndex main = Frame("main");
  for (int i = 0; i < 3; ++i) Sample({main}, INT64_MAX, 1, type);
  const ProfilesRequestPtr request = builder_.Finish();
  auto* profile = request->mutable_resource_profiles(0)->mutable_scope_profiles(0)->mutable_profiles(0);
  EXPECT_EQ(FoldStacks(*request, std::vector{0}).at(0).entries.at(0).value, UINT64_MAX);
  profile->mutable_samples(0)->set_values(0, INT64_MIN);
  EXPECT_EQ(FoldStacks(*request, std::vector{0}).at(0).entries.at(0).value, UINT64_MAX - 1);
}

TEST_F(FoldedStacksTest, MarksInlinedFunctions) {
  const LocationIndex at =
      builder_.AddLocation(FrameKind::kNative, MappingIndex(0), 1,
                           {{builder_.AddFunction("inner", "", "")}, {builder_.AddFunction("outer", "", "")}});
  Sample({at, Frame("main")}, 1);
  EXPECT_EQ(Lines(), "cpu/nanoseconds 1\nmain;outer;inner_[i] 1\n");
}

TEST_F(FoldedStacksTest, NamesFramesWithoutAName) {
  const LocationIndex native = builder_.AddLocation(FrameKind::kNative, Mapping("/usr/lib/libm.so.6"), 0x1234, {});
  const LocationIndex kernel = builder_.AddLocation(FrameKind::kKernel, MappingIndex(0), 0x10, {});
  const LocationIndex unknown = builder_.AddLocation(FrameKind::kUnknown, MappingIndex(0), 0x99, {});
  Sample({kernel, native, unknown}, 1);
  Sample({}, 2);
  EXPECT_EQ(Lines(), "cpu/nanoseconds 2\n[unknown];libm.so.6+0x1234;[kernel]+0x10_[k] 1\n[no stack] 2\n");
}

// The value must be the only text behind the last space, and the names must not have separators.
TEST_F(FoldedStacksTest, EscapesNames) {
  Sample({Frame("<[u8; 32]>::f 7"), Frame("a\nb 99\r\x1b[2J\xff")}, 1);
  EXPECT_EQ(Lines(), "cpu/nanoseconds 1\na\\x0ab 99\\x0d\\x1b[2J\xef\xbf\xbd;<[u8\\x3b 32]>::f 7 1\n");
}

// Otherwise these two names would be equal.
TEST_F(FoldedStacksTest, EscapesBackslashes) {
  Sample({Frame("a;b"), Frame("a\\x3bb")}, 1);
  EXPECT_EQ(Lines(), "cpu/nanoseconds 1\na\\x5cx3bb;a\\x3bb 1\n");
}

TEST_F(FoldedStacksTest, CutsLongNamesAndLongLines) {
  const std::string long_name(5'000, 'n');
  Sample({Frame(long_name)}, 1);
  std::vector<LocationIndex> frames;
  for (int i = 0; i < 500; ++i) frames.push_back(Frame(std::to_string(i) + "-" + long_name));
  Sample(frames, 1);
  const std::string text = Lines();
  EXPECT_FALSE(fits_);
  EXPECT_THAT(text, StartsWith("cpu/nanoseconds 2\n" + std::string(FoldedLines::kNameBytesMax, 'n') + " 1\n[cut];"));
  EXPECT_THAT(text, HasSubstr(";0-nnn"));  // the leaf
  EXPECT_LE(text.size(), FoldedLines::kLineBytesMax + FoldedLines::kNameBytesMax + 100);
}

TEST_F(FoldedStacksTest, ReadsIndicesOutOfRangeAsNotSet) {
  Sample({Frame("main")}, 1);
  const ProfilesRequestPtr request = builder_.Finish();
  FoldedLines lines(*request);
  std::string out;
  EXPECT_TRUE(lines.Append({.stack = 77, .value = 1}, &out));
  EXPECT_TRUE(lines.Append({.stack = -1, .value = 2}, &out));
  request->mutable_dictionary()->mutable_stack_table(1)->set_location_indices(0, 99);
  EXPECT_TRUE(lines.Append({.stack = 1, .value = 3}, &out));
  EXPECT_EQ(out, "[no stack] 1\n[no stack] 2\n[unknown] 3\n");
}

}  // namespace
}  // namespace tributary::otlp
