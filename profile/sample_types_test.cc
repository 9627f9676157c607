#include "profile/sample_types.h"

#include <gtest/gtest.h>

#include <string>

namespace tributary {
namespace {

TEST(SampleTypes, TextsAreShortPrintableAndWithoutColon) {
  for (const char* text : {"cpu", "alloc_space", "MiB", "größe", "a b"}) EXPECT_TRUE(IsSampleTypeText(text)) << text;
  EXPECT_TRUE(IsSampleTypeText(std::string(kSampleTypeBytesMax, 'x')));
  EXPECT_FALSE(IsSampleTypeText(std::string(kSampleTypeBytesMax + 1, 'x')));
  for (const char* text : {"", "a:b", "a\x1b[2J", "a\n", "\x7f", "\xff", "\xc3",
                           "\xc2\x9b"
                           "2J",
                           "cpu\xe2\x80\xae"})
    EXPECT_FALSE(IsSampleTypeText(text)) << text;
}

TEST(SampleTypes, DistinguishesSumsAndGaugesOfTheSameName) {
  const SampleTypeInfo sum{"inuse_space", "bytes"}, gauge{"inuse_space", "bytes", Aggregation::kLast};
  EXPECT_NE(sum, gauge);
  EXPECT_LT(sum, gauge);
}

}  // namespace
}  // namespace tributary
