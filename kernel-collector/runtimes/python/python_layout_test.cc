#include "kernel-collector/runtimes/python/python_layout.h"

#include <gtest/gtest.h>

#include "elf/elf_format.h"
#include "kernel-collector/runtimes/python/python_layout_testing.h"

namespace tributary {
namespace {

TEST(PythonLayout, HasEverySupportedVersion) {
  for (int minor = PythonLayout::kMinorMin; minor <= PythonLayout::kMinorMax; ++minor) {
    const PythonLayout layout = testing::LayoutOf(minor);
    EXPECT_LE(layout.walk.frame_bytes, 128) << minor;
    EXPECT_LE(layout.walk.check_bytes, 96) << minor;
    EXPECT_EQ(layout.walk.check_bytes % 8, 0) << minor;
    EXPECT_GE(layout.code_first_line, layout.walk.check_first) << minor;
    EXPECT_GE(layout.code_name, layout.walk.check_first) << minor;
    EXPECT_EQ(layout.code_bytes, layout.walk.check_first + layout.walk.check_bytes) << minor;
  }
}

TEST(PythonLayout, RefusesOtherVersions) {
  for (int minor : {-1, 0, 2, 5, 13, 16}) {
    EXPECT_EQ(FixedPythonLayout({.minor = minor}).status().code(), absl::StatusCode::kUnimplemented) << minor;
  }
  EXPECT_FALSE(FixedPythonLayout({.minor = 12, .free_threaded = true}).ok());
  EXPECT_FALSE(DescribedPythonLayout({.minor = 16}, testing::DebugOffsets(15, false)).ok());
  EXPECT_FALSE(DescribedPythonLayout({.minor = 12}, testing::DebugOffsets(13, false)).ok());
}

TEST(PythonLayout, ShiftsObjectsWithTracedReferences) {
  const PythonLayout plain = testing::LayoutOf(9);
  auto traced = FixedPythonLayout({.minor = 9, .trace_refs = true});
  ASSERT_TRUE(traced.ok());
  EXPECT_EQ(traced->code_name, plain.code_name + 16);
  EXPECT_EQ(traced->walk.frame_back, plain.walk.frame_back + 16);
  EXPECT_EQ(traced->walk.name_hash, plain.walk.name_hash + 16);
  EXPECT_EQ(traced->walk.thread_id, plain.walk.thread_id);  // no object
  EXPECT_FALSE(FixedPythonLayout({.minor = 6, .trace_refs = true}).ok()) << "its frames have more than 128 bytes";
}

TEST(PythonLayout, ReadsFreeThreadedBuilds) {
  const PythonLayout layout = testing::LayoutOf(14, true);
  EXPECT_EQ(layout.walk.code_copies, 224);
  EXPECT_EQ(layout.walk.frame_copy, 72);
  EXPECT_EQ(layout.type, 24);
  EXPECT_FALSE(layout.counts_references);
  EXPECT_EQ(testing::LayoutOf(13, true).walk.code_copies, 0);
  EXPECT_EQ(testing::LayoutOf(14, false).walk.code_copies, 0);
}

// Each number of the description in turn gets a value that no build has.
TEST(PythonLayout, RefusesImpossibleOffsets) {
  for (int minor : {13, 14, 15}) {
    const std::string good = testing::DebugOffsets(minor, false);
    size_t refused = 0;
    for (size_t at = 24; at + 8 <= good.size(); at += 8) {
      if (ReadElfStruct<uint64_t>(good, at) == 0) continue;
      for (uint64_t value : {uint64_t{1} << 40, uint64_t{3999}, UINT64_MAX}) {
        std::string bad = good;
        std::memcpy(bad.data() + at, &value, sizeof(value));
        refused += DescribedPythonLayout({.minor = minor}, bad).ok() ? 0 : 1;
      }
    }
    // All numbers that are not 0: 18 of them, three times.
    EXPECT_EQ(refused, 54u) << minor;
    EXPECT_FALSE(DescribedPythonLayout({.minor = minor}, good.substr(0, 100)).ok());
  }
}

// The type is read from code objects, names and line tables. So it must be before the fields of all three.
TEST(PythonLayout, RefusesATypeBehindTheFieldsOfAnObject) {
  const auto with = [](size_t at, uint64_t value) {
    std::string bytes = testing::DebugOffsets(13, false);
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    return bytes;
  };
  const PythonBuild build{.minor = 13};
  EXPECT_TRUE(DescribedPythonLayout(build, with(360, 8)).ok());
  EXPECT_FALSE(DescribedPythonLayout(build, with(360, 64)).ok()) << "within a code object only";
  EXPECT_FALSE(DescribedPythonLayout(build, with(360, 16)).ok()) << "where the length of a str is";
  EXPECT_FALSE(DescribedPythonLayout(build, with(520, 8)).ok()) << "the size of a bytes object is at its type";
  EXPECT_FALSE(DescribedPythonLayout(build, with(552, 8)).ok()) << "the length of a str is at its type";
}

}  // namespace
}  // namespace tributary
