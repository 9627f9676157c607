#include "otlp/gzip.h"

#include <gtest/gtest.h>

namespace tributary::otlp {
namespace {

TEST(Gzip, CompressesBehindReservedBytes) {
  GzipCompressor compressor;
  const std::string text(10'000, 'x');
  EXPECT_EQ(Gunzip(compressor.Compress(text), text.size()), text);
  const std::string shifted = compressor.Compress(text, 5);
  EXPECT_EQ(shifted.substr(0, 5), std::string(5, '\0'));
  EXPECT_EQ(Gunzip(shifted.substr(5), text.size()), text);
  EXPECT_EQ(Gunzip(compressor.Compress(""), 1), "");
}

TEST(Gzip, RefusesLongAndMalformedContent) {
  GzipCompressor compressor;
  const std::string gzip = compressor.Compress(std::string(1u << 20, '\0'));
  EXPECT_LT(gzip.size(), 2'000u);
  EXPECT_EQ(Gunzip(gzip, (1u << 20) - 1), std::nullopt);
  EXPECT_TRUE(Gunzip(gzip, 1u << 20).has_value());
  EXPECT_EQ(Gunzip(gzip.substr(0, gzip.size() - 1), 1u << 20), std::nullopt);
  EXPECT_EQ(Gunzip(gzip + "x", 1u << 20), std::nullopt);
  EXPECT_EQ(Gunzip("", 9), std::nullopt);
  EXPECT_EQ(Gunzip("no gzip", 9), std::nullopt);
}

}  // namespace
}  // namespace tributary::otlp
